"""The screen, shared by an answer that streams in, a line that is being typed, and notes."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from palaver.errors import NotSent

Aside = Callable[[Callable[[], None]], Awaitable[None]]  # lets something be shown beside a line that is being typed
Mention = Callable[[], Awaitable[Callable[[], None] | None]]  # gives what is to be shown, if anything by then


class Output:
    """Decides when something is shown; `left` is set once nobody reads it any more."""

    def __init__(self, aside: Aside) -> None:
        self.left = asyncio.Event()
        self.is_attended = False  # nobody types
        self._aside = aside
        self._later: list[Mention] = []  # to be shown when nobody speaks
        self._telling: set[asyncio.Task[None]] = set()

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Meanwhile nobody types, and what a model says is shown as it comes."""
        self.is_attended = True
        try:
            yield
        finally:
            self.is_attended = False

    def show(self, show: Callable[[], None]) -> None:
        """Show something at once."""
        if self.left.is_set():
            return
        try:
            show()
        except OSError:
            self.left.set()

    async def show_aside(self, show: Callable[[], None]) -> None:
        """Show something beside the line that is being typed. Raise `NotSent` if nobody reads it any more."""
        if self.left.is_set():
            raise NotSent("nobody reads it any more")
        try:
            await self._aside(show)
        except OSError as error:
            self.left.set()
            raise NotSent("nobody reads it any more") from error

    def tell(self, show: Callable[[], None]) -> None:
        """Show something that is nobody's answer: at once, or beside the line that is being typed."""
        if self.is_attended:
            self.show(show)
            return
        self._begin_telling(self._told(show))

    def mention(self, mention: Mention) -> None:
        """The same for what can wait until an answer that streams in has ended; it says then what there is to show."""
        if self.is_attended:
            self._later.append(mention)
            return
        self._begin_telling(self._mentioned(mention))

    async def show_mentions(self) -> None:
        """Show what was to wait until the answer had ended."""
        mentioned, self._later = self._later, []
        for mention in mentioned:
            if show := await mention():
                self.show(show)

    async def _mentioned(self, mention: Mention) -> None:
        if show := await mention():
            await self._told(show)

    async def _told(self, show: Callable[[], None]) -> None:
        with suppress(NotSent):
            await self.show_aside(show)

    def _begin_telling(self, telling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

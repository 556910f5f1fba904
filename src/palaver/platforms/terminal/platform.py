"""The terminal as a platform: what streams in is shown as it comes, and a reply where that has not shown it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from getpass import getuser
from typing import Any
from uuid import uuid4

from palaver.errors import NotSent, PalaverError, SendRefused
from palaver.messages import Author, Place, Reply
from palaver.models.base import Response
from palaver.parts import Media, Part, Text, ToolResult
from palaver.platform import Capabilities, Delivery, Inbox, Platform
from palaver.platforms.terminal.showing import Show
from palaver.run.journal import Run
from palaver.run.live_text import LiveText

PLACE = Place(platform="terminal", id="terminal", kind="direct")
ME = Author(id="palaver", name="palaver")
YOU = "you"

Aside = Callable[[Callable[[], None]], Awaitable[None]]  # lets something be shown beside a line that is being typed
Mention = Callable[[], Awaitable[Callable[[], None] | None]]  # gives what is to be shown, if anything by then
Worded = Callable[[PalaverError], str]


class Terminal(Platform):
    """One screen; `left` is set once nobody reads it any more."""

    name = PLACE.platform
    me = ME
    capabilities = Capabilities(idempotency_window=timedelta.max)  # the same person sees the same screen

    def __init__(self, show: Show, *, aside: Aside, worded: Worded, took: Callable[[ToolResult], float | None]) -> None:
        self.delimiter = ""  # of our own markup, which nobody is to see
        self.failed = False  # whether a message could not be answered
        self.left = asyncio.Event()
        self._show = show
        self._aside = aside
        self._worded = worded
        self._took = took
        self._attended = False
        self._later: list[Mention] = []  # to be shown when nobody speaks
        self._telling: set[asyncio.Task[None]] = set()
        self._failures: dict[str, PalaverError] = {}  # by the words they were put in
        self._run = ""  # whose answer is on the screen
        self._begin("")

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Meanwhile nobody types, and what a model says is shown as it comes."""
        self._attended = True
        try:
            yield
        finally:
            self._attended = False

    async def show_mentions(self) -> None:
        """Show what was to wait until the answer had ended."""
        mentioned, self._later = self._later, []
        for mention in mentioned:
            if show := await mention():
                self._see(show)

    def excuse(self, error: PalaverError) -> str:
        """The line for a message that could not be answered: who sits here can do something about it."""
        words = self._worded(error)
        self._failures[words] = error
        return words

    def watch(self, run: Run, piece: Part | Response) -> None:
        """Show a piece of what a model says, unless somebody is typing: then the reply is shown when it is whole."""
        if not self._attended or self.left.is_set():
            return
        if run.id != self._run:
            self._begin(run.id)
        self._see(partial(self._piece, piece))

    async def run(self, inbox: Inbox) -> None:
        """Wait: what is typed here is given to the engine by the conversation."""
        await asyncio.Event().wait()

    async def send(self, delivery: Delivery) -> str:
        reply = delivery.reply
        error = self._failures.pop(reply.text, None)
        if error is not None:
            self.failed = True
            await self._beside(partial(self._show.failed, error, reply.text))
            raise SendRefused("it was shown as an error, which is no part of the conversation")
        if not self._was_shown(reply):
            await self._beside(partial(self._show.reply, reply))
        return uuid4().hex

    def tell(self, show: Callable[[], None]) -> None:
        """Show something that is nobody's answer: at once, or beside the line that is being typed."""
        if self._attended:
            self._see(show)
            return
        self._begin_telling(self._told(show))

    def mention(self, mention: Mention) -> None:
        """The same for what can wait until an answer that streams in has ended; it says then what there is to show."""
        if self._attended:
            self._later.append(mention)
            return
        self._begin_telling(self._mentioned(mention))

    async def _mentioned(self, mention: Mention) -> None:
        if show := await mention():
            await self._told(show)

    async def _told(self, show: Callable[[], None]) -> None:
        with suppress(NotSent):
            await self._beside(show)

    def _begin_telling(self, telling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _see(self, show: Callable[[], None]) -> None:
        if self.left.is_set():
            return
        try:
            show()
        except OSError:
            self.left.set()

    async def _beside(self, show: Callable[[], None]) -> None:
        if self.left.is_set():
            raise NotSent("nobody reads it any more")
        try:
            await self._aside(show)
        except OSError as error:
            self.left.set()
            raise NotSent("nobody reads it any more") from error

    def _begin(self, run: str) -> None:
        self._run = run
        self._said: list[str] = []  # by each response of the run
        self._media: list[Media] = []
        self._speech = LiveText(self.delimiter)

    def _piece(self, piece: Part | Response) -> None:
        match piece:
            case Response():
                self._say(self._speech.finish())
                if not _goes_on(piece):
                    self._show.ended(piece, self._speech.said)
                self._said.append(self._speech.said)
                self._speech = LiveText(self.delimiter)
            case Text():
                self._say(self._speech.feed(piece.text))
            case ToolResult():
                self._show.piece(piece, self._took(piece))
            case _:
                if isinstance(piece, Media):
                    self._media.append(piece)
                self._show.piece(piece)

    def _say(self, text: str) -> None:
        if text:
            self._show.piece(Text(text=text))

    def _was_shown(self, reply: Reply) -> bool:
        """Whether it is what one response of the run on the screen said there, or several in a row."""
        if not all(media in self._media for media in reply.media):
            return False
        wanted, ends = _words(reply.text), range(len(self._said) + 1)
        spans = (slice(first, last) for last in ends for first in range(last))
        found = next((span for span in spans if _words(*self._said[span]) == wanted), None)
        if wanted and found:
            del self._said[found]  # what is said twice is shown twice
        return not wanted or found is not None


def _words(*texts: str) -> list[str]:
    """What is said, whatever blank space lies between."""
    return " ".join(texts).split()


def _goes_on(response: Response) -> bool:
    """Whether tools are run now, and the model is asked again."""
    return bool(response.function_calls) and response.finish.outcome == "complete"


def person() -> Author:
    """Who sits at the terminal."""
    try:
        name = getuser().strip()
    except (OSError, KeyError, ImportError):
        name = ""
    name = YOU if name in ("", ME.id) else name
    return Author(id=name, name=name)

"""The terminal as a platform: a reply is shown unless its text was streamed."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from uuid import uuid4

from palaver.errors import PalaverError, SendRefused
from palaver.platform import Capabilities, Delivery, Inbox, Platform
from palaver.platforms.terminal.defaults import ME, PLACE
from palaver.platforms.terminal.event_reader import EventReader
from palaver.platforms.terminal.output import Display, Output

Talk = Callable[[Inbox], Awaitable[None]]  # reads lines and applies them


class Terminal(Platform):
    """The platform of one screen."""

    name = PLACE.platform
    me = ME
    capabilities = Capabilities(
        idempotency_window=timedelta.max
    )  # sending again is safe: the same person sees the same screen

    def __init__(self, output: Output, display: Display, events: EventReader, *, talk: Talk) -> None:
        self.failed = False  # whether a message could not be answered
        self._output = output
        self._display = display
        self._events = events
        self._talk = talk

    async def run(self, inbox: Inbox) -> None:
        """Read and apply lines until the person leaves."""
        await self._talk(inbox)

    async def send(self, delivery: Delivery) -> str:
        await self._events.catch_up(delivery)
        if delivery.kind == "error":
            await self._send_error(delivery)
        if delivery.kind == "notice" and delivery.run_id is None:
            await self._output.show_above_input(partial(self._display.note, *delivery.reply.text.splitlines()))
            return uuid4().hex
        if not self._events.was_streamed(delivery):
            await self._output.show_above_input(partial(self._display.reply, delivery.reply))
        return uuid4().hex

    async def _send_error(self, delivery: Delivery) -> None:
        self.failed = True
        failure = self._events.failure_of(delivery)
        error = failure.error if failure else PalaverError.__name__
        wait = failure.retry_after if failure else None
        display = partial(self._display.error, delivery.reply.text, error=error, retry_after=wait)
        await self._output.show_above_input(display)
        raise SendRefused("shown as an error, which is no message of the conversation")

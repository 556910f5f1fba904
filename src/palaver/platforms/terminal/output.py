"""Output to the screen or as JSON, above a line that is being typed."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TextIO

import msgspec

from palaver.errors import NotSent, PalaverError
from palaver.jsonio import dumps
from palaver.memory.facts import Fact
from palaver.messages import Reply
from palaver.models.base import Response
from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.platforms.terminal.setup import ModelChoice
from palaver.platforms.terminal.text import call_text, ending_text, facts_line, result_text

ShowAbove = Callable[[Callable[[], None]], Awaitable[None]]  # shows something above the line that is being typed
PendingNote = Callable[[], Awaitable[Callable[[], None] | None]]  # returns what to show, if anything

# What controls a terminal: control characters besides tab and newline, and marks of the writing direction.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
DIM, RED, CYAN, RESET = "\x1b[2m", "\x1b[31m", "\x1b[36m", "\x1b[0m"


class Output:
    """Decides when something is shown: at once, above the line that is being typed, or after the answer."""

    def __init__(self, show_above: ShowAbove) -> None:
        self.closed = asyncio.Event()  # nobody reads any more
        self.is_streaming = False  # nobody types, and an answer is shown as it streams
        self._show_above = show_above
        self._pending: list[PendingNote] = []  # shown after the answer
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Within the block nobody types, and an answer is shown as it streams."""
        self.is_streaming = True
        try:
            yield
        finally:
            self.is_streaming = False

    def show(self, write: Callable[[], None]) -> None:
        """Call *write* at once, unless the output is closed."""
        if self.closed.is_set():
            return
        try:
            write()
        except OSError:
            self.closed.set()

    async def show_above_input(self, show: Callable[[], None]) -> None:
        """Show something above the line that is being typed. Raise `NotSent` if nobody reads any more."""
        if self.closed.is_set():
            raise NotSent("nobody reads the output any more")
        try:
            await self._show_above(show)
        except OSError as error:
            self.closed.set()
            raise NotSent("nobody reads the output any more") from error

    def notify(self, show: Callable[[], None]) -> None:
        """Show a notice: at once, or above the line that is being typed."""
        if self.is_streaming:
            self.show(show)
            return
        self._start(self._show_above_quietly(show))

    def notify_later(self, notice: PendingNote) -> None:
        """Show a notice after the answer that streams; *notice* is called then."""
        if self.is_streaming:
            self._pending.append(notice)
            return
        self._start(self._show_note(notice))

    async def show_pending(self) -> None:
        """Show the notices that waited for the end of the answer."""
        pending, self._pending = self._pending, []
        for notice in pending:
            if show := await notice():
                self.show(show)

    async def _show_note(self, notice: PendingNote) -> None:
        if show := await notice():
            await self._show_above_quietly(show)

    async def _show_above_quietly(self, show: Callable[[], None]) -> None:
        with suppress(NotSent):
            await self.show_above_input(show)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Display(Protocol):
    def greet(self, choice: ModelChoice, lines: Iterable[str]) -> None:
        """Show which model answers from now on."""

    def piece(self, piece: Part, seconds: float | None = None) -> None:
        """Show a piece of the answer; the result of a tool with its duration."""

    def end(self, response: Response, said: str) -> None:
        """Show how an answer ended; *said* is its text without our markup."""

    def reply(self, reply: Reply) -> None:
        """Show a whole reply."""

    def recollections(self, texts: Sequence[str]) -> None:
        """Show the recalled texts."""

    def facts(self, facts: Sequence[Fact]) -> None:
        """Show the learned facts."""

    def error(self, words: str, *, error: str, retry_after: float | None = None) -> None:
        """Show what went wrong; *error* is its type."""

    def note(self, *lines: str) -> None:
        """Show lines that are no part of the conversation."""


class ScreenDisplay:
    """Writes answers to *out*, and everything else to *notes*: the same terminal, or standard error in a pipe."""

    def __init__(self, out: TextIO, notes: TextIO, *, coloured: bool) -> None:
        self._out = out
        self._notes = notes
        self._coloured = coloured
        self._open: TextIO | None = None  # the stream whose line has not ended
        self._last: type[Part] | None = None

    def greet(self, choice: ModelChoice, lines: Iterable[str]) -> None:
        for line in lines:
            self._line(line)

    def piece(self, piece: Part, seconds: float | None = None) -> None:
        if type(piece) is not self._last:
            self._end_line()
        self._last = type(piece)
        match piece:
            case Text():
                self._write(self._out, piece.text)
            case Thought():
                self._write(self._notes, piece.text, DIM)
            case Media():
                self._write(self._out, piece.caption)
            case ToolCall():
                self._line(f"[{call_text(piece)}]", CYAN)
            case ToolResult():
                self._line(f"[{result_text(piece, seconds)}]", RED if piece.failed else CYAN)
            case Opaque():
                pass

    def end(self, response: Response, said: str) -> None:
        self._end_line()
        words = ending_text(response)
        if words:
            self._line(f"({words})", RED)

    def reply(self, reply: Reply) -> None:
        self._end_line()
        for words in (reply.text, *(media.caption for media in reply.media)):
            self._write(self._out, words)
            self._end_line()

    def recollections(self, texts: Sequence[str]) -> None:
        self.note(facts_line("remembered", texts))

    def facts(self, facts: Sequence[Fact]) -> None:
        self.note(facts_line("learned", [fact.text for fact in facts]))

    def error(self, words: str, *, error: str, retry_after: float | None = None) -> None:
        self._line(words, RED)

    def note(self, *lines: str) -> None:
        for line in lines:
            self._line(line, DIM)

    def _line(self, text: str, style: str = "") -> None:
        self._end_line()
        self._write(self._notes, text, style)
        self._end_line()

    def _end_line(self) -> None:
        if self._open is not None:
            self._open.write("\n")
            self._open.flush()
        self._open = self._last = None

    def _write(self, stream: TextIO, text: str, style: str = "") -> None:
        """Write to a stream; text of a model must not control the terminal."""
        said = escape_controls(text.replace("\r", "")) if stream.isatty() else text
        if not said:
            return
        stream.write(f"{style}{said}{RESET}" if style and self._coloured else said)
        stream.flush()
        self._open = None if said.endswith("\n") else stream


class JsonDisplay:
    """Writes each event as a line of JSON."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def greet(self, choice: ModelChoice, lines: Iterable[str]) -> None:
        self._event(kind="model", model=choice.model.name, small=choice.small)

    def piece(self, piece: Part, seconds: float | None = None) -> None:
        event: dict[str, Any] = msgspec.to_builtins(piece)
        event.pop("signature", None)
        if seconds is not None:
            event["seconds"] = round(seconds, 6)
        self._event(**event)

    def end(self, response: Response, said: str) -> None:
        usage, finish = response.usage, response.finish
        self._event(
            kind="response",
            text=said,
            model=response.turn.model,
            finish={"outcome": finish.outcome, "reason": finish.reason, "message": finish.message},
            usage={name: getattr(usage, name) for name in ("input", "cached", "output", "thought")},
            kept=response.valid,
        )

    def reply(self, reply: Reply) -> None:
        self._event(kind="reply", text=reply.text, media=[media.caption for media in reply.media])

    def recollections(self, texts: Sequence[str]) -> None:
        self._event(kind="recalled", texts=list(texts))

    def facts(self, facts: Sequence[Fact]) -> None:
        values = [{"id": fact.id, "text": fact.text, "sources": list(fact.sources)} for fact in facts]
        self._event(kind="learned", facts=values)

    def error(self, words: str, *, error: str, retry_after: float | None = None) -> None:
        self._event(kind="error", error=error, message=words, retry_after=retry_after)

    def note(self, *lines: str) -> None:
        self._event(kind="note", text="\n".join(lines))

    def _event(self, **fields: Any) -> None:
        self._out.write(f"{escape_controls(dumps(fields).decode())}\n")
        self._out.flush()


def escape_controls(text: str) -> str:
    """Escape the characters that control a terminal as JSON does: \\u001b, \\u202e."""
    return _CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def show_error(display: Display, error: PalaverError, words: str) -> None:
    display.error(words, error=type(error).__name__, retry_after=getattr(error, "retry_after", None))


def wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"

"""Output to the screen or as JSON, above a line that is being typed."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any, Protocol, TextIO

import msgspec

from tertulia.errors import NotSent, TertuliaError
from tertulia.jsonio import dumps
from tertulia.memory.values import Fact
from tertulia.messages import Reply
from tertulia.model_choice import ModelChoice
from tertulia.models.base import Response
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.platforms.terminal.text import call_text, cut, ending_text, facts_line, result_text
from tertulia.platforms.terminal.word_wrap import WordWrapper

ShowAbove = Callable[[Callable[[], None]], Awaitable[None]]  # shows something above the line that is being typed
PendingNote = Callable[[], Callable[[], None] | None]  # returns what to show, if anything

# What controls a terminal: control characters besides tab and newline, and marks of the writing direction.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
DIM, RED, CYAN, RESET = "\x1b[2m", "\x1b[31m", "\x1b[36m", "\x1b[0m"
ERASE_LINE = "\r\x1b[K"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINNER_INTERVAL = 0.1  # seconds
DEFAULT_COLUMNS = 80
SPINNER_DELAY = 0.4  # seconds of silence before it is shown


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
        if show := notice():
            self._start(self._show_above_quietly(show))

    def show_pending(self) -> None:
        """Show the notices that waited for the end of the answer."""
        pending, self._pending = self._pending, []
        for notice in pending:
            if show := notice():
                self.show(show)

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

    def remind(self, reply: Reply) -> None:
        """Show a reminder that is due."""

    def recollections(self, texts: Sequence[str]) -> None:
        """Show the recalled texts."""

    def facts(self, facts: Sequence[Fact]) -> None:
        """Show the learned facts."""

    def error(self, words: str, *, error: str, retry_after: float | None = None) -> None:
        """Show what went wrong; *error* is its type."""

    def note(self, *lines: str, indent: int = 0) -> None:
        """Show lines that are no part of the conversation; *indent* is that of a line that continues another."""

    def retry(self, why: str, seconds: float) -> None:
        """Show why the model is asked again, and after how many seconds."""

    def show_waiting(self, doing: str = "") -> None:
        """Show that the model computes, and for how many seconds; called again and again until something is shown.

        *doing* says what takes long; it is shown without delay.
        """

    def hide_waiting(self) -> None:
        """Erase what `show_waiting` has shown."""


async def count_seconds(output: Output, display: Display, doing: Callable[[], str]) -> None:
    """Show that an answer is awaited, and what is done, until this is cancelled."""
    while True:
        output.show(partial(display.show_waiting, doing()))
        await asyncio.sleep(SPINNER_INTERVAL)


class ScreenDisplay:
    """Writes answers to *out*, and everything else to *notes*: the same terminal, or standard error in a pipe.

    On a terminal, lines break between words.
    """

    def __init__(
        self,
        out: TextIO,
        notes: TextIO,
        *,
        coloured: bool,
        has_spinner: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._out = out
        self._notes = notes
        self._coloured = coloured
        self._has_spinner = has_spinner
        self._clock = clock
        self._open: TextIO | None = None  # the stream whose line has not ended
        self._style = ""  # of that line
        self._wrapper: WordWrapper | None = None  # of that line, on a terminal
        self._last: type[Part] | None = None
        self._calls: list[ToolCall] = []  # that run: shown with their results
        self._silent_since: float | None = None  # when a piece of the answer was shown last, while it is awaited
        self._spinner_is_shown = False
        self._retry = ""  # why the model is asked again
        self._is_answered = False  # what follows, such as learning, is nothing that a person waits for

    def greet(self, choice: ModelChoice, lines: Iterable[str]) -> None:
        for line in lines:
            self._line(line, indent=_hanging_indent(line))

    def piece(self, piece: Part, seconds: float | None = None) -> None:
        if type(piece) is not self._last:
            self._end_line()
        self._last = type(piece)
        self._silent_since, self._retry, self._is_answered = None, "", False
        match piece:
            case Text():
                self._write(self._out, piece.text)
            case Thought():
                self._write(self._notes, piece.text, DIM)
            case Media():
                self._write(self._out, piece.caption)
            case ToolCall():
                self._calls.append(piece)
            case ToolResult():
                self._result(piece, seconds)
            case Opaque():
                pass

    def _result(self, result: ToolResult, seconds: float | None) -> None:
        """Show a call with its result; a failed one in one line."""
        calls = [call for call in self._calls if call.id == result.id] or self._calls[:1]
        self._calls = [call for call in self._calls if call not in calls]
        called = call_text(calls[0]) if calls else result.name
        told = result_text(result, seconds)
        if result.failed:
            why = told.removeprefix(f"{result.name} ")
            width = _columns(self._notes) - 1
            called = cut(called, max(width // 2, width - len(why) - 3))
            self._line(cut(f"[{called} {why}]", width), RED)
            return
        self._show_calls(calls)
        self._line(f"[{told}]", CYAN)

    def _show_calls(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self._line(f"[{call_text(call)}]", CYAN)

    def end(self, response: Response, said: str) -> None:
        self._end_line()
        self._is_answered = response.valid
        words = ending_text(response)
        if words:
            self._line(f"({words})", RED)

    def reply(self, reply: Reply) -> None:
        self._end_line()
        self._write_reply(reply)

    def _write_reply(self, reply: Reply) -> None:
        for words in (reply.text, *(media.caption for media in reply.media)):
            self._write(self._out, words)
            self._end_line()

    def remind(self, reply: Reply) -> None:
        self._end_line()
        self._print(self._out, "\a" if self._out.isatty() else "")
        self._write(self._out, "(reminder) ")
        self._write_reply(reply)

    def recollections(self, texts: Sequence[str]) -> None:
        self.note(facts_line("remembered", texts))

    def facts(self, facts: Sequence[Fact]) -> None:
        self.note(facts_line("learned", [fact.text for fact in facts]))

    def error(self, words: str, *, error: str, retry_after: float | None = None) -> None:
        self._line(words, RED)

    def note(self, *lines: str, indent: int = 0) -> None:
        for line in lines:
            self._line(line, DIM, indent=indent or _hanging_indent(line))

    def retry(self, why: str, seconds: float) -> None:
        if not self._has_spinner:
            self.note(f"({why}; asked again in {seconds:g} s)")
        self._retry = f"(asked again in {seconds:g} s: {why})"  # it may be cut

    def show_waiting(self, doing: str = "") -> None:
        calling = ", ".join(f"[{call_text(call)}]" for call in self._calls)
        now, doing = self._clock(), self._retry or doing or calling
        self._silent_since = now if self._silent_since is None else self._silent_since
        seconds = now - self._silent_since
        is_too_soon = seconds < SPINNER_DELAY and not doing
        if not self._has_spinner or self._open is not None or self._is_answered or is_too_soon:
            return
        frame = SPINNER[int(now * 10) % len(SPINNER)]
        said = cut(f"{frame} {int(seconds)} s {_harmless(doing)}".rstrip(), _columns(self._out) - 1)
        self._out.write(f"{ERASE_LINE}{DIM}{said}{RESET}" if self._coloured else f"{ERASE_LINE}{said}")
        self._out.flush()
        self._spinner_is_shown = True

    def hide_waiting(self) -> None:
        self._silent_since, self._retry, self._is_answered = None, "", False
        self._erase_spinner()
        calls, self._calls = self._calls, []
        self._show_calls(calls)  # which have no result

    def _erase_spinner(self) -> None:
        if self._spinner_is_shown:
            self._spinner_is_shown = False
            self._out.write(ERASE_LINE)
            self._out.flush()

    def _line(self, text: str, style: str = "", *, indent: int = 0) -> None:
        """Write a line of its own to the notes."""
        self._end_line()
        if self._notes.isatty():
            wrapper = WordWrapper(lambda: _columns(self._notes), indent=indent)
            text = wrapper.feed(_harmless(text)) + wrapper.flush()
        self._print(self._notes, text, style)
        self._print(self._notes, "" if text.endswith("\n") else "\n")

    def _end_line(self) -> None:
        if self._open is not None:
            self._print(self._open, self._wrapper.flush() if self._wrapper else "", self._style)
            self._print(self._open, "\n")
        self._open = self._last = self._wrapper = None

    def _write(self, stream: TextIO, text: str, style: str = "") -> None:
        """Write a piece of a line, or of several."""
        self._style = style
        if not stream.isatty():
            self._print(stream, text, style)
            if text:
                self._open = None if text.endswith("\n") else stream
            return
        self._wrapper = self._wrapper or WordWrapper(lambda: _columns(stream))
        self._print(stream, self._wrapper.feed(_harmless(text)), style)
        self._open = stream if self._wrapper.is_open else None

    def _print(self, stream: TextIO, text: str, style: str = "") -> None:
        if text:
            self._erase_spinner()
            stream.write(f"{style}{text}{RESET}" if style and self._coloured else text)
            stream.flush()


def _hanging_indent(line: str) -> int:
    """Return the indent of what continues a line: two more than its own, none for prose."""
    own = len(line) - len(line.lstrip(" "))
    return own + 2 if own else 0


def _harmless(text: str) -> str:
    """Return a text for a terminal: it must not control it."""
    return escape_controls(text.replace("\r", ""))


def _columns(stream: TextIO) -> int:
    """Return the width of a terminal; 80 if it does not tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_COLUMNS
    except (OSError, ValueError):
        return DEFAULT_COLUMNS


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

    def remind(self, reply: Reply) -> None:
        self.reply(reply)

    def recollections(self, texts: Sequence[str]) -> None:
        self._event(kind="recalled", texts=list(texts))

    def facts(self, facts: Sequence[Fact]) -> None:
        values = [{"id": fact.id, "text": fact.text, "sources": list(fact.sources)} for fact in facts]
        self._event(kind="learned", facts=values)

    def error(self, words: str, *, error: str, retry_after: float | None = None) -> None:
        self._event(kind="error", error=error, message=words, retry_after=retry_after)

    def note(self, *lines: str, indent: int = 0) -> None:
        self._event(kind="note", text="\n".join(lines))

    def retry(self, why: str, seconds: float) -> None:
        self.note(f"({why}; asked again in {seconds:g} s)")

    def show_waiting(self, doing: str = "") -> None:
        """Show nothing: programs wait without it."""

    def hide_waiting(self) -> None:
        """Erase nothing."""

    def _event(self, **fields: Any) -> None:
        self._out.write(f"{escape_controls(dumps(fields).decode())}\n")
        self._out.flush()


def escape_controls(text: str) -> str:
    """Escape the characters that control a terminal as JSON does: \\u001b, \\u202e."""
    return _CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def show_error(display: Display, error: TertuliaError, words: str) -> None:
    display.error(words, error=type(error).__name__, retry_after=getattr(error, "retry_after", None))


def wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"

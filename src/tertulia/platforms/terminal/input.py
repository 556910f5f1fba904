"""Readers of what the person types: an editor in a terminal, lines or JSON elsewhere."""

import json
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO

from tertulia.platforms.terminal.output import escape_controls

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent

Obey = Callable[[str], bool]  # does what a line says, and returns whether it was a command for now

ENTER = "\r"
PROMPT = "> "
CONTINUATION_PROMPT = ". "
SIGNAL_STATUS = 128  # shells add it to the number of the signal that ended a program


def prompt_to(whom: str) -> str:
    """Return what stands before a line: `Ada > `."""
    return f"{escape_controls(whom)} {PROMPT}" if whom else PROMPT


class InputReader(Protocol):
    async def read(self, whom: str = "") -> str:
        """Return the next message. Raise EOFError at the end, KeyboardInterrupt for Ctrl-C.

        It is said to *whom*, where there are several agents; that stands before the line.
        Ctrl-C in a line that has text only deletes the text: the message is empty.
        """
        ...

    async def show_above_input(self, show: Callable[[], None]) -> None:
        """Call *show* without damage to the line that is being typed."""
        ...

    def watched(self, obey: Obey) -> AbstractContextManager[None]:
        """Within the block nobody reads: call *obey* with each line that is typed, and with /quit for Ctrl-D.

        A line that it does not obey is read afterwards.
        """
        ...

    def hold_back(self) -> None:
        """Put what was typed within the block of `watched` into the next line, and do not send it."""
        ...


class _Unwatched:
    """A reader to which nothing can be typed while nobody reads."""

    def watched(self, _: Obey) -> AbstractContextManager[None]:
        return nullcontext()

    def hold_back(self) -> None:
        """Do nothing."""


class LineReader(_Unwatched):
    """Reads lines of a stream; a line that ends in a backslash continues. Prompts are written to *prompts*."""

    def __init__(self, stream: TextIO, *, prompts: TextIO | None = None) -> None:
        self._stream = stream
        self._prompts = prompts

    async def read(self, whom: str = "") -> str:
        said = ""
        try:
            with on_interrupt(signal.default_int_handler), on_termination(raise_exit):
                said = self._line(prompt_to(whom))
                while said.endswith("\\"):
                    said = f"{said[:-1]}\n{self._line(CONTINUATION_PROMPT)}"
        except EOFError:
            self._prompt("\n")
            if not said:
                raise
            return said[:-1]  # the line that should continue it does not come
        except KeyboardInterrupt:
            self._prompt("\n")
            if not said or self._prompts is None:
                raise
            return ""
        return said

    async def show_above_input(self, show: Callable[[], None]) -> None:
        show()

    def _prompt(self, text: str) -> None:
        if self._prompts is not None:
            self._prompts.write(text)
            self._prompts.flush()

    def _line(self, prompt: str) -> str:
        self._prompt(prompt)
        with shown_input(self._stream):
            typed_before = self._prompts is not None and self._stream.isatty() and _is_ready(self._stream)
            line = self._stream.readline()
        if not line:
            raise EOFError
        if typed_before:  # while it was hidden
            self._prompt(line)
        return line.rstrip("\r\n")


class JsonReader(_Unwatched):
    """Reads a message from each line of a stream; a JSON string may hold line breaks."""

    def __init__(self, stream: TextIO) -> None:
        self._lines = stream

    async def read(self, whom: str = "") -> str:
        with on_interrupt(signal.default_int_handler), on_termination(raise_exit):
            line = self._lines.readline()
        if not line:
            raise EOFError
        if not line.lstrip().startswith('"'):
            return line
        try:
            said: str = json.loads(line)
        except ValueError:
            return line
        return said

    async def show_above_input(self, show: Callable[[], None]) -> None:
        show()


class EditorReader:
    """Reads with a line editor that has a history; Alt-Enter or a backslash at the end begins another line."""

    def __init__(self) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import create_output
        from prompt_toolkit.output.vt100 import Vt100_Output

        output = create_output()
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False  # not needed without menus, and not every terminal answers
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=lambda width, _, wraps: " " * width if wraps else CONTINUATION_PROMPT,
            key_bindings=_keys(),
            output=output,
            reserve_space_for_menu=0,
        )
        self._is_held_back = False

    async def read(self, whom: str = "") -> str:
        return await self._session.prompt_async(prompt_to(whom))

    async def show_above_input(self, show: Callable[[], None]) -> None:
        """Hide the line, call *show*, and write the line again below."""
        if not self._session.app.is_running:
            show()
            return
        from prompt_toolkit.application import run_in_terminal

        await run_in_terminal(show)

    @contextmanager
    def watched(self, obey: Obey) -> Iterator[None]:
        from prompt_toolkit.input.typeahead import store_typeahead
        from prompt_toolkit.keys import Keys

        typed: list[KeyPress] = []
        terminal = self._session.app.input

        def read() -> None:
            for press in terminal.read_keys():
                if press.key == Keys.ControlD:
                    obey("/quit")
                    continue
                typed.append(press)
                if press.key == Keys.ControlM and obey(_last_line(typed)):
                    del typed[_line_start(typed) :]

        self._is_held_back = False
        with terminal.attach(read):
            yield
        store_typeahead(terminal, _without_enter(typed) if self._is_held_back else typed)

    def hold_back(self) -> None:
        self._is_held_back = True


def _line_start(typed: "Sequence[KeyPress]") -> int:
    """Return where the last line begins; the last key is its Enter."""
    ends = [number for number, press in enumerate(typed[:-1]) if press.data == ENTER]
    return ends[-1] + 1 if ends else 0


def _last_line(typed: "Sequence[KeyPress]") -> str:
    return "".join(press.data for press in typed[_line_start(typed) : -1])


def _without_enter(typed: "list[KeyPress]") -> "list[KeyPress]":
    """Return the keys of several lines as those of one message that is not sent: Enter becomes Alt-Enter."""
    from prompt_toolkit.key_binding import KeyPress
    from prompt_toolkit.keys import Keys

    while typed and typed[-1].data == ENTER:
        typed = typed[:-1]
    escape = KeyPress(Keys.Escape)
    return [press for one in typed for press in ((escape, one) if one.data == ENTER else (one,))]


def _keys() -> "KeyBindings":
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        buffer.validate_and_handle()

    @keys.add("c-c")
    def _(event: "KeyPressEvent") -> None:
        if event.current_buffer.text:
            event.app.exit(result="")
            return
        event.app.exit(exception=KeyboardInterrupt)

    @keys.add("escape", "enter")
    def _(event: "KeyPressEvent") -> None:
        event.current_buffer.insert_text("\n")

    return keys


@contextmanager
def on_interrupt(act: Callable[[int, Any], object]) -> Iterator[None]:
    """Call *act* for Ctrl-C within the block."""
    with _on_signal(signal.SIGINT, act):
        yield


@contextmanager
def on_termination(act: Callable[[int, Any], object]) -> Iterator[None]:
    """Call *act* within the block when the process is asked to end, or its terminal is closed."""
    with _on_signal(signal.SIGTERM, act), _on_signal(getattr(signal, "SIGHUP", signal.SIGTERM), act):
        yield


def raise_exit(number: int, _: Any) -> NoReturn:
    raise SystemExit(SIGNAL_STATUS + number)


@contextmanager
def _on_signal(number: signal.Signals, act: Callable[[int, Any], object]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, act)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def hidden_input(stream: TextIO, *, by_line: bool) -> Iterator[None]:
    """Within the block a terminal does not show what is typed; whoever reads next gets it.

    *by_line*: lines are read, not keys.
    """
    with _terminal_flags(stream) as flags:
        if flags is not None:
            import termios

            hidden = termios.ECHO if by_line else termios.ECHO | termios.ICANON | termios.IEXTEN
            flags[3] = flags[3] & ~hidden | termios.NOFLSH  # Ctrl-C keeps what was typed
            if not by_line:
                flags[0] &= ~termios.ICRNL
            termios.tcsetattr(stream, termios.TCSANOW, flags)
        yield


@contextmanager
def shown_input(stream: TextIO) -> Iterator[None]:
    """Within the block a terminal shows what is typed."""
    with _terminal_flags(stream) as flags:
        if flags is not None:
            import termios

            flags[3] |= termios.ECHO
            termios.tcsetattr(stream, termios.TCSANOW, flags)
        yield


@contextmanager
def _terminal_flags(stream: TextIO) -> Iterator[list[Any] | None]:
    """Yield the flags of a terminal, and set them again at the end; None if the stream is none, or cannot be set."""
    try:
        import termios
    except ImportError:  # Windows
        yield None
        return
    try:
        before = termios.tcgetattr(stream)
    except (termios.error, OSError, ValueError):
        yield None
        return
    try:
        yield list(before)
    finally:
        with suppress(termios.error, OSError, ValueError):  # the terminal was closed
            termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _is_ready(stream: TextIO) -> bool:
    """Return whether a line is there to be read."""
    return bool(select.select([stream], [], [], 0)[0])

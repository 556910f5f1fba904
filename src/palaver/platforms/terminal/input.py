"""Readers of what the person types: an editor in a terminal, lines or JSON elsewhere."""

import json
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PROMPT = "> "
CONTINUATION_PROMPT = ". "
SIGNAL_STATUS = 128  # shells add it to the number of the signal that ended a program


class InputReader(Protocol):
    async def read(self) -> str:
        """Return the next message. Raise EOFError at the end, KeyboardInterrupt for Ctrl-C.

        Ctrl-C in a line that has text only deletes the text: the message is empty.
        """
        ...

    async def show_above_input(self, show: Callable[[], None]) -> None:
        """Call *show* without damage to the line that is being typed."""
        ...


class LineReader:
    """Reads lines of a stream; a line that ends in a backslash continues. Prompts are written to *prompts*."""

    def __init__(self, stream: TextIO, *, prompts: TextIO | None = None) -> None:
        self._stream = stream
        self._prompts = prompts

    async def read(self) -> str:
        said = ""
        try:
            with on_interrupt(signal.default_int_handler), on_termination(raise_exit):
                said = self._line(PROMPT)
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


class JsonReader:
    """Reads a message from each line of a stream; a JSON string may hold line breaks."""

    def __init__(self, stream: TextIO) -> None:
        self._lines = stream

    async def read(self) -> str:
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
            prompt_continuation=CONTINUATION_PROMPT,
            key_bindings=_keys(),
            output=output,
            reserve_space_for_menu=0,
        )

    async def read(self) -> str:
        return await self._session.prompt_async()

    async def show_above_input(self, show: Callable[[], None]) -> None:
        """Hide the line, call *show*, and write the line again below."""
        if not self._session.app.is_running:
            show()
            return
        from prompt_toolkit.application import run_in_terminal

        await run_in_terminal(show)


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

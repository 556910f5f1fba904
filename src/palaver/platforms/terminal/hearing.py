"""What the engine does about trouble, told to the person at the terminal: it waits, asks again, cannot write."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from palaver.errors import PalaverError, StoreBroken, StoreTrouble
from palaver.platforms.terminal.platform import Terminal
from palaver.platforms.terminal.showing import Show
from palaver.platforms.terminal.wording import ERROR, shortened
from palaver.run.loop import NoAnswer

ENGINE = "palaver.conversation"
ASKING = f"{ENGINE}.running"


class Heard(logging.Handler):
    """Shows what the engine logs and the person should know."""

    def __init__(self, terminal: Terminal, show: Show) -> None:
        super().__init__(logging.INFO)
        self._terminal = terminal
        self._show = show
        self.stuck = asyncio.Event()  # the store cannot be written, and nothing goes on until it can
        self.broken: StoreBroken | None = None  # the store's file is damaged: the conversation ends with that
        self._last = ""  # what went wrong; it is told once, however often it is tried again

    def emit(self, record: logging.LogRecord) -> None:
        given = record.args if isinstance(record.args, tuple) else ()
        error = next((one for one in given if isinstance(one, Exception)), None)
        if error is None:
            return
        if record.levelno >= logging.ERROR:
            self._failed(error, record.getMessage())
        elif record.name == ASKING:
            self._terminal.tell(partial(self._show.note, _again(record, error)))

    def calm(self) -> None:
        """What went wrong is told again, should it go wrong again."""
        self._last = ""
        self.stuck.clear()

    def _failed(self, error: Exception, said: str) -> None:
        if isinstance(error, StoreBroken):
            self.broken = error
            return
        if isinstance(error, StoreTrouble):
            self.stuck.set()
        if str(error) == self._last:
            return
        self._last = str(error)
        words = shortened(said, ERROR)
        ours = error if isinstance(error, PalaverError) else PalaverError(words)
        self._terminal.tell(partial(self._show.failed, ours, words))


@contextmanager
def hearing(terminal: Terminal, show: Show) -> Iterator[Heard]:
    """Listen to the engine meanwhile."""
    heard, engine, asking = Heard(terminal, show), logging.getLogger(ENGINE), logging.getLogger(ASKING)
    before = asking.level
    engine.addHandler(heard)
    if not asking.isEnabledFor(logging.INFO):
        asking.setLevel(logging.INFO)
    try:
        yield heard
    finally:
        engine.removeHandler(heard)
        asking.setLevel(before)


def _again(record: logging.LogRecord, error: Exception) -> str:
    if isinstance(error, NoAnswer):  # how the answer ended was shown
        return "(asked again)"
    words = record.getMessage() if record.levelno == logging.INFO else f"{error}; asked again, differently"
    return f"({shortened(words, ERROR)})"

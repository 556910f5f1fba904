"""Logs of a running bot: lines of text in a terminal, else one JSON object a line. Keys are removed from both."""

import logging
import os
import re
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec
from msgspec import Struct

from tertulia.errors import TertuliaError
from tertulia.events import (
    Event,
    FactsLearned,
    MemoryBehind,
    MessageDecided,
    PromptSent,
    ReplyDoubtful,
    ReplyDropped,
    ReplyRefused,
    ReplySent,
    RunEnded,
    RunFailed,
    RunStarted,
    TaskDone,
    Waiting,
)
from tertulia.jsonio import dumps
from tertulia.messages import Place
from tertulia.redaction import redact_keys

log = logging.getLogger("tertulia.bot")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # what steers a terminal, but not a line's end or a tab

_COLOURS = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31m"}
_LEVELS: dict[type[Struct], int] = {
    MessageDecided: logging.DEBUG,
    RunStarted: logging.INFO,
    RunFailed: logging.ERROR,
    ReplySent: logging.INFO,
    ReplyDoubtful: logging.WARNING,
    ReplyRefused: logging.WARNING,
    ReplyDropped: logging.INFO,
    Waiting: logging.WARNING,
    MemoryBehind: logging.WARNING,
    TaskDone: logging.INFO,
    FactsLearned: logging.INFO,
}  # of the events that are logged; they hold ids, and no texts of people


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object, with the fields of its event."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact_keys(record.getMessage()),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = redact_keys(self.formatException(record.exc_info))
        return dumps(line).decode()


class TextFormatter(logging.Formatter):
    """Formats a record for a person at a terminal."""

    def __init__(self, *, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = "  ".join(filter(None, (f"{record.levelname.lower():7}", redact_keys(record.getMessage()), fields)))
        if record.exc_info:
            line += "\n" + redact_keys(self.formatException(record.exc_info))
        line = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
        colour = _COLOURS.get(record.levelno, "") if self._coloured else ""
        return f"{colour}{time} {line}\x1b[0m" if colour else f"{time} {line}"


def configure_logs(level: str, stream: TextIO | None = None) -> None:
    """Log to *stream*, standard error by default: text in a terminal, else JSON."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter(coloured=True) if stream.isatty() else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    logging.getLogger("tertulia").setLevel(level)


def log_failure(error: Exception) -> None:
    """Log the error that ends the program: one line, and its traceback if it is a bug or TERTULIA_TRACEBACK is set."""
    is_expected = isinstance(error, TertuliaError | OSError) and not os.environ.get("TERTULIA_TRACEBACK")
    text = str(error) if isinstance(error, TertuliaError) else f"{type(error).__name__}: {error}"
    log.critical("%s", text, exc_info=None if is_expected else error)


async def log_events(events: AsyncIterator[Event]) -> None:
    """Log what an engine does, until its events end. A run without a prompt, as one of a notice, is not logged."""
    started: dict[str, RunStarted] = {}
    async for event in events:
        match event:
            case RunStarted():
                started[event.run_id] = event
            case PromptSent() if event.run_id in started:
                _log(started.pop(event.run_id))
            case RunEnded():
                started.pop(event.run_id, None)
            case _:
                _log(event)


def _log(event: Event) -> None:
    if level := _LEVELS.get(type(event)):
        log.log(level, "%s", _name(event), extra={"event": event})


def _name(event: Any) -> str:
    return str(type(event).__struct_config__.tag)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of the event of a record, or else its place and its run."""
    event = getattr(record, "event", None)
    if not isinstance(event, Struct):
        named = {"place": getattr(record, "place", None), "run_id": getattr(record, "run_id", None)}
        return {name: _where(value) if isinstance(value, Place) else value for name, value in named.items() if value}
    found: dict[str, Any] = msgspec.to_builtins(event)
    for name in ("kind", "cursor", "number", "at"):
        found.pop(name, None)
    if "why" in found:  # the text of an error; all else are ids
        found["why"] = redact_keys(found["why"])
    found.pop("place", None)
    place = getattr(event, "place", None)
    return {**({"place": _where(place)} if place else {}), **found}


def _where(place: Place) -> str:
    return "/".join(filter(None, place.key))

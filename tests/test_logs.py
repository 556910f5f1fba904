"""What a running bot logs: text for a person, JSON for a machine; keys in neither, ids whole."""

import io
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tertulia.events import Event, MessageReceived, PromptSent, ReplySent, RunEnded, RunFailed, RunStarted
from tertulia.logs import JsonFormatter, TextFormatter, configure_logs, log_events
from tertulia.messages import Place

PLACE = Place(platform="telegram", id="-100", thread="7", kind="group", title="Our secret plans")
MESSAGE_ID = "0123456789abcdef0123456789abcdef"
KEY = "sk-0123456789abcdefghij"


def a_record(message: str, level: int = logging.INFO, **extra: Any) -> logging.LogRecord:
    record = logging.LogRecord("tertulia.bot", level, "", 0, message, (), None)
    record.created = 1_763_300_000.5
    vars(record).update(extra)
    return record


def test_an_event_is_one_json_object_with_its_ids() -> None:
    event = RunFailed(place=PLACE, run_id="r1", error="KeyRefused", why=f"the key {KEY} was refused")

    assert json.loads(JsonFormatter().format(a_record("run failed", logging.ERROR, event=event))) == {
        "time": "2025-11-16T13:33:20.500+00:00",
        "level": "error",
        "logger": "tertulia.bot",
        "message": "run failed",
        "place": "telegram/-100/7",
        "run_id": "r1",
        "error": "KeyRefused",
        "why": "the key *** was refused",
    }


def test_a_line_has_the_place_and_the_run_that_it_is_about() -> None:
    line = json.loads(JsonFormatter().format(a_record("run resumed", place=PLACE, run_id="r1")))

    assert (line["message"], line["place"], line["run_id"]) == ("run resumed", "telegram/-100/7", "r1")


def test_what_steers_a_terminal_is_escaped() -> None:
    line = TextFormatter(coloured=False).format(a_record("no \x1b[2J here\nbut\there"))

    assert line.partition("  ")[2].strip() == "no \\u001b[2J here\nbut\there"


def test_ids_are_whole_and_keys_are_removed() -> None:
    event = RunStarted(place=PLACE, run_id="r1", message_id=MESSAGE_ID)
    line = json.loads(JsonFormatter().format(a_record(f"asked with {KEY}", event=event)))

    assert (line["message"], line["message_id"]) == ("asked with ***", MESSAGE_ID)


def test_an_error_has_its_traceback_without_keys() -> None:
    try:
        raise ValueError(KEY)
    except ValueError:
        record = a_record("failed", exc_info=sys.exc_info())

    for line in (JsonFormatter().format(record), TextFormatter(coloured=False).format(record)):
        assert "ValueError: ***" in line
        assert KEY not in line
    assert "\n" not in JsonFormatter().format(record)


def test_a_person_reads_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    event = ReplySent(place=PLACE, delivery_id="d1", message_id="m1")
    plain = TextFormatter(coloured=False).format(a_record("reply sent", event=event))
    warned = TextFormatter(coloured=True).format(a_record("slow", logging.WARNING))

    assert plain.partition(" ")[2] == "info     reply sent  place=telegram/-100/7 delivery_id=d1 message_id=m1"
    assert warned.startswith("\x1b[33m")
    assert warned.endswith("warning  slow\x1b[0m")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    root, tertulia = logging.getLogger(), logging.getLogger("tertulia")
    handlers, level = root.handlers[:], tertulia.level
    yield root
    root.handlers[:] = handlers
    tertulia.setLevel(level)


async def test_what_an_engine_does_is_logged_and_no_texts_of_people(root: logging.Logger) -> None:
    async def events() -> AsyncIterator[Event]:
        yield MessageReceived(place=PLACE, message_id="m1")  # not logged: each run says its message
        yield RunStarted(place=PLACE, run_id="r0", message_id="m0")  # of a notice: there is no prompt
        yield RunEnded(place=PLACE, run_id="r0", failed=True)
        yield RunStarted(place=PLACE, run_id="r1", message_id="m1")
        yield PromptSent(place=PLACE, run_id="r1", step=0)
        yield ReplySent(place=PLACE, delivery_id="d1", message_id="m2", run_id="r1")

    stream = io.StringIO()
    configure_logs("INFO", stream)
    await log_events(events())

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["message"], line["place"], line["run_id"]) for line in lines] == [
        ("run started", "telegram/-100/7", "r1"),
        ("reply sent", "telegram/-100/7", "r1"),
    ]
    assert "secret" not in stream.getvalue()

"""What the log of an engine says of a run: the line of each thing that happens, with its place and its run."""

import re
from logging import LogRecord

import pytest

from engine.engines import AT_ONCE, engine_with, said, talked
from tertulia import Overloaded, ToolCall
from tertulia.engine.engine import Engine
from tertulia.engine.limits import Limits
from tertulia.models import Scripted
from tertulia.store import Store
from tertulia.testing import HeldModel, RecordedPlatform


def shown(record: LogRecord) -> tuple[str, str, bool]:
    """A line without its milliseconds, its place, and whether it names its run."""
    text = re.sub(r"\d+ ms", "0 ms", record.getMessage())
    return text, record.place.id, hasattr(record, "run_id")  # type: ignore[attr-defined]


def double(number: int) -> int:
    """Double a number."""
    if number > 9:
        raise ValueError("that is too large")
    return 2 * number


async def test_tool_calls_and_messages_over_the_limit_are_lines_with_their_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="tertulia.engine")
    calls = [ToolCall(id=str(n), name="double", args={"number": n}) for n in (2, 10)]
    limits = Limits(messages=1, seconds=600)
    async with engine_with(Scripted(calls, "Four."), tools=[double], limits=limits) as engine:
        await talked(engine, said("Double it!", 1), said("And now?", 2), said("Hello?", 3))

    assert sorted(map(shown, caplog.records)) == [
        ("message 2 is over the rate limit", "7", False),
        ("message 3 is over the rate limit", "7", False),
        ("tool double, 0 ms, done", "7", True),
        ("tool double, 0 ms, failed: that is too large", "7", True),
    ]


async def test_a_run_that_an_earlier_process_left_is_logged_as_resumed(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    model = HeldModel("Never.")
    async with Engine(store, model, [RecordedPlatform()], behavior=AT_ONCE) as engine:
        await engine.receive(said("hello"))
        await model.asked.wait()
    caplog.set_level("INFO", logger="tertulia.engine")
    async with engine_with(Scripted("Hi."), store=store) as engine:
        await engine.settled()

    assert [shown(record) for record in caplog.records] == [("run resumed", "7", True)]


async def test_a_model_that_fails_is_one_line_for_each_thing_that_is_tried(caplog: pytest.LogCaptureFixture) -> None:
    async def no_pause(_: float) -> None: ...

    caplog.set_level("INFO")
    async with engine_with(Scripted(*[Overloaded("busy", retry_after=1)] * 5), sleep=no_pause) as engine:
        await talked(engine, said("hello"))

    *retries, failed = caplog.messages
    assert retries == ["busy; retried in 1 s"] * 4
    assert re.fullmatch(r"run \w+ failed: busy", failed)

"""Work in the background: a failure is logged, with its traceback where it is a bug, and ends nothing else."""

import pytest

from tertulia.engine.background import BackgroundTasks, log_text
from tertulia.errors import Overloaded

KEY = "AIza" + "x7Qf" * 9


def fault() -> None:
    raise LookupError(f"no answer from https://service.example/?key={KEY}")


async def failing() -> None:
    fault()


async def busy() -> None:
    raise Overloaded("busy")


async def test_a_bug_is_logged_with_its_traceback_and_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    background = BackgroundTasks()

    background.start(failing())
    await background.done()

    (logged,) = caplog.messages
    first, *frames, last = logged.splitlines()
    assert first == "Traceback (most recent call last):"
    assert "    fault()" in frames
    assert last.startswith("LookupError: no answer from https://service.example/")
    assert KEY not in logged


async def test_an_error_of_ours_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    background = BackgroundTasks()

    background.start(busy())
    await background.done()

    assert caplog.messages == ["Overloaded: busy"]
    assert log_text(Overloaded(f"no answer with {KEY}")) == "Overloaded: no answer with ***"

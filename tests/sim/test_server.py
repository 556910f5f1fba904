"""A simulator injects the faults that its service has, and lets time pass when told."""

from typing import Any

import pytest

from palaver.errors import InvalidValue
from palaver.sim import GeminiSim, OpenAISim
from palaver.sim.faults import AnyFault, BlockedPrompt, ModelRefusal
from palaver.sim.server import START, Clock


@pytest.mark.parametrize(
    ("sim", "fault", "message"),
    [
        (GeminiSim, ModelRefusal(), "GeminiSim has no fault ModelRefusal"),
        (OpenAISim, BlockedPrompt(), "OpenAISim has no fault BlockedPrompt"),
    ],
)
def test_a_fault_that_the_service_does_not_have_is_refused(sim: Any, fault: AnyFault, message: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{message}$"):
        sim().fail(fault)


def test_a_clock_stands_still_until_it_is_advanced() -> None:
    clock = Clock()
    before = clock()

    clock.advance(2.5)

    assert (before, clock()) == (START, START + 2.5)
    assert Clock(lambda: 7.0)() == 7.0

"""A simulator injects the faults that its service has, and lets time pass when told."""

from typing import Any, get_args

import pytest

from tertulia.errors import InvalidValue
from tertulia.sim import GeminiSim, OpenAISim, gemini, openai
from tertulia.sim.faults import AnyFault, BlockedPrompt, ModelRefusal
from tertulia.sim.server import START, Clock


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


@pytest.mark.parametrize("service", [gemini, openai], ids=lambda service: service.__name__)
def test_a_service_exports_the_faults_that_it_has(service: Any) -> None:
    assert {kind.__name__ for kind in get_args(service.Fault)} <= set(service.__all__)


def test_a_clock_stands_still_until_it_is_advanced() -> None:
    clock = Clock()
    before = clock()

    clock.advance(2.5)

    assert (before, clock()) == (START, START + 2.5)
    assert Clock(lambda: 7.0)() == 7.0

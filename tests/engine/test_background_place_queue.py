"""Places are read one after the other, and what goes wrong in one of them is in no other's way."""

import pytest

from engine.engines import DIRECT, GROUP
from tertulia.engine.background import PlaceQueue
from tertulia.errors import Overloaded
from tertulia.messages import Place


def queue_with(errors: dict[str, list[Exception]], seen: list[str]) -> PlaceQueue:
    async def work(place: Place) -> None:
        seen.append(place.id)
        if errors.get(place.id):
            raise errors[place.id].pop()

    async def sleep(seconds: float) -> None:
        seen.append(f"{seconds:g} s")

    return PlaceQueue(work, "learning", sleep=sleep)


async def test_what_fails_comes_again_after_the_others() -> None:
    seen: list[str] = []
    queue = queue_with({DIRECT.id: [Overloaded("busy")]}, seen)

    queue.wake(DIRECT)
    queue.wake(GROUP)
    await queue.done()

    assert seen == [DIRECT.id, "5 s", GROUP.id, DIRECT.id]


async def test_a_fault_in_one_place_ends_nothing_is_logged_with_its_traceback_and_waits_for_what_is_next_said_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []
    queue = queue_with({DIRECT.id: [IndexError("list index out of range")]}, seen)

    for places in ((DIRECT, GROUP), (DIRECT,)):
        for place in places:
            queue.wake(place)
        await queue.done()

    assert seen == [DIRECT.id, GROUP.id, DIRECT.id]
    (logged,) = caplog.messages
    first, *frames, last = logged.splitlines()
    assert (first, last) == (
        f"learning in {DIRECT.id}: Traceback (most recent call last):",
        "IndexError: list index out of range",
    )
    assert any(__file__ in frame for frame in frames)

import pytest

from engine.agents.casts import MARIE
from people import DIRECT, GROUP, NOON, a_message
from tertulia.engine.agents.agent import Agent
from tertulia.engine.agents.presence import ALWAYS, Presence, Stay, sees
from tertulia.engine.shared import make_shared
from tertulia.store import Store

NUMBERS = range(12)


def stays(*intervals: tuple[int, int | None]) -> Presence:
    return tuple(Stay(since=since, until=until) for since, until in intervals)


def seen(present: Presence) -> set[int]:
    return {number for number in NUMBERS if sees(present, number)}


@pytest.mark.parametrize(
    ("present", "numbers"),
    [
        (ALWAYS, range(12)),
        ((), ()),
        (stays((3, 5)), (3, 4)),
        (stays((3, 5), (8, None)), (3, 4, 8, 9, 10, 11)),
    ],
)
def test_an_agent_sees_what_was_said_while_it_was_there(present: Presence, numbers: range | tuple[int, ...]) -> None:
    assert seen(present) == set(numbers)


async def test_of_a_direct_chat_an_agent_knows_only_what_it_was_present_for(store: Store) -> None:
    places = make_shared(store, (), agents=[MARIE, Agent(name="Ada", knows="present")]).agent_places
    for place in (GROUP, DIRECT):
        await store.inbox.receive(a_message(place=place), at=NOON)
        for name in ("Marie", "Ada"):
            await store.agents.join(place, name, at=NOON)

    known = [await places.known_to(name, place) for name in ("Marie", "Ada") for place in (GROUP, DIRECT)]

    assert [[one.since for one in presence] for presence in known] == [[0], [1], [1], [1]]

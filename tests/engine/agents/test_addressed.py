"""What a platform says of whom a message is for goes before the words of the message."""

from typing import Any

import pytest

from engine.engines import BOB, DIRECT, GROUP, engine_with, said
from people import NOON
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent
from tertulia.engine.behavior import Behavior
from tertulia.messages import Message, Place
from tertulia.models.scripted import Scripted
from tertulia.platform import Edited, Received
from tertulia.store import Store
from tertulia.testing.store_world import apply

AGENTS = [Agent(name=name, models=(Scripted(*[f"I am {name}."] * 9),)) for name in ("Kant", "Hume", "Hegel")]
BURSTS = Behavior(debounce=0.2, max_debounce=1.0)


async def decided(
    store: Store, *heard: Received, place: Place = GROUP, **changes: Any
) -> list[tuple[str, str, str | None]]:
    """The decisions about messages that a platform hears at once: whose, why and how they were called."""
    async with engine_with(Scripted(*["Yes."] * 9), store=store, **{"agents": AGENTS, **changes}) as engine:
        await engine.inbox("recorded").apply(heard, key="1")
        await engine.settled()
    made = await store.inbox.decided(place, most=9)
    return [(one.agent, one.reason, one.address) for message, found in made if message.agent is None for one in found]


@pytest.mark.parametrize(
    ("addressed", "expected"),
    [
        (None, [("Kant", "answered", "name")]),
        ((), [("", "not addressed", None)]),
        (("Hegel", "hume"), [("Hegel", "answered", "platform"), ("Hume", "answered", "platform")]),
        (("Nobody", "Hume"), [("Hume", "answered", "platform")]),
        (("Nobody",), [("", "not addressed", None)]),
    ],
)
async def test_agents_that_a_platform_names_answer_in_that_order(
    store: Store, addressed: tuple[str, ...] | None, expected: list[tuple[str, str, str]]
) -> None:
    heard = Received(message=said("Kant?", place=GROUP), addressed=addressed)

    assert await decided(store, heard) == expected


@pytest.mark.parametrize(
    ("addressed", "place", "expected"),
    [
        (("Gryag",), GROUP, ("", "answered", "platform")),
        (("gryag",), GROUP, ("", "answered", "platform")),
        (("",), GROUP, ("", "answered", "platform")),
        (("Kant",), GROUP, ("", "not addressed", None)),
        ((), DIRECT, ("", "not addressed", None)),
        ((), GROUP, ("", "not addressed", None)),
    ],
)
@pytest.mark.parametrize("persona", [Persona(), Persona(name="Gryag")])
async def test_the_only_agent_answers_where_the_platform_names_it(
    store: Store, persona: Persona, addressed: tuple[str, ...], place: Place, expected: tuple[str, str, str]
) -> None:
    heard = Received(message=said("hi", place=place), addressed=addressed)

    assert await decided(store, heard, place=place, agents=(), persona=persona) == [expected]


async def test_a_burst_and_an_album_are_answered_together(store: Store) -> None:
    def one(number: int, addressed: tuple[str, ...] | None, **changes: Any) -> Received:
        return Received(message=said(f"part {number}", number, place=GROUP, **changes), addressed=addressed)

    heard = [one(1, ("Hume",)), one(2, None), one(3, ("Kant",), album="a"), one(4, None, album="a")]

    made = await decided(store, *heard, behavior=BURSTS)

    assert [(agent, reason) for agent, reason, _ in made] == [
        (name, "answered") for _ in heard for name in ("Hume", "Kant")
    ]


async def test_what_the_platform_says_survives_an_edit_and_a_restart(store: Store) -> None:
    message = said("hm", place=GROUP)
    await apply(
        store,
        Received(message=message, addressed=("Hume",)),
        Received(message=said("Kant!", 2, place=GROUP, author=BOB), addressed=()),
    )
    waiting = await store.inbox.waiting(GROUP)
    await apply(
        store,
        Edited(message=said("Kant?", place=GROUP)),
        Edited(message=said("Kant!!", 2, place=GROUP, author=BOB)),
        key="u2",
    )

    async with engine_with(Scripted(), store=store, agents=AGENTS) as engine:
        await engine.settled()
    made = await store.inbox.decided(GROUP, most=9)

    assert [(one.message, one.addressed) for one in waiting] == [(message, ("Hume",))]
    assert [(one.agent, one.reason, one.address) for _, found in made[:2] for one in found] == [
        ("Hume", "answered", "platform"),
        ("", "not addressed", None),
    ]


async def test_who_is_blocked_is_not_answered_whatever_the_platform_says(store: Store) -> None:
    message: Message = said("hi", place=GROUP)
    await store.place_settings.block(platform="recorded", author_id=message.author.id, at=NOON)

    assert await decided(store, Received(message=message, addressed=("Hume", "Kant"))) == [("", "blocked", None)]

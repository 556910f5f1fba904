"""An agent sends to other places where that is allowed, and never from a direct chat."""

from typing import Any

import pytest

from engine.engines import DIRECT, GROUP, engine_with, said, talked
from tertulia.engine.agents.agent import Agent
from tertulia.messages import Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

STOA = Place(platform="recorded", id="-200", kind="group", title="Stoa")
TO = "Told.\n\n# «send» to {}\n{}"
HEARD = [said("hi", 90, place=STOA), said("hi", 91, place=GROUP), said("hi", 92)]


def the_agents(*models: Scripted, may_send: tuple[str, ...] = ("Plato", "recorded:-200")) -> list[Agent]:
    zeno, plato = models
    return [
        Agent(name="Zeno", models=(zeno,), may_send=may_send, places=("recorded:-100", "direct")),
        Agent(name="Plato", models=(plato,), places=("recorded:-200", "direct")),
    ]


def shown(platform: RecordedPlatform) -> list[tuple[str, str]]:
    return [(delivery.reply.place.id, delivery.reply.text) for delivery in platform.deliveries]


@pytest.mark.parametrize("name", ["Plato", "plato", "recorded:-200", "-200", "Stoa"])
async def test_a_message_elsewhere_is_that_of_its_sender_and_is_answered_there(store: Store, name: str) -> None:
    platform, zeno = RecordedPlatform(), Scripted(TO.format(name, "Plato, come here."), name="zeno")
    agents = the_agents(zeno, Scripted("I come.", name="plato"))

    async with engine_with(Scripted(), platform, store=store, agents=agents) as engine:
        await talked(engine, *HEARD[:2], said("Zeno, call Plato", 1, place=GROUP))

    assert shown(platform) == [("-100", "Told."), ("-200", "Plato, come here."), ("-200", "I come.")]
    assert [(one.agent, one.text) for one in (await store.log.read(STOA, 0, 9))[1:]] == [
        ("Zeno", "Plato, come here."),
        ("Plato", "I come."),
    ]
    lines = "`# «send» to NAME`: a message in another place; NAME is one of: Plato, recorded:-200"
    assert [lines in str(prompt.instruction) + str(prompt.turns) for prompt in zeno.prompts] == [True]
    assert await store.check() == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("Nobody", "you may send to Plato, recorded:-200, where they are; not to 'Nobody'"),
        ("recorded:-100x", "not to 'recorded:-100x'"),
        ("recorded:7", "not to 'recorded:7'"),  # a direct chat
        ("Zeno", "not to 'Zeno'"),
    ],
)
async def test_a_model_is_told_where_it_may_not_send(store: Store, name: str, fault: str) -> None:
    platform, zeno = RecordedPlatform(), Scripted(TO.format(name, "Hello."), "# «think»\nOh.", name="zeno")

    async with engine_with(
        Scripted(), platform, store=store, agents=the_agents(zeno, Scripted(name="plato"))
    ) as engine:
        await talked(engine, *HEARD[:2], said("Zeno, call", 1, place=GROUP))

    assert shown(platform) == [("-100", "Told.")]
    assert f"`# «send» to {name}`" in zeno.prompts[1].turns[-1].text
    assert fault in zeno.prompts[1].turns[-1].text


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"may_send": ()}, "you may not send elsewhere"),
        ({}, "from a direct chat nothing is sent elsewhere"),
    ],
)
async def test_nothing_goes_elsewhere_from_a_direct_chat_or_without_leave(
    store: Store, options: dict[str, Any], fault: str
) -> None:
    platform = RecordedPlatform()
    zeno = Scripted(TO.format("Plato", "A secret."), "# «think»\nOh.", name="zeno")
    place = GROUP if options else DIRECT
    agents = the_agents(zeno, Scripted(name="plato"), **options)

    async with engine_with(Scripted(), platform, store=store, agents=agents) as engine:
        await talked(engine, *HEARD[:2], said("Zeno, tell Plato", 1, place=place))

    assert shown(platform) == [(place.id, "Told.")]
    assert fault in zeno.prompts[1].turns[-1].text
    assert "another place" not in str(zeno.prompts[0].instruction) + str(zeno.prompts[0].turns)


async def test_agents_that_call_each_other_from_place_to_place_stop_after_so_many(store: Store) -> None:
    platform, zeno = RecordedPlatform(), Scripted(TO.format("Plato", "Plato, come."), "Plato, again.", name="zeno")
    agents = [
        Agent(name="Zeno", models=(zeno,), may_send=("Plato",)),
        Agent(name="Plato", models=(Scripted("Zeno, you come.", name="plato"),), places=("recorded:-200",)),
    ]

    async with engine_with(Scripted(), platform, store=store, agents=agents) as engine:
        await talked(engine, said("Zeno?", 90, place=STOA, deleted=True), said("Zeno, call him", 1, place=GROUP))

    expected = ["Plato, come.", "Zeno, you come.", "Plato, again."]
    assert shown(platform) == [("-100", "Told."), *[("-200", text) for text in expected]]
    assert [one.reason for one in (await store.inbox.decided(STOA, most=9))[-1][1]] == ["agents in a row"]


async def test_a_message_to_who_is_here_is_said_here(store: Store) -> None:
    platform = RecordedPlatform()
    zeno = Agent(name="Zeno", models=(Scripted(TO.format("Plato", "Come."), name="zeno"),), may_send=("Plato",))

    async with engine_with(Scripted(), platform, store=store, agents=[zeno, Agent(name="Plato")]) as engine:
        await talked(engine, said("Zeno, call him", 1, place=GROUP))

    assert shown(platform) == [("-100", "Told."), ("-100", "Come.")]

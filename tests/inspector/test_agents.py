"""Agents: who speaks, what each has spent, and who is in a place since when."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import GROUP, engine_with, talked
from inspector.evening import NOW, in_group
from tertulia.context.values import Persona
from tertulia.decisions import Decision
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.store_protocols import AddedAgent, PlaceCast
from tertulia.inspector import agents, places
from tertulia.inspector.agents import KnownAgents
from tertulia.models import Scripted
from tertulia.models.calls import Call
from tertulia.platforms.web.site import Site
from tertulia.store import Store
from tertulia.store.database import Database

ADA, BOB, EVE = (
    Agent(name="Ada", persona=Persona(text="You are Ada.")),
    Agent(name="Bob", names=("Bobby",), knows="present", memory="own", places=("group",)),
    Agent(name="Eve"),
)
KNOWN = KnownAgents(cast=Cast(agents=(ADA, BOB, EVE)), models={"": ("m",), "Bob": ("small",)}, profile="layered")


@asynccontextmanager
async def an_agora(store: Store) -> AsyncIterator[Site]:
    """A group in which Ada and Bob were asked, and of which Eve was taken away."""
    model = Scripted("Yes.", "No. Ada?", "Well.", name="m")
    async with engine_with(model, store=store, agents=KNOWN.cast, now=lambda: NOW) as engine:
        await talked(engine, in_group("Ada and Bobby?", 1), in_group("hm", 2))
        yield Site(store=store, now=lambda: NOW, engine=engine, profile="layered")


async def test_agents_have_what_is_their_own_their_places_and_what_they_spent_today(store: Store) -> None:
    call = Call(purpose="answer", agent="Bob", model="m", begun_at=NOW, ended_at=NOW, status="answered")
    await store.usage.add(call, place=GROUP)
    await store.usage.add(replace(call, agent=""), place=GROUP)  # of the time when there was one
    await store.agents.join(GROUP, "Bob", at=NOW)
    await store.agents.add(AddedAgent(name="Eve", text="You are Eve.", at=NOW))

    ada, bob, eve = await agents.agents(store, KNOWN, now=NOW)

    assert (ada.name, ada.default, ada.models, ada.profile, ada.places) == ("Ada", True, ("m",), "layered", 0)
    assert (bob.called, bob.models, bob.knows, bob.memory, bob.listed) == (
        ("Bob", "Bobby"), ("small",), "present", "own", ("group",),
    )  # fmt: skip
    assert (bob.places, bob.today.calls, ada.today.calls) == (1, 1, 1)
    assert (bob.added_at, eve.added_at) == (None, NOW)


async def test_who_is_in_a_place_and_who_was(store: Store) -> None:
    async with an_agora(store) as site:
        before = await agents.present(store, await site.agents(), GROUP)
        await store.agents.set_cast(GROUP, PlaceCast(agents=("Bob", "Ada"), default="Bob"))
        await store.agents.leave(GROUP, "Eve", at=NOW + timedelta(hours=1))
        after = await agents.present(store, await site.agents(), GROUP)

    assert [(one.name, one.default, one.here, one.since) for one in before] == [
        ("Ada", True, True, NOW), ("Bob", False, True, NOW), ("Eve", False, True, NOW),
    ]  # fmt: skip
    assert [(one.name, one.default, one.here, one.until) for one in after] == [
        ("Ada", False, True, None), ("Bob", True, True, None), ("Eve", False, False, NOW + timedelta(hours=1)),
    ]  # fmt: skip


async def test_each_agent_decides_about_each_message_also_of_other_agents(store: Store) -> None:
    async with an_agora(store) as site:
        there = await agents.present(store, await site.agents(), GROUP)
        page = await places.decisions(store, GROUP, now=NOW, agents=there)

    def short(made: Decision) -> tuple[str, str]:
        return made.agent, made.reason

    assert [(one.message.text, one.message.agent, list(map(short, one.decisions))) for one in page.messages] == [
        ("Ada and Bobby?", None, [("Ada", "answered"), ("Bob", "answered")]),
        ("Yes.", "Ada", [("", "our own")]),
        ("No. Ada?", "Bob", [("Ada", "answered")]),
        ("Well.", "Ada", [("Bob", "agents in a row")]),
        ("hm", None, [("", "not addressed")]),
    ]
    assert [one.name for one in page.agents] == ["Ada", "Bob", "Eve"]


async def test_a_single_agent_is_not_spoken_of(store: Store) -> None:
    async with engine_with(Scripted("Yes."), store=store, persona=Persona(name="Gryag"), now=lambda: NOW) as engine:
        await talked(engine, in_group("Gryag?", 1))
        known = await Site(store=store, now=lambda: NOW, engine=engine).agents()

        assert agents.briefs(known) == ()
        assert await agents.present(store, known, GROUP) == ()
        assert [(one.name, one.default) for one in await agents.agents(store, known, now=NOW)] == [("Gryag", True)]


@pytest.mark.parametrize("count", [3, 40])
async def test_agents_are_read_by_a_bounded_number_of_statements(
    store: Store, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownAgents(cast=Cast(agents=tuple(Agent(name=f"a{number}x") for number in range(count))))
    for one in known.cast.agents:
        await store.agents.join(GROUP, one.name, at=NOW)
    statements = 0
    counted = {name: getattr(Database, name) for name in ("all", "one")}

    def counting(name: str) -> Any:
        def count_one(self: Database, *args: Any, **values: Any) -> Any:
            nonlocal statements
            statements += 1
            return counted[name](self, *args, **values)

        return count_one

    for name in counted:
        monkeypatch.setattr(Database, name, counting(name))

    assert len(await agents.agents(store, known, now=NOW)) == count
    assert len(await agents.present(store, known, GROUP)) == count
    assert statements < 12

"""Agents that a message means answer in turn."""

from collections.abc import Mapping
from typing import Any

from engine.engines import AT_ONCE, GROUP, engine_with, said, store_with, talked, until
from tertulia.engine.agents.agent import Agent
from tertulia.engine.store_protocols import PlaceSnapshot
from tertulia.messages import Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store


class LateInbox:
    """An inbox whose snapshots are late: what has been sent meanwhile is not in them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.inbox, name)

    async def snapshot(self, place: Place, *, most: int) -> PlaceSnapshot:
        found = await self._store.inbox.snapshot(place, most=most)
        if any(one.agent for one in found.waiting):

            async def is_sent() -> bool:
                return await self._store.log.count(place) > 1

            await until(is_sent)
        return found


async def test_an_answer_that_arrives_while_the_next_agent_reads_what_waits_is_seen_by_it(store: Store) -> None:
    models: Mapping[str, Scripted] = {name: Scripted(f"I am {name}.") for name in ("Plato", "Socrates")}
    agents = [Agent(name=name, models=(model,)) for name, model in models.items()]
    late = store_with(store, inbox=LateInbox(store))

    async with engine_with(models["Plato"], store=late, agents=agents, behavior=AT_ONCE) as engine:
        await talked(engine, said("Plato, Socrates?", place=GROUP))

    assert "I am Plato." in str(models["Socrates"].prompts[0])

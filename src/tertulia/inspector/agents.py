"""Agents: who speaks for a bot and what each has spent; who of them is in a place, and since when."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.agents.names import name_key
from tertulia.engine.inspection import Spent
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.inspector.lists import spent_in
from tertulia.inspector.places import midnight
from tertulia.inspector.values import AgentBrief, AgentPresence, AgentRow
from tertulia.messages import Place
from tertulia.models.prices import PRICES, Prices


class KnownAgents(Struct, frozen=True, kw_only=True):
    """The agents of a bot, as its own process or its config knows them."""

    cast: Cast = Cast(agents=(Agent(name=""),))
    models: Mapping[str, tuple[str, ...]] = {}  # names of their own ones, by agents; those of the bot by ""
    profile: str = ""  # of those that have none of their own


def briefs(known: KnownAgents) -> tuple[AgentBrief, ...]:
    """Return the agents where there are several; a single one is the bot."""
    cast = known.cast
    if cast.is_single:
        return ()
    return tuple(AgentBrief(name=one.name, default=one is cast.default) for one in cast.agents)


async def agents(
    store: StoreProtocol, known: KnownAgents, *, now: datetime, prices: Prices = PRICES
) -> tuple[AgentRow, ...]:
    """Return the agents, with what each has spent today, and in how many places it is."""
    cast, spent = known.cast, dict[str, Spent]()
    for row in await store.usage.listed(midnight(now).date()):
        name = row.agent or cast.default.name
        spent[name] = spent.get(name, Spent()) + spent_in(row, prices)
    added = {name_key(one.name): one for one in await store.agents.added()}
    present = await store.inspection.presences()
    return tuple(
        AgentRow(
            name=one.name,
            default=one is cast.default,
            called=tuple(dict.fromkeys(one.called)),
            models=known.models.get(one.name) or known.models.get("", ()),
            profile=one.profile.name if one.profile else known.profile,
            memory=one.memory,
            knows=one.knows,
            listed=one.places,
            added_at=added[name_key(one.name)].at if name_key(one.name) in added else None,
            places=present.get(one.name, 0),
            today=spent.get(one.name, Spent()),
        )
        for one in cast.agents
    )


async def present(store: StoreProtocol, known: KnownAgents, place: Place) -> tuple[AgentPresence, ...]:
    """Return the agents of a place, then those that were there; nobody where the bot has always had one agent."""
    cast = known.cast
    stays = await store.agents.stays(place)
    if cast.is_single and not stays:
        return ()
    chosen = await store.agents.cast(place)
    here = cast.in_place(place, listed=chosen.agents or (), default=chosen.default or "")
    names = [one.name for one in here.agents]
    found = []
    for name in dict.fromkeys((*names, *stays)):
        agent, last = cast.get(name) if name else None, stays[name][-1] if name in stays else None
        found.append(
            AgentPresence(
                name=name,
                called=tuple(dict.fromkeys(agent.called)) if agent else (),
                default=here.default is not None and name == here.default.name,
                here=name in names,
                since=last.joined_at if last else None,
                until=last.left_at if last and name not in names else None,
            )
        )
    return tuple(found)

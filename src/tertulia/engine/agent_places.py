"""Agents of places: which agents take part in a place, which is meant by default, and since when each is there."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from tertulia.engine.agents.agent import PlaceAgents
from tertulia.engine.agents.presence import ALWAYS, Presence, Stay
from tertulia.engine.identity import Identity
from tertulia.engine.places import PlaceAliases
from tertulia.engine.store_protocols import AgentStore, PlaceCast
from tertulia.messages import Place, PlaceKey
from tertulia.seen_by import SeenBy

MAX_PLACES = 10_000  # that are known at once

T = TypeVar("T")


class AgentPlaces:
    """Knows the agents of each place. What it has read is right while one process has the store.

    A single agent is everywhere, always, and nothing of it is stored. The default agent is in a place from its first
    message on, unless it was removed.
    """

    def __init__(
        self, store: AgentStore, identity: Identity, aliases: PlaceAliases, *, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._identity = identity
        self._aliases = aliases
        self._now = now
        self._casts: dict[PlaceKey, PlaceCast] = {}
        self._stays: dict[PlaceKey, Mapping[str, Sequence[Stay]]] = {}
        self._entered: dict[PlaceKey, PlaceAgents] = {}

    async def here(self, place: Place) -> PlaceAgents:
        """Return the agents of a place."""
        cast = self._identity.cast
        if cast.is_single and not (only := cast.default).places:
            return PlaceAgents(agents=cast.agents, default=only, account=only)
        chosen = PlaceCast() if cast.is_single else await self.chosen(place)
        return cast.in_place(
            place, former_ids=self._former_ids(place), listed=chosen.agents or (), default=chosen.default or ""
        )

    async def chosen(self, place: Place) -> PlaceCast:
        """Return what an administrator chose for a place."""
        key = self._aliases.current(place).key
        if key not in self._casts:
            self._bound(self._casts)[key] = await self._store.cast(place)
        return self._casts[key]

    async def choose(self, place: Place, chosen: PlaceCast) -> None:
        """Set what an administrator chose for a place. Who is new there has seen nothing of it."""
        await self.enter(place)
        await self._store.set_cast(place, chosen)
        self._casts[self._aliases.current(place).key] = chosen
        await self.enter(place)

    async def enter(self, place: Place) -> None:
        """Store who is in a place from the next message on; before that is stored."""
        if self._identity.sees_all:
            return
        here, key = await self.here(place), self._aliases.current(place).key
        if self._entered.get(key) == here:
            return
        stays = await self.stays(place)
        present = {name for name, known in stays.items() if known[-1].until is None}
        wanted = [agent.name for agent in here.agents]
        for name in present - set(wanted):
            await self._store.leave(place, name, at=self._now())
        for name in wanted:
            if name not in present:
                since = 0 if not stays and here.default and name == here.default.name else None
                await self._store.join(place, name, at=self._now(), since=since)
        self._stays.pop(key, None)
        self._bound(self._entered)[key] = here

    async def known_to(self, name: str, place: Place) -> Presence:
        """Return what an agent knows of a place."""
        agent = self._identity.agent_named(name)
        if self._identity.sees_all or not agent.seen_by.is_limited_in(place):
            return ALWAYS
        return tuple((await self.stays(place)).get(agent.name, ()))

    async def seen_by(self, place: Place) -> Sequence[SeenBy | None]:
        """Return the agents of a place for which memory is not the same; None: all those that see everything.

        In a direct chat nobody does: there it is the agent that answers.
        """
        if self._identity.sees_all:
            return (None,)
        here = await self.here(place)
        others = [one for one in [agent.seen_by for agent in here.agents] if one.present or one.own]
        first = here.default.seen_by if place.kind == "direct" and here.default else None
        return list(dict.fromkeys([first, *others]))

    async def stays(self, place: Place) -> Mapping[str, Sequence[Stay]]:
        key = self._aliases.current(place).key
        if key not in self._stays:
            self._bound(self._stays)[key] = await self._store.stays(place)
        return self._stays[key]

    def clear(self) -> None:
        """Forget what was read: a place has migrated, or the agents have changed."""
        for known in (self._casts, self._stays, self._entered):
            known.clear()

    def _former_ids(self, place: Place) -> list[str]:
        return [one.id for one in self._aliases.former_places(place)]

    @staticmethod
    def _bound(known: dict[PlaceKey, T]) -> dict[PlaceKey, T]:
        if len(known) >= MAX_PLACES:
            known.clear()
        return known

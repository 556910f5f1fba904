"""Elsewhere: where an agent may send besides the place in which it answers."""

from collections.abc import Sequence

from tertulia.engine.agents.agent import Agent
from tertulia.engine.agents.names import name_key
from tertulia.engine.places import is_identified, is_listed
from tertulia.engine.shared import Shared
from tertulia.messages import Place
from tertulia.run.journal import Run

NOT_ALLOWED = "you may not send elsewhere"
FROM_DIRECT = "from a direct chat nothing is sent elsewhere"
NOT_THERE = "you may send to {names}, where they are; not to {name!r}"


class Elsewhere:
    """Finds the place that a model names. What was said in a direct chat is sent nowhere else, and nothing to one."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def find(self, run: Run, name: str) -> Place | str | None:
        """Return where a message of a run to an agent or a place goes, or why nowhere; None where that is its place."""
        agent = self._shared.identity.agent_named(run.agent)
        if not agent.may_send:
            return NOT_ALLOWED
        if run.place.kind == "direct":
            return FROM_DIRECT
        found = await self._places(agent, name)
        if any(place.key == run.place.key for place in found):
            return None
        return found[-1] if found else NOT_THERE.format(names=", ".join(agent.may_send), name=name)

    async def _places(self, agent: Agent, name: str) -> Sequence[Place]:
        """Return the places that a name means and the agent may send to, the one that was seen last at the end."""
        store, cast, key = self._shared.store, self._shared.identity.cast, name_key(name)
        other = next((cast.get(one) for one in agent.may_send if name_key(one) == key), None)
        if other is not None:
            places = [place for place in await store.agents.places_of(other.name) if await self._is_in(other, place)]
        else:
            listed = [one for one in agent.may_send if is_identified(one)]
            known = [place for place in await store.place_settings.listed() if name in _names(place)]
            former = self._shared.aliases.former_places
            places = [one for one in known if is_listed(one, listed, [past.id for past in former(one)])]
        return [one for one in places if self._is_open(one)]

    async def _is_in(self, agent: Agent, place: Place) -> bool:
        return self._is_open(place) and agent in (await self._shared.agent_places.here(place)).agents

    def _is_open(self, place: Place) -> bool:
        is_current = self._shared.aliases.current(place).key == place.key
        has_platform = is_current and place.platform in self._shared.identity.platforms
        return has_platform and place.kind != "direct" and self._shared.allowed_places.allows(place)


def _names(place: Place) -> set[str]:
    ids = {place.id, f"{place.platform}:{place.id}", f"{place.author_namespace}:{place.id}"}
    return ids | ({place.title} if place.title else set())

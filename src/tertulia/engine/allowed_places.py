"""Allowed places: where the agent takes part at all. Elsewhere nothing is stored, learned or answered."""

import logging
from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec.structs import replace

from tertulia.engine.identity import Identity
from tertulia.engine.places import PlaceAliases, is_listed
from tertulia.engine.rooms import PLATFORM
from tertulia.messages import Author, Place
from tertulia.platform import (
    Change,
    Commanded,
    Deleted,
    Delivered,
    Edited,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
    places_of,
)

log = logging.getLogger(__name__)

MAX_LOGGED = 1000  # places that are not allowed, each with one line in the log


class AllowedPlaces:
    """Decides by `Behavior.allowed_places`. A place that has migrated is allowed by each of its ids."""

    def __init__(self, allowed: Sequence[str], identity: Identity, aliases: PlaceAliases) -> None:
        self._allowed = frozenset(allowed)
        self._identity = identity
        self._aliases = aliases
        self._logged: set[tuple[str, str]] = set()

    def filter(self, changes: Iterable[Change]) -> list[Change]:
        """Return the changes in places that are allowed. The first of another place is logged."""
        return [change for change in changes if self._allows(change)]

    def allows(self, place: Place, author: Author | None = None) -> bool:
        """Return whether a place is allowed: it is listed, the direct chat of an owner, or a room."""
        if not self._allowed or place.platform == PLATFORM or self._is_listed(place):
            return True
        if place.kind == "direct" and self._identity.is_owner(place, author or Author(id=place.id, name="")):
            return True
        if (place.platform, place.id) not in self._logged and len(self._logged) < MAX_LOGGED:
            self._logged.add((place.platform, place.id))
            log.warning(
                "nothing is stored or answered in %s:%s, which behavior.allowed_places does not list",
                place.author_namespace,
                place.id,
            )
        return False

    def _allows(self, change: Change) -> bool:
        author = _author_of(change)
        if isinstance(change, PlaceMigrated) and any(map(self._is_listed, places_of(change))):
            return True
        return any(self.allows(place, author) for place in places_of(change))

    def _is_listed(self, place: Place) -> bool:
        whole = replace(place, thread=None)
        former = (former.id for one in (place, whole) for former in self._aliases.former_places(one))
        return is_listed(place, self._allowed, former)


def _author_of(change: Change) -> Author | None:
    match change:
        case Received(message=message) | Edited(message=message) | Commanded(message=message):
            return message.author
        case Reacted(author=author) | Stopped(author=author):
            return author
        case Deleted() | Delivered() | PlaceMigrated() | PlaceLeft() | PlaceJoined():
            return None
        case _:
            assert_never(change)

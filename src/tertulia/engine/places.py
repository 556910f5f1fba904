"""Places, as the workers that share a store see them: locks, stop requests, former ids, lists, and delimiters. Pure."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from msgspec.structs import replace

from tertulia.characters import is_blank
from tertulia.errors import InvalidValue
from tertulia.messages import Place, PlaceKey

PLACE_KINDS = ("direct", "group", "channel")


def is_identified(text: str) -> bool:
    """Return whether a text is an account or a place, as `service:id`."""
    service, _, name = text.partition(":")
    return not is_blank(service) and not is_blank(name)


def require_places(what: str, listed: Iterable[str]) -> None:
    """Raise `InvalidValue` where the list *what* has something else than places and kinds of places."""
    if wrong := [one for one in listed if one not in PLACE_KINDS and not is_identified(one)]:
        raise InvalidValue(
            f"{what} must hold places as `service:id`, such as telegram:-100123, or kinds of places: "
            f"{', '.join(PLACE_KINDS)}; not {wrong[0]!r}"
        )


def is_listed(place: Place, listed: Collection[str], former_ids: Iterable[str] = ()) -> bool:
    """Return whether a list has a place, under one of its ids or by its kind; a thread is in the list of its group."""
    services, ids = (place.author_namespace, place.platform), (place.id, *former_ids)
    return place.kind in listed or any(f"{service}:{one}" in listed for service in services for one in ids)


class Ownership(Protocol):
    """Locks of places: one worker at a time answers in a place, of all processes that share the store."""

    def hold(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Hold a place until the block ends; wait while another worker holds it."""
        ...


class StopRequests(Protocol):
    """Requests to stop the run of a place, for whichever worker holds the place."""

    def request(self, place: Place) -> None:
        """Request a stop; return at once."""
        ...

    def listen(self, place: Place, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Call *stop* for each request until the block ends."""
        ...


class PlaceAliases:
    """Maps each former id of a place to its current one."""

    def __init__(self) -> None:
        self._current: dict[PlaceKey, Place] = {}  # by former keys

    def add(self, known: Mapping[PlaceKey, Place]) -> None:
        """Add places by their former keys."""
        self._current.update(known)

    def move(self, old: Place, new: Place) -> None:
        """Make *new* the current id of a place, with all its former ids."""
        before, there = self.current(old).key, self.current(new).key
        if before == there != old.key:  # the same migration again
            return
        new = new if before == there else self.current(new)
        keys = [key for key, place in self._current.items() if place.key == before]
        self._current.update(dict.fromkeys((*keys, before), new))
        self._current.pop(new.key, None)  # it has migrated back

    def has_moved(self, place: Place) -> bool:
        """Return whether this id of a place is a former one."""
        return place.key in self._current

    def current(self, place: Place) -> Place:
        """Return the place under the id that it has now."""
        return self._current.get(place.key, place)

    def former_places(self, place: Place) -> list[Place]:
        """Return the place under each of its former ids."""
        keys = [key for key, moved in self._current.items() if moved.key == place.key]
        return [replace(place, platform=platform, id=name, thread=thread) for platform, name, thread in keys]

    def is_former_message(self, place: Place, message_id: str) -> bool:
        """Return whether a message was posted under a former id of the place, and so cannot be quoted."""
        return any(message_id.startswith(f"{one.id}:") for one in self.former_places(place))


MAX_PLACES = 10_000  # whose delimiters are cached


class DelimiterCache:
    """Calls *read* once for the delimiter of a place: the word that tells our own markup from people's text."""

    def __init__(self, read: Callable[[Place], Awaitable[str]], *, max_places: int = MAX_PLACES) -> None:
        self._read = read
        self._max_places = max_places
        self._delimiters: dict[PlaceKey, str] = {}

    async def get(self, place: Place) -> str:
        """Return the delimiter of a place."""
        if place.key not in self._delimiters:
            if len(self._delimiters) >= self._max_places:
                self._delimiters.clear()
            self._delimiters[place.key] = await self._read(place)
        return self._delimiters[place.key]

    def clear(self) -> None:
        """Empty the cache: a place has migrated."""
        self._delimiters.clear()

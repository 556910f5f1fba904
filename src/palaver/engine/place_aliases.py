"""Places that go on under another id."""

from collections.abc import Mapping

from msgspec.structs import replace

from palaver.messages import Place, PlaceKey


class PlaceAliases:
    """Tells where a place that has moved goes on, and which ids it had before."""

    def __init__(self) -> None:
        self._now: dict[PlaceKey, Place] = {}  # by the old keys

    def learn(self, known: Mapping[PlaceKey, Place]) -> None:
        """Learn of places by their old keys."""
        self._now.update(known)

    def move(self, old: Place, new: Place) -> None:
        """Let a place go on as *new*, with all ids that it had before."""
        before, there = self.current(old).key, self.current(new).key
        if before == there != old.key:  # its move is told again
            return
        new = new if before == there else self.current(new)
        keys = [key for key, place in self._now.items() if place.key == before]
        self._now.update(dict.fromkeys((*keys, before), new))
        self._now.pop(new.key, None)  # it has moved back

    def has_moved(self, place: Place) -> bool:
        """Return whether a place goes on under another id than this one."""
        return place.key in self._now

    def current(self, place: Place) -> Place:
        """Return the place under the id that it has now."""
        return self._now.get(place.key, place)

    def former(self, place: Place) -> list[Place]:
        """Return the place under each id that it had before."""
        keys = [key for key, moved in self._now.items() if moved.key == place.key]
        return [replace(place, platform=platform, id=name, thread=thread) for platform, name, thread in keys]

    def is_former_message(self, place: Place, message_id: str) -> bool:
        """Return whether a message was posted before the place had its present id, under which it cannot be quoted."""
        return any(message_id.startswith(f"{one.id}:") for one in self.former(place))

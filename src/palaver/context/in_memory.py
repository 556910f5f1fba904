"""The protocols of sources, in memory: for tests, scripts and `palaver render`."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from palaver.context.edits import LogChange
from palaver.context.log import Log
from palaver.context.values import Background, Episode, Hit
from palaver.messages import Message, Place, PlaceKey
from palaver.turns import Turn

T = TypeVar("T")


class InMemoryLog(Log):
    """A log in memory: the messages of any number of places, and the turns of the agent's own."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: dict[PlaceKey, list[Message]] = {}
        self._numbers: dict[PlaceKey, dict[str, int]] = {}
        self._turns: dict[tuple[PlaceKey, str], tuple[Turn, ...]] = {}
        for message in messages:
            self.add(message)

    def add(self, message: Message, *, turns: Iterable[Turn] = ()) -> None:
        """Add a message at the end of its place, or replace the one of that id where it is."""
        key = message.place.key
        stored, numbers = self._messages.setdefault(key, []), self._numbers.setdefault(key, {})
        if message.id in numbers:
            stored[numbers[message.id]] = message
            self._turns.pop((key, message.id), None)  # it says something else now
        else:
            numbers[message.id] = len(stored)
            stored.append(message)
        if made := tuple(turns):
            self._turns[key, message.id] = made

    async def count(self, place: Place) -> int:
        return len(self._messages.get(place.key, ()))

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        return self._messages.get(place.key, [])[start:stop]

    async def number(self, message: Message) -> int | None:
        return self._numbers.get(message.place.key, {}).get(message.id)

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        numbers, stored = self._numbers.get(place.key, {}), self._messages.get(place.key, [])
        return [(number, stored[number]) for name in message_ids if (number := numbers.get(name)) is not None]

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        if not self._turns or not messages:
            return {}
        key, known = messages[0].place.key, self._turns
        return {message.id: known[key, message.id] for message in messages if (key, message.id) in known}

    async def changes(self, _: Place, __: int) -> Sequence[LogChange]:
        """Return nothing: no run has shown anything."""
        return ()

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        return await reading(self)


class InMemoryKnowledge:
    """Memory with fixed contents, the same for every target."""

    def __init__(
        self,
        *,
        hits: Iterable[Hit] = (),
        background: Background | None = None,
        episodes: Iterable[Episode] = (),
        past: str = "",
    ) -> None:
        self._hits = tuple(hits)
        self._background = background or Background()
        self._episodes = tuple(episodes)
        self._past = past

    async def relevant(self, _: Message) -> Sequence[Hit]:
        return self._hits

    async def background(self, _: Message) -> Background:
        return self._background

    async def episodes(self, _: Message) -> Sequence[Episode]:
        return self._episodes

    async def past(self, _: Place, __: int) -> str:
        return self._past

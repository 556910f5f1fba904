"""Batches: which waiting messages are answered together. Pure."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from palaver.engine.store_protocols import PlaceSnapshot, WaitingMessage
from palaver.messages import Message

Album = tuple[str, str]  # the id of an author, and that of an album


class Batch(Struct, frozen=True, kw_only=True):
    """The messages that one run answers, in the order they were sent, as they were when the snapshot was read."""

    messages: tuple[Message, ...]  # that wait
    target: Message  # the one that is replied to
    snapshot: PlaceSnapshot
    passed: tuple[Message, ...] = ()  # of its albums, which were passed over before anything spoke to us

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.messages)

    @property
    def all_ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.shown)

    @property
    def shown(self) -> tuple[Message, ...]:
        """All messages that are answered."""
        return self.passed + self.messages

    def only(self, messages: Sequence[Message]) -> "Batch | None":
        """The batch with some of its messages; the last is the target where that is not among them."""
        if not messages:
            return None
        target = next((one for one in messages if one.id == self.target.id), messages[-1])
        return Batch(messages=tuple(messages), target=target, snapshot=self.snapshot, passed=self.passed)


def album_of(message: Message) -> Album | None:
    """The album a message was sent in, if any."""
    return (message.author.id, message.album) if message.album else None


def burst_from(
    first: int, waiting: Sequence[WaitingMessage], gap: timedelta, longest: timedelta
) -> list[WaitingMessage]:
    """Return the messages of one author from number *first* on, each within *gap* of the one before.

    With one message of an album all of it belongs to them, also what came before.
    """
    author = waiting[first].message.author.id
    found = {first: waiting[first]}
    last = waiting[first]
    for number, one in enumerate(waiting[first + 1 :], first + 1):
        if one.message.author.id != author:
            continue
        if one.since - last.since > gap or one.since - waiting[first].since > longest:
            break
        last = found[number] = one
    albums = {album for one in found.values() if (album := album_of(one.message))}
    if not albums:
        return list(found.values())
    return [one for number, one in enumerate(waiting) if number in found or album_of(one.message) in albums]


def follow_ups(taken: Collection[str], waiting: Sequence[WaitingMessage], longest: timedelta) -> list[WaitingMessage]:
    """Return what the author of the *taken* messages wrote after them, within *longest* of the first.

    The burst of what is taken was over before these came.
    """
    first = next((number for number, one in enumerate(waiting) if one.message.id in taken), None)
    if first is None:
        return []
    return [
        one
        for one in waiting[first + 1 :]
        if one.message.author.id == waiting[first].message.author.id
        and one.message.id not in taken
        and one.since - waiting[first].since <= longest
    ]


def bursts_of(
    addressed: Collection[int], waiting: Sequence[WaitingMessage], gap: timedelta, longest: timedelta
) -> list[list[WaitingMessage]]:
    """The bursts that begin with the *addressed* messages; none is in two of them."""
    bursts: list[list[WaitingMessage]] = []
    taken: set[str] = set()
    for number in sorted(addressed):
        if waiting[number].message.id in taken:
            continue
        burst = [one for one in burst_from(number, waiting, gap, longest) if one.message.id not in taken]
        taken |= {one.message.id for one in burst}
        bursts.append(burst)
    return bursts


def open_albums(
    waiting: Sequence[WaitingMessage], now: datetime, gap: timedelta, longest: timedelta
) -> dict[Album, timedelta]:
    """Return the albums of which more may come, each with how long to wait for it."""
    albums: dict[Album, list[WaitingMessage]] = {}
    for one in waiting:
        if album := album_of(one.message):
            albums.setdefault(album, []).append(one)
    left = {album: time_left(sent, now, gap, longest) for album, sent in albums.items()}
    return {album: pause for album, pause in left.items() if pause > timedelta(0)}


def time_left(burst: Sequence[WaitingMessage], now: datetime, gap: timedelta, longest: timedelta) -> timedelta:
    """Return how long to wait for more of a burst; 0 where the clock was set back since."""
    left = min(burst[-1].since + gap, burst[0].since + longest) - now
    return timedelta(0) if left > gap else left

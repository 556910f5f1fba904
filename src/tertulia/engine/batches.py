"""Batches: which waiting messages are answered together. Pure.

A burst is a series of messages by one author, each within `gap` of the one before and all within `longest` of the
first. An album is never split: with one of its messages all of them are in the burst. A burst is complete when `gap`
has passed since its last message, or `longest` since its first. A batch is one complete burst, and in a group also the
follow-ups: messages by its author that came later and are not addressed to us.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from tertulia.decisions import Decision, Meant, Reason
from tertulia.engine.store_protocols import PlaceSnapshot, WaitingMessage
from tertulia.messages import Message

Album = tuple[str, str]  # the id of an author and the id of an album


class Batch(Struct, frozen=True, kw_only=True):
    """The messages that one run answers, in order, as they were when the snapshot was read."""

    messages: tuple[Message, ...]  # that wait
    target: Message  # the one that is replied to
    snapshot: PlaceSnapshot
    skipped: tuple[Message, ...] = ()  # messages of its albums that were skipped before one of them was addressed to us
    decisions: Mapping[str, Decision] = field(default_factory=dict)  # about each of the messages, by its id
    agent: str = ""  # that answers
    follows: bool = False  # whether another agent has answered the messages before
    meant: Meant = field(default_factory=dict)  # the agents that answer each of the messages after this one

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.messages)

    @property
    def all_ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.all_messages)

    @property
    def all_messages(self) -> tuple[Message, ...]:
        """All messages that the run answers, with those that were skipped before."""
        return self.skipped + self.messages

    def subset(self, messages: Sequence[Message]) -> "Batch | None":
        """Return the batch with only these messages, or None. The last becomes the target where that is left out."""
        if not messages:
            return None
        target = next((one for one in messages if one.id == self.target.id), messages[-1])
        return replace(self, messages=tuple(messages), target=target)

    def decided(self, reason: Reason) -> dict[str, Decision]:
        """Return the decisions about all messages of the batch, with one reason."""
        return {
            message.id: replace(
                self.decisions.get(message.id, Decision(reason=reason)), reason=reason, agent=self.agent
            )
            for message in self.all_messages
        }


def speaker_of(message: Message) -> tuple[str, str | None]:
    """Return who wrote a message: several agents may have one account."""
    return message.author.id, message.agent


def album_of(message: Message) -> Album | None:
    """Return the album that a message belongs to, if any."""
    return (message.author.id, message.album) if message.album else None


def burst_at(first: int, waiting: Sequence[WaitingMessage], gap: timedelta, longest: timedelta) -> list[WaitingMessage]:
    """Return the burst that begins with message number *first* of those that wait."""
    author = speaker_of(waiting[first].message)
    found = {first: waiting[first]}
    last = waiting[first]
    for number, one in enumerate(waiting[first + 1 :], first + 1):
        if speaker_of(one.message) != author:
            continue
        if one.since - last.since > gap or one.since - waiting[first].since > longest:
            break
        last = found[number] = one
    albums = {album for one in found.values() if (album := album_of(one.message))}
    if not albums:
        return list(found.values())
    return [one for number, one in enumerate(waiting) if number in found or album_of(one.message) in albums]


def follow_ups(taken: Collection[str], waiting: Sequence[WaitingMessage], longest: timedelta) -> list[WaitingMessage]:
    """Return the messages by the author of the *taken* ones that came later, within *longest* of the first."""
    first = next((number for number, one in enumerate(waiting) if one.message.id in taken), None)
    if first is None:
        return []
    return [
        one
        for one in waiting[first + 1 :]
        if speaker_of(one.message) == speaker_of(waiting[first].message)
        and one.message.id not in taken
        and one.since - waiting[first].since <= longest
    ]


def bursts_of(
    addressed: Collection[int], waiting: Sequence[WaitingMessage], gap: timedelta, longest: timedelta
) -> list[list[WaitingMessage]]:
    """Return the bursts that begin with the *addressed* messages. No message is in two of them."""
    bursts: list[list[WaitingMessage]] = []
    taken: set[str] = set()
    for number in sorted(addressed):
        if waiting[number].message.id in taken:
            continue
        burst = [one for one in burst_at(number, waiting, gap, longest) if one.message.id not in taken]
        taken |= {one.message.id for one in burst}
        bursts.append(burst)
    return bursts


def open_albums(
    waiting: Sequence[WaitingMessage], now: datetime, gap: timedelta, longest: timedelta
) -> dict[Album, timedelta]:
    """Return the incomplete albums, each with how long to wait for the rest of it."""
    albums: dict[Album, list[WaitingMessage]] = {}
    for one in waiting:
        if album := album_of(one.message):
            albums.setdefault(album, []).append(one)
    left = {album: time_left(sent, now, gap, longest) for album, sent in albums.items()}
    return {album: pause for album, pause in left.items() if pause > timedelta(0)}


def time_left(burst: Sequence[WaitingMessage], now: datetime, gap: timedelta, longest: timedelta) -> timedelta:
    """Return how long to wait until a burst is complete; 0 where the clock was set back."""
    left = min(burst[-1].since + gap, burst[0].since + longest) - now
    return timedelta(0) if left > gap else left

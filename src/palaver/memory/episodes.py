"""What happened: stretches of a conversation, each with what it was about and who was there. Pure."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Protocol

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.memory.keywords import shared_terms, term_set
from palaver.messages import Message, Place
from palaver.parts import shown_text


class Episode(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stretch of one place's messages, from number *start* up to *stop*."""

    id: str
    place: Place
    start: int
    stop: int
    began_at: datetime | None = None
    ended_at: datetime | None = None
    topic: str = ""
    summary: str = ""
    people: tuple[str, ...] = ()  # the ids of those who spoke
    tags: tuple[str, ...] = ()
    importance: float = 0.5  # from 0 to 1


class EpisodeCursor(Struct, frozen=True, kw_only=True):
    """How far a place was read, and as of when: what is kept must not be older than what has happened since."""

    place: int  # of the place itself: another one once it was forgotten and came again
    read: int  # the number of the first message that belongs to no episode yet
    count: int  # how many messages there are
    changes: int  # how often one of them was changed


class WindowPast(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said before a window begins, in short."""

    since: int  # the number of the message with which the conversation began
    start: int  # that of the first message in the window
    text: str = ""
    people: tuple[str, ...] = ()  # whose words it is made of


class Episodes(Protocol):
    """What the memory wants kept."""

    async def keep(self, episode: Episode, *, seen: EpisodeCursor) -> bool:
        """Keep an episode made of what was there at *seen*; whether that was still so. Its messages are then read."""
        ...

    async def mark(self, place: Place) -> EpisodeCursor | None: ...

    async def places(self) -> Sequence[Place]:
        """Where there are messages that belong to no episode yet, or somebody was blocked; the open stretches too."""
        ...

    async def untold(self, place: Place) -> Sequence[tuple[int, int]]:
        """The stretches before the mark that no episode tells of, or one in which somebody is blocked by now."""
        ...

    async def listed(self, place: Place) -> Sequence[Episode]:
        """The episodes of a place since it is a direct chat, or none, the oldest first; none with somebody who is
        blocked by now."""
        ...

    async def heard(self, target: Message) -> Sequence[Episode]:
        """The episodes that may be told to the author of *target* where it was written, the oldest first."""
        ...


class WindowPasts(Protocol):
    """Where the pasts of windows are stored."""

    async def find(self, place: Place, since: int, start: int) -> WindowPast | None:
        """The past of a window; its text is empty where somebody in it was blocked since."""
        ...

    async def add(self, place: Place, past: WindowPast, *, seen: EpisodeCursor) -> WindowPast:
        """Store the past of a window, unless there is one; the one that is stored, empty if anything changed since."""
        ...


class EpisodeRules(Struct, frozen=True, kw_only=True):
    """Where one episode ends and the next begins: what speaks for it is added up."""

    short_gap: float = 120.0  # seconds of silence
    gap: float = 900.0
    long_gap: float = 3600.0  # ends an episode by itself
    around: int = 8  # messages on each side whose words are compared
    words: int = 12  # telling words that each side needs, lest chance decides
    unlike: float = 0.06  # share of common words up to which two sides have nothing to do with each other
    enough: float = 0.9
    fewest: int = 4  # messages of an episode, unless a long silence ends it
    most: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.fewest <= self.most or self.around < 1:
            raise InvalidValue("an episode has at least one message, and no fewer at most than at least")

    @property
    def page(self) -> int:
        """So many messages always hold the end of an episode, if there are more of them."""
        return self.most + self.around


TOPIC_CHANGES = tuple(
    marker.strip()
    for marker in """by the way|btw|anyway|anyways|speaking of|changing the subject|change of subject|another topic|
new topic|on another note|off topic|offtopic|unrelated|different question|another question|next question|до речі|
між іншим|інше питання|інша тема|змінимо тему|нова тема|не в тему|кстати|между прочим|другой вопрос|другая тема|
сменим тему|новая тема|swoją drogą|a propos|inny temat|zmieniając temat|nowe pytanie|übrigens|apropos|anderes thema|
andere frage|por cierto|au fait|对了|顺便|換個話題|换个话题|另外|ところで|話は変わ|그런데|그건 그렇고""".split("|")
)
_OPENING = 60  # characters of a message in which a marker stands
_UNPARTED = "\u0e00"  # from here on words are not parted by spaces


def find_boundaries(messages: Sequence[Message], rules: EpisodeRules | None = None) -> list[int]:
    """The indexes at which one episode has ended and the next has begun; the last stretch stays open.

    More messages at the end change none of them.
    """
    rules = rules or EpisodeRules()
    found: list[int] = []
    start = 0
    while (stop := _end(messages, start, rules)) is not None:
        found.append(stop)
        start = stop
    return found


def _end(messages: Sequence[Message], start: int, rules: EpisodeRules) -> int | None:
    """Where the episode that begins at *start* ends; None while that cannot be known."""
    known = range(start + 1, min(len(messages), start + rules.page + 1))
    broken = next((at for at in known if _breaks(messages, start, at, rules)), None)
    best, most = start + rules.most, -1.0
    for at in range(start + 1, start + rules.most + 1):
        if at == broken:
            return at
        stop = at + rules.around if broken is None else min(at + rules.around, broken)
        if stop > len(messages):
            return None
        if at < start + rules.fewest:
            continue
        weight = _weight(messages, (start, at, stop), rules)
        if weight >= rules.enough:
            return at
        if weight >= most:
            best, most = at, weight
    return best


def _breaks(messages: Sequence[Message], start: int, at: int, rules: EpisodeRules) -> bool:
    """Whether an episode ends by itself: by a long silence, or as others listen from now on."""
    kinds = {message.place.kind == "direct" for message in messages[at - 1 : at + 1]}
    return len(kinds) > 1 or _silence(messages, start, at) >= rules.long_gap


def _weight(messages: Sequence[Message], span: tuple[int, int, int], rules: EpisodeRules) -> float:
    """What speaks for a new episode that begins in the middle of *span*."""
    start, at, stop = span
    silence = _silence(messages, start, at)
    gap = 0.6 if silence >= rules.gap else 0.25 if silence >= rules.short_gap else 0.0
    marked = 0.5 if not messages[at].deleted and changes_topic(words_of(messages[at])) else 0.0
    return gap + marked + _shift(messages[max(start, at - rules.around) : at], messages[at:stop], rules)


def _silence(messages: Sequence[Message], start: int, at: int) -> float:
    """Seconds since anything was said before *at*."""
    now = messages[at].sent_at
    if now is None or messages[at].deleted:
        return 0.0
    before = (messages[index] for index in range(at - 1, start - 1, -1))
    last = next((one.sent_at for one in before if one.sent_at is not None and not one.deleted), None)
    return 0.0 if last is None or last.tzinfo is None or now.tzinfo is None else (now - last).total_seconds()


def _shift(before: Sequence[Message], after: Sequence[Message], rules: EpisodeRules) -> float:
    """How different the words are before and after; enough by itself where they have next to nothing in common."""
    old, new = _terms(before), _terms(after)
    if min(len(old), len(new)) < rules.words:
        return 0.0
    common = shared_terms(old, new)
    return 0.5 * (1 - common) if common > rules.unlike else rules.enough


def _terms(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset[str]().union(*(term_set(words_of(message)) for message in messages if not message.deleted))


def changes_topic(text: str) -> bool:
    """Whether a message begins with words that turn to something else."""
    opening = text[:_OPENING].casefold().lstrip(" \t\n\"'«„“(-–—*@")
    return any(
        opening.startswith(marker) and (marker[-1] >= _UNPARTED or not opening[len(marker) :][:1].isalnum())
        for marker in TOPIC_CHANGES
    )


def words_of(message: Message) -> str:
    return shown_text(message.parts)


def message_ranges(start: int, stops: Sequence[int]) -> list[tuple[int, int]]:
    """The numbers between which the episodes lie that end at *stops*, the first of which begins at *start*."""
    return list(pairwise([start, *stops]))

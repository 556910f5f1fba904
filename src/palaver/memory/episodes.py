"""Episodes: parts of a conversation about one topic, and where one ends and the next begins. Pure."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Protocol

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.memory.retrieval.terms import shared_terms, term_set
from palaver.messages import Message, Place
from palaver.parts import cut_text


class Episode(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Messages of a place, from number *start* up to *stop*, that belong together."""

    id: str
    place: Place
    start: int
    stop: int
    began_at: datetime | None = None
    ended_at: datetime | None = None
    topic: str = ""
    summary: str = ""
    people: tuple[str, ...] = ()  # ids of the authors
    tags: tuple[str, ...] = ()
    importance: float = 0.5  # from 0 to 1


class EpisodeCursor(Struct, frozen=True, kw_only=True):
    """The number of the first message that is in no episode yet, and the state of the place at that moment.

    An episode is stored only if the place has not changed since.
    """

    place: int  # row of the place: another one if it was forgotten and came again
    read: int  # number of the first message that is in no episode
    count: int  # of messages
    changes: int  # counter of changed messages


class WindowPast(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A short text about the messages before a window."""

    since: int  # number of the first message of the conversation
    start: int  # number of the first message in the window
    text: str = ""
    people: tuple[str, ...] = ()  # ids of the authors it is made from


class Episodes(Protocol):
    """The store of episodes."""

    async def add(self, episode: Episode, *, seen: EpisodeCursor) -> bool:
        """Store an episode and move the cursor; return False if the place has changed since *seen*."""
        ...

    async def cursor(self, place: Place) -> EpisodeCursor | None: ...

    async def places(self) -> Sequence[Place]:
        """Places with messages that are in no episode, or whose episodes hold somebody who is blocked now."""
        ...

    async def missing_ranges(self, place: Place) -> Sequence[tuple[int, int]]:
        """Ranges before the cursor without an episode, or with one that holds somebody who is blocked now."""
        ...

    async def listed(self, place: Place) -> Sequence[Episode]:
        """Return the episodes of a place since it became direct or a group, oldest first; none with blocked authors."""
        ...

    async def visible_to(self, target: Message) -> Sequence[Episode]:
        """Return the episodes that the author of *target* may see in its place, oldest first."""
        ...


class WindowPasts(Protocol):
    """Stores, for each window, the summary of the messages before it."""

    async def find(self, place: Place, since: int, start: int) -> WindowPast | None:
        """Return the past of a window; its text is empty if one of its authors is blocked now."""
        ...

    async def add(self, place: Place, past: WindowPast, *, seen: EpisodeCursor) -> WindowPast:
        """Store the past of a window unless there is one; return the stored one, empty if the place has changed."""
        ...


class EpisodeRules(Struct, frozen=True, kw_only=True):
    """The rules by which an episode ends. Signs of a new topic are added up; at *enough*, a new episode begins."""

    short_gap: float = 120.0  # seconds of silence
    gap: float = 900.0
    long_gap: float = 3600.0  # ends an episode by itself
    around: int = 8  # messages on each side whose words are compared
    words: int = 12  # keywords that each side needs to be compared
    unlike: float = 0.06  # share of common keywords up to which the topics are different
    enough: float = 0.9
    fewest: int = 4  # messages, unless a long silence ends the episode
    most: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.fewest <= self.most or self.around < 1:
            raise InvalidValue("EpisodeRules: fewest must be from 1 to most, and around at least 1")

    @property
    def read_size(self) -> int:
        """The number of messages to read at once: so many always contain the end of an episode."""
        return self.most + self.around


TOPIC_CHANGES = tuple(
    marker.strip()
    for marker in """by the way|btw|anyway|anyways|speaking of|changing the subject|change of subject|another topic|
new topic|on another note|off topic|offtopic|unrelated|different question|another question|next question|до речі|
між іншим|інше питання|інша тема|змінимо тему|нова тема|не в тему|кстати|между прочим|другой вопрос|другая тема|
сменим тему|новая тема|swoją drogą|a propos|inny temat|zmieniając temat|nowe pytanie|übrigens|apropos|anderes thema|
andere frage|por cierto|au fait|对了|顺便|換個話題|换个话题|另外|ところで|話は変わ|그런데|그건 그렇고""".split("|")
)
_OPENING = 60  # characters of a message in which a topic change is looked for
_UNSPACED = "\u0e00"  # from here on words are not divided by spaces


def find_boundaries(messages: Sequence[Message], rules: EpisodeRules | None = None) -> list[int]:
    """Find the indexes at which one episode ends and the next begins; the last episode stays open.

    Messages that are added at the end do not change the boundaries before them. So an episode is closed only when
    `around` messages after its end are known.
    """
    rules = rules or EpisodeRules()
    found: list[int] = []
    start = 0
    while (stop := _end(messages, start, rules)) is not None:
        found.append(stop)
        start = stop
    return found


def _end(messages: Sequence[Message], start: int, rules: EpisodeRules) -> int | None:
    """Return the end of the episode that begins at *start*; None until enough messages are known."""
    known = range(start + 1, min(len(messages), start + rules.read_size + 1))
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
    """Return whether an episode must end: after a long silence, or when a direct chat becomes a group or back."""
    kinds = {message.place.kind == "direct" for message in messages[at - 1 : at + 1]}
    return len(kinds) > 1 or _silence(messages, start, at) >= rules.long_gap


def _weight(messages: Sequence[Message], span: tuple[int, int, int], rules: EpisodeRules) -> float:
    """Return the sum of signs that a new episode begins in the middle of *span*: silence, a phrase, other keywords."""
    start, at, stop = span
    silence = _silence(messages, start, at)
    gap = 0.6 if silence >= rules.gap else 0.25 if silence >= rules.short_gap else 0.0
    marked = 0.5 if not messages[at].deleted and changes_topic(cut_text(messages[at].parts)) else 0.0
    return gap + marked + _shift(messages[max(start, at - rules.around) : at], messages[at:stop], rules)


def _silence(messages: Sequence[Message], start: int, at: int) -> float:
    """Seconds between the message at *at* and the one before it."""
    now = messages[at].sent_at
    if now is None or messages[at].deleted:
        return 0.0
    before = (messages[index] for index in range(at - 1, start - 1, -1))
    last = next((one.sent_at for one in before if one.sent_at is not None and not one.deleted), None)
    return 0.0 if last is None or last.tzinfo is None or now.tzinfo is None else (now - last).total_seconds()


def _shift(before: Sequence[Message], after: Sequence[Message], rules: EpisodeRules) -> float:
    """Return how different the keywords before and after are; `enough` if they have almost nothing in common."""
    old, new = _terms(before), _terms(after)
    if min(len(old), len(new)) < rules.words:
        return 0.0
    common = shared_terms(old, new)
    return 0.5 * (1 - common) if common > rules.unlike else rules.enough


def _terms(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset[str]().union(*(term_set(cut_text(message.parts)) for message in messages if not message.deleted))


def changes_topic(text: str) -> bool:
    """Return whether a message begins with a phrase that changes the topic: "by the way"."""
    opening = text[:_OPENING].casefold().lstrip(" \t\n\"'«„“(-–—*@")
    return any(
        opening.startswith(marker) and (marker[-1] >= _UNSPACED or not opening[len(marker) :][:1].isalnum())
        for marker in TOPIC_CHANGES
    )


def message_ranges(start: int, stops: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of the episodes that end at *stops*, the first of which begins at *start*."""
    return list(pairwise([start, *stops]))

"""What is known about people: each fact with where it was said, who may hear of it, and until when it held. Pure."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import InvalidValue
from palaver.memory.patterns.engine import is_first_person
from palaver.memory.verify.duplicates import comparable_words, frame, is_past
from palaver.memory.verify.overlap import is_about_same
from palaver.messages import Author, Message, Place

MAX_FACTS = 100  # facts of one person from one place
MAX_FACT_LENGTH = 4000  # characters of one
MAX_SOURCES = 32  # messages that say so, the newest
SINGLE_KEYS = frozenset(  # one at a time
    "name home origin nationality work pronouns birthday age gender timezone family:marriage".split()
)
PAST_PREFIX = "past:"  # before the key of what no longer holds: `past:home`
SINGLE_KINDS = frozenset("taste favourite allergy diet learning plays".split())  # one of each kind: `favourite:colour`

Scope = Literal[
    "chat",  # only where it was said
    "direct",  # in the direct chats of the person it is about
    "everywhere",  # wherever that person asks; never what was said in a direct chat
]

CursorKind = Literal["facts", "episodes"]  # that messages are read for


class Subject(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person as a platform knows them; the name is what they went by when the fact was learned."""

    platform: str
    id: str
    name: str = ""


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    subject: Subject
    text: str  # a short sentence in the third person, or the words that were asked to be remembered
    place: Place  # where it was said
    sources: tuple[str, ...]  # the ids of the messages there that say so
    learned_at: datetime  # aware
    scope: Scope = "chat"
    confidence: float = 1.0  # from 0 to 1
    hearsay: bool = False  # only others say so: it never supersedes what the person themselves said
    key: str = ""  # what it is about (`name`, `home`, `work`, …): a newer fact of the same key supersedes the older one
    held_from: datetime | None = None
    held_until: datetime | None = None  # it no longer holds since
    superseded_by: str | None = None  # the id of the newer fact


class Summary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a person in a few sentences, made of what may be heard in *place* and told only there."""

    subject: Subject
    place: Place
    text: str
    facts: int  # how many it was made of
    digest: str  # of those: it is stale when this is another (`facts_digest`)
    made_at: datetime  # aware


class UnreadRange(Struct, frozen=True, kw_only=True):
    """A stretch of a place's messages, from number *start* up to *stop*, that must be read for facts."""

    place: Place
    start: int
    stop: int
    changes: int  # how often messages there had changed when it was begun


class Facts(Protocol):
    """What the memory wants kept."""

    async def learn(self, facts: Sequence[Fact], *, reading: UnreadRange | None = None) -> Sequence[Fact]:
        """Keep facts, merged with those that are known (`merge_facts`); those that were added or changed.

        With the *reading* they come from, its stretch counts as read, all or nothing; where its messages have changed
        meanwhile nothing is learned, and it stays to be read. Nothing is learned from deleted messages, nor about
        those who are blocked.
        """
        ...

    async def about(
        self,
        subject: Subject,
        *,
        place: Place,
        asked_by: Subject | None = None,
        limit: int = 50,
        at: datetime | None = None,
    ) -> Sequence[Fact]:
        """What holds now of a person and may be heard in *place* by whoever asks (`may_hear`), the most useful first.

        Where it is not said who asks: what anybody there may hear, and in a direct chat that is that person's, they.
        """
        ...

    async def listed(self, subject: Subject | None = None, place: Place | None = None) -> Sequence[Fact]:
        """All facts, also those that no longer hold, for those who look after them."""
        ...

    async def found(self, fact_id: str) -> Fact | None: ...

    async def why(self, fact_id: str) -> Sequence[Message]:
        """The messages a fact was learned from, the oldest first."""
        ...

    async def forget(self, fact_ids: Sequence[str], *, at: datetime | None = None) -> int:
        """Remove facts for good, from the file itself, with those they superseded; how many there were."""
        ...

    async def forget_all(self, subject: Subject, *, at: datetime | None = None) -> int:
        """The same for all that is known of a person, and for what happened in their direct chats; how many facts."""
        ...


class Summaries(Protocol):
    async def summary(self, subject: Subject, *, place: Place, at: datetime | None = None) -> Summary | None:
        """The summary of a person that may be told in *place*; none where a fact in it has ceased to hold by *at*."""
        ...

    async def summarise(self, summary: Summary, *, made_of: Sequence[str] = ()) -> None:
        """Keep a summary in the place of the one before."""
        ...


class Cursors(Protocol):
    """How far the messages of each place were read."""

    async def reading(self, place: Place, *, most: int | None = None) -> UnreadRange | None:
        """The oldest message of a place that has changed since it was read for facts; or what was never read.

        Of that, the first *most* messages; None where nothing is left.
        """
        ...

    async def unread(self) -> Sequence[Place]:
        """Where there is something to read for facts."""
        ...

    async def read_to(self, place: Place, what: CursorKind = "facts") -> int:
        """The number of the first message that was not read."""
        ...

    async def mark(self, place: Place, number: int, what: CursorKind = "facts") -> None: ...


def subject_of(author: Author, place: Place) -> Subject:
    return Subject(platform=place.author_namespace, id=author.id, name=author.name)


def default_scope(place: Place) -> Scope:
    return "direct" if place.kind == "direct" else "chat"


def may_hear(fact: Fact, place: Place, listener: Subject) -> bool:
    """Whether *listener* may be told a fact in *place*: the rule of privacy, which the store has as SQL."""
    if fact.place.kind == "direct" and place.kind != "direct":
        return False
    if fact.scope != "direct" and is_same_place(fact.place, place):
        return True  # everybody there was there when it was said
    if not is_same_person(fact.subject, listener) or place.author_namespace != listener.platform:
        return False
    return place.kind == "direct" if fact.scope == "direct" else fact.scope == "everywhere"


def is_same_place(one: Place, other: Place) -> bool:
    """Whether it is the same, whatever it is called; a direct chat is never the same as a group."""
    return _key(one) == _key(other)


def is_same_person(one: Subject, other: Subject) -> bool:
    return (one.platform, one.id) == (other.platform, other.id)


def is_current(fact: Fact, now: datetime) -> bool:
    """Whether a fact is told: nothing has superseded it, and it has not ceased to hold."""
    return fact.superseded_by is None and (fact.held_until is None or fact.held_until > now)


def is_single_key(key: str) -> bool:
    """Whether only one fact of that key can be true of a person at a time."""
    kind, _, each = key.partition(":")
    return key in SINGLE_KEYS or bool(each and kind in SINGLE_KINDS)


def fact_key(kind: str, text: str) -> str:
    """The key of a sentence of that kind; another one where it tells what no longer holds."""
    return PAST_PREFIX + kind if kind in SINGLE_KEYS and is_past(text) else kind


def check_fact(fact: Fact) -> Fact:
    """The fact, where it can be one."""
    if not fact.text.strip():
        raise InvalidValue("a fact needs words")
    if len(fact.text) > MAX_FACT_LENGTH:
        raise InvalidValue(f"a fact has at most {MAX_FACT_LENGTH:,} characters")
    if not fact.sources:
        raise InvalidValue("a fact needs a message that says so")
    if fact.subject.platform != fact.place.author_namespace:
        raise InvalidValue("a fact is about somebody on the platform where it was said")
    if fact.scope == "everywhere" and fact.place.kind == "direct":
        raise InvalidValue("what was said in a direct chat is not for everywhere")
    if not (math.isfinite(fact.confidence) and 0 <= fact.confidence <= 1):
        raise InvalidValue(f"a confidence is from 0 to 1, not {fact.confidence}")
    if any(moment and moment.tzinfo is None for moment in (fact.learned_at, fact.held_from, fact.held_until)):
        raise InvalidValue("the moments of a fact need a time zone")
    return fact


def merge_facts(known: Iterable[Fact], new: Iterable[Fact]) -> list[Fact]:
    """All facts, the same one once, and those that a newer one supersedes marked so."""
    facts = {fact.id: fact for fact in known}
    for fact in new:
        same = facts.get(fact.id)  # by the same call, run again, or from the same messages, read again
        changed = _merge(list(facts.values()), fact) if same is None else [_cited(same, fact)]
        facts.update((one.id, one) for one in changed)
    return list(facts.values())


def facts_to_drop(facts: Iterable[Fact], limit: int = MAX_FACTS) -> list[Fact]:
    """Those that go when only *limit* may stay: first what no longer holds, then what is doubtful, then what is old."""
    return sorted(facts, key=_worth, reverse=True)[max(limit, 0) :]


def facts_digest(facts: Iterable[Fact]) -> str:
    """What a summary was made of, in short: another one once a fact has come, gone or changed its words."""
    said = "\0".join(sorted(f"{fact.id}\0{fact.text}" for fact in facts))
    return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:16]


def _key(place: Place) -> tuple[str, str, str | None, bool]:
    return place.platform, place.id, place.thread, place.kind == "direct"


def _worth(fact: Fact) -> tuple[bool, float, datetime]:
    if fact.superseded_by is None and fact.held_until is None:
        return True, fact.confidence, fact.learned_at
    return False, 0.0, fact.held_until or fact.learned_at


def _merge(known: Sequence[Fact], new: Fact) -> list[Fact]:
    """What changes among the known facts, and the new one."""
    same = next((fact for fact in known if _is_same(fact, new)), None)
    if same is not None:
        return [_joined(same, new)]
    rivals = [fact for fact in known if _is_rival(fact, new)]
    by = _next_over(new, rivals)
    above = (None, by and by.id)
    under = [fact for fact in rivals if fact.superseded_by in above and _weight(fact) <= _weight(new)]
    return [*(_superseded(fact, new) for fact in under), _superseded(new, by) if by else new]


def _next_over(new: Fact, rivals: Sequence[Fact]) -> Fact | None:
    """The one that supersedes the new fact: among those that outweigh it and lead to one that holds, the lightest."""
    over = [fact for fact in rivals if _weight(fact) > _weight(new)]
    found, by = None, min((fact for fact in over if fact.superseded_by is None), key=_weight, default=None)
    while by is not None:
        found, by = by, min((fact for fact in over if fact.superseded_by == by.id), key=_weight, default=None)
    return found


def _weight(fact: Fact) -> tuple[bool, datetime]:
    """A person's own word before that of others, then the newer one."""
    return not fact.hearsay, _since(fact)


def _since(fact: Fact) -> datetime:
    return fact.held_from or fact.learned_at


def _superseded(old: Fact, by: Fact) -> Fact:
    return replace(old, superseded_by=by.id, held_until=max(_since(old), _since(by)))


def _cited(known: Fact, again: Fact) -> Fact:
    return replace(known, sources=tuple(dict.fromkeys((*known.sources, *again.sources)))[-MAX_SOURCES:])


def _joined(known: Fact, again: Fact) -> Fact:
    return replace(
        _cited(known, again),
        text=again.text if is_first_person(known.text) else known.text,
        confidence=max(known.confidence, again.confidence),
        hearsay=known.hearsay and again.hearsay,
        learned_at=max(known.learned_at, again.learned_at),
        key=known.key or again.key,
        held_from=known.held_from or again.held_from,
        held_until=known.held_until or again.held_until,
    )


def _is_same(known: Fact, new: Fact) -> bool:
    """Also one that no longer holds, where it is only read once more."""
    return (
        is_same_person(known.subject, new.subject)
        and is_same_place(known.place, new.place)
        and known.scope == new.scope
        and _words(known) == _words(new)
        and (known.superseded_by is None or set(new.sources) <= set(known.sources))
    )


def _is_rival(old: Fact, new: Fact) -> bool:
    """Whether both are heard by the same people and only one of them can be true."""
    if not is_same_person(old.subject, new.subject) or old.scope != new.scope:
        return False
    if old.scope == "chat" and not is_same_place(old.place, new.place):
        return False
    kept = frame(_words(new))
    if (old.key == new.key and is_single_key(new.key)) or (kept and frame(_words(old)) == kept):
        return True
    return (PAST_PREFIX + old.key == new.key or old.key == PAST_PREFIX + new.key) and is_about_same(old.text, new.text)


def _words(fact: Fact) -> tuple[str, ...]:
    return comparable_words(fact.text, fact.subject.name)

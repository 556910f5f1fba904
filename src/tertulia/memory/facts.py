"""Facts about people: where each was said, who may see it, how facts are merged and superseded. Pure."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from tertulia.memory.patterns import is_first_person
from tertulia.memory.values import Fact, Scope, Subject
from tertulia.memory.verify.comparison import comparable_words, frame, is_about_same, is_past
from tertulia.messages import Author, Place

NO_LIMIT = 100_000  # more facts than anybody has
MAX_FACTS = 100  # about one person from one place
MAX_SOURCES = 32  # of one fact, the newest
HEARSAY_FACTOR = 0.7  # on the confidence of what others say about a person
SINGLE_KEYS = frozenset(  # one value at a time
    "name home origin nationality work pronouns birthday age gender timezone family:marriage".split()
)
PAST_PREFIX = "past:"  # of the key of a fact about the past: `past:home`
SINGLE_KINDS = frozenset(
    "taste favourite allergy diet learning plays".split()
)  # one value for each key of the kind: `favourite:colour`


def subject_of(author: Author, place: Place) -> Subject:
    return Subject(platform=place.author_namespace, id=author.id, name=author.name)


def default_scope(place: Place) -> Scope:
    return "direct" if place.kind == "direct" else "chat"


def is_same_place(one: Place, other: Place) -> bool:
    """Return whether two places are the same, whatever their title; a direct chat is never the same as a group."""
    return _key(one) == _key(other)


def is_from(fact: Fact, place: Place, message_ids: Collection[str]) -> bool:
    """Return whether all sources of a fact are among these messages of *place*."""
    return bool(fact.sources) and fact.place.key == place.key and set(fact.sources) <= set(message_ids)


def is_same_person(one: Subject, other: Subject) -> bool:
    return (one.platform, one.id) == (other.platform, other.id)


def is_single_key(key: str) -> bool:
    """Return whether a person has only one current fact of that key."""
    kind, _, each = key.partition(":")
    return key in SINGLE_KEYS or bool(each and kind in SINGLE_KINDS)


def fact_key(kind: str, text: str) -> str:
    """Return the key of a fact of that kind; `past:` before it if the text is about the past."""
    return PAST_PREFIX + kind if kind in SINGLE_KEYS and is_past(text) else kind


# How facts are merged. Each new fact is compared with all known ones.
#
# - The same id: it was learned from the same messages before. Only sources are added.
# - The same words about the same person, in the same place and scope (`_is_same`): the known fact stays. It gets the
#   new sources, the higher confidence and the later moment, and is no hearsay if either is none.
# - Rivals (`_is_rival`) are seen by the same people and cannot both be true: two values of a single key, the same
#   words with another value ("likes tea", "hates tea"), or `home` and `past:home` of one town. They form a chain by
#   rank (`_rank`): what a person says outranks hearsay, then the newer fact outranks the older. Each fact is
#   superseded by the next one in the chain; the last is current. A new fact is inserted at its rank, so that an old
#   message that is read late does not supersede what was said after it.
# - Anything else is added.


def merge_facts(known: Iterable[Fact], new: Iterable[Fact]) -> list[Fact]:
    """Merge *new* facts into *known* ones; facts that a newer one supersedes are marked, none is removed."""
    facts = {fact.id: fact for fact in known}
    for fact in new:
        same = facts.get(fact.id)
        changed = _insert(list(facts.values()), fact) if same is None else [_add_sources(same, fact)]
        facts.update((one.id, one) for one in changed)
    return list(facts.values())


def facts_to_drop(facts: Iterable[Fact], limit: int = MAX_FACTS) -> list[Fact]:
    """Return the facts beyond *limit*, which are removed: the ended ones first, then the least confident, then the
    oldest.
    """
    return sorted(facts, key=_worth, reverse=True)[max(limit, 0) :]


# Merging again, after a removal. A fact stands on its sources. When it loses its last one it is removed, and the facts
# that it had superseded are freed: they are not superseded and have not ended. Each freed fact, and each fact that lost
# one of several sources, is then merged with the other facts about the person as if it were new. So the facts end as
# they would be if the lost source had never existed: another fact may supersede the freed one, or it may repeat one and
# go.


def merge_again(known: Iterable[Fact], gone: Collection[str], left: Iterable[str]) -> list[Fact]:
    """Merge the facts *left*, which lost a source, and all that these and the removed ones *gone* had superseded."""
    facts = {fact.id: fact for fact in known}
    lost = list(left)
    waiting = list(dict.fromkeys((*lost, *_free(facts, [*gone, *lost], lost))))
    while waiting:
        fact = facts.get(waiting.pop(0))
        if fact is None or fact.superseded_by is not None:
            continue
        after = {one.id: one for one in merge_facts([one for one in facts.values() if one.id != fact.id], [fact])}
        facts = {fact_id: after[fact_id] for fact_id in facts if fact_id in after}
        if fact.id not in facts:  # another says the same
            waiting += _free(facts, [fact.id], [])
    return list(facts.values())


def _free(facts: dict[str, Fact], gone: Collection[str], left: Collection[str]) -> list[str]:
    """Free the facts that one of *gone* superseded, and those *left*; return their ids."""
    found = [one for one in facts.values() if one.superseded_by and (one.superseded_by in gone or one.id in left)]
    facts.update((one.id, replace(one, superseded_by=None, held_until=None)) for one in found)
    return [one.id for one in found]


def as_own(fact: Fact, agent: str) -> Fact:
    """Return a fact as an agent's own, which has an id of its own."""
    digest = hashlib.sha256(f"{agent} {fact.id}".encode(errors="surrogatepass"))
    return replace(fact, id=digest.hexdigest()[:24], agent=agent)


def as_hearsay(fact: Fact) -> Fact:
    """Return a fact that only others say."""
    return replace(fact, hearsay=True, confidence=fact.confidence * HEARSAY_FACTOR)


def facts_digest(facts: Iterable[Fact]) -> str:
    """Return a digest of facts, which changes when one is added, removed or reworded."""
    texts = "\0".join(sorted(f"{fact.id}\0{fact.text}" for fact in facts))
    return hashlib.sha256(texts.encode(errors="surrogatepass")).hexdigest()[:16]


def fact_digest(text: str, name: str) -> str:
    """Return a digest of a fact: equal for facts that say the same in other words, and not readable."""
    words = json.dumps(comparable_words(text, name), ensure_ascii=False)
    return hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()[:16]


def _key(place: Place) -> tuple[str, str, str | None, bool]:
    return place.platform, place.id, place.thread, place.kind == "direct"


def _worth(fact: Fact) -> tuple[bool, float, datetime]:
    if fact.superseded_by is None and fact.held_until is None:
        return True, fact.confidence, fact.learned_at
    return False, 0.0, fact.held_until or fact.learned_at


def _insert(known: Sequence[Fact], new: Fact) -> list[Fact]:
    """Return the facts that change when *new* is added to the known ones, *new* included."""
    same = next((fact for fact in known if _is_same(fact, new)), None)
    if same is None:
        return _link(known, new)
    joined = _join(same, new)
    return [joined] if joined.key == same.key else _link([fact for fact in known if fact is not same], joined)


def _link(known: Sequence[Fact], new: Fact) -> list[Fact]:
    """Return the facts that change when *new*, which no known one repeats, is put into the chain of its rivals."""
    rivals = [fact for fact in known if _is_rival(fact, new)]
    above = _next_above(new, rivals)
    links = (None, above and above.id)
    below = [fact for fact in rivals if fact.superseded_by in links and _rank(fact) <= _rank(new)]
    return [*(_supersede(fact, new) for fact in below), _supersede(new, above) if above else new]


def _next_above(new: Fact, rivals: Sequence[Fact]) -> Fact | None:
    """Return the lowest-ranked fact of the current chain that outranks *new*: follow the chain down from the current
    fact.
    """
    higher = [fact for fact in rivals if _rank(fact) > _rank(new)]
    found, below = None, min((fact for fact in higher if fact.superseded_by is None), key=_rank, default=None)
    while below is not None:
        found, below = below, min((fact for fact in higher if fact.superseded_by == below.id), key=_rank, default=None)
    return found


def _rank(fact: Fact) -> tuple[bool, datetime]:
    return not fact.hearsay, _since(fact)


def _since(fact: Fact) -> datetime:
    return fact.held_from or fact.learned_at


def _supersede(old: Fact, by: Fact) -> Fact:
    return replace(old, superseded_by=by.id, held_until=max(_since(old), _since(by)))


def _add_sources(known: Fact, again: Fact) -> Fact:
    return replace(known, sources=tuple(dict.fromkeys((*known.sources, *again.sources)))[-MAX_SOURCES:])


def _join(known: Fact, again: Fact) -> Fact:
    return replace(
        _add_sources(known, again),
        text=again.text if is_first_person(known.text) else known.text,
        confidence=max(known.confidence, again.confidence),
        hearsay=known.hearsay and again.hearsay,
        learned_at=max(known.learned_at, again.learned_at),
        key=known.key or again.key,
        held_from=known.held_from or again.held_from,
        held_until=known.held_until or again.held_until,
    )


def _is_same(known: Fact, new: Fact) -> bool:
    """Return whether both say the same. A superseded fact is only the same as one from its own messages, read again."""
    return (
        is_same_person(known.subject, new.subject)
        and is_same_place(known.place, new.place)
        and known.scope == new.scope
        and _words(known) == _words(new)
        and (known.superseded_by is None or set(new.sources) <= set(known.sources))
    )


def _is_rival(old: Fact, new: Fact) -> bool:
    """Return whether both are seen by the same people and only one can be true."""
    if not is_same_person(old.subject, new.subject) or old.scope != new.scope:
        return False
    if old.scope == "chat" and not is_same_place(old.place, new.place):
        return False
    common = frame(_words(new))
    if (old.key == new.key and is_single_key(new.key)) or (common and frame(_words(old)) == common):
        return True
    return (PAST_PREFIX + old.key == new.key or old.key == PAST_PREFIX + new.key) and is_about_same(old.text, new.text)


def _words(fact: Fact) -> tuple[str, ...]:
    return comparable_words(fact.text, fact.subject.name)

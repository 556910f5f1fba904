"""The search index: entries of messages, and parsed queries. Pure."""

from collections import Counter
from collections.abc import Mapping
from datetime import date

from tertulia.characters import visible
from tertulia.memory.retrieval.dates import find_dates
from tertulia.memory.retrieval.terms import terms, terms_with_words, words
from tertulia.memory.values import (
    ASKS,
    DIGITS,
    ENDS_ASKING,
    FORWARDED,
    MAX_INDEXED_LENGTH,
    MEDIA,
    MISSING,
    IndexEntry,
    MessageText,
    Query,
)

SCALE = 50  # a weight is stored in units of 1/SCALE
PLACES = 256  # weight and first position are packed: weight * PLACES + position

_SATURATION, _LENGTH_SHARE, _USUAL_LENGTH = 1.2, 0.5, 12
_DATED = 4_000  # characters in which dates are looked for

_WHEN = frozenset("when date day коли когда kiedy wann 什么时候 いつ".split())
_COUNT = frozenset("many often long old number скільки сколько ile wieviel".split())
MAX_QUERY_LENGTH = 4_000  # characters
MAX_QUERY_TERMS = 48


def index_entry(message: MessageText) -> IndexEntry:
    found = terms(f"{message.text} {message.shown}"[:MAX_INDEXED_LENGTH])
    dates = find_dates(message.text[:_DATED], message.at.date()) if message.at else []
    stands = {term: place for place, term in reversed(list(enumerate(found)))}
    return IndexEntry(
        number=message.number,
        name=message.name,
        at=int(message.at.timestamp()) if message.at else MISSING,
        length=len(found),
        traits=_traits(visible(message.text), media=bool(message.shown)) | FORWARDED * message.forwarded,
        first=min((one.first.toordinal() for one in dates), default=MISSING),
        last=max((one.last.toordinal() for one in dates), default=MISSING),
        words={
            term: _weight(count, len(found)) * PLACES + min(stands[term], PLACES - 1)
            for term, count in Counter(found).items()
        },
    )


def _traits(text: str, *, media: bool) -> int:
    asks = "?" in text or "？" in text
    ends = text.rstrip().endswith(("?", "？"))
    digits = any(mark.isdigit() for mark in text)
    return ASKS * asks | ENDS_ASKING * ends | DIGITS * digits | MEDIA * media


def _weight(count: int, length: int) -> int:
    share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * length / _USUAL_LENGTH
    return max(1, round(SCALE * count * (_SATURATION + 1) / (count + _SATURATION * share)))


def parse_query(question: str, *, names: Mapping[str, frozenset[int]], now: date) -> Query:
    """Parse a query about a place; *names* are its authors by the terms of their names."""
    question = question[:MAX_QUERY_LENGTH]
    known = terms_with_words(question)
    every = tuple(known)
    named = tuple(term for term in every if term in names)
    found = find_dates(question, now)
    plain = frozenset(words(question))
    wanted = (tuple(term for term in every if term not in names) or every)[:MAX_QUERY_TERMS]
    return Query(
        terms=wanted,
        words=tuple(known[term] for term in wanted),
        people=frozenset(author for term in named for author in names[term]),
        names=named,
        days=(min(one.first for one in found).toordinal(), max(one.last for one in found).toordinal())
        if found
        else None,
        when=bool(plain & _WHEN),
        counted=bool(plain & _COUNT),
    )

"""What a question asks for: words, people, a time. Pure."""

from collections.abc import Mapping
from datetime import date

from msgspec import Struct

from palaver.memory.retrieval.dates import find_dates
from palaver.memory.retrieval.terms import terms_with_words, words

_WHEN = frozenset("when date day коли когда kiedy wann 什么时候 いつ".split())
MAX_QUERY_LENGTH = 4_000  # characters that are read
_COUNTED = frozenset("many often long old number скільки сколько ile wieviel".split())


MAX_QUERY_TERMS = 48  # terms of a question that are looked for: one as long as a letter is cut


class Query(Struct, frozen=True, kw_only=True):
    """A question, taken apart."""

    terms: tuple[str, ...]  # without names of people here, unless there is nothing else
    words: tuple[str, ...] = ()  # these as they were written
    people: frozenset[int] = frozenset()  # authors here who are named
    names: tuple[str, ...] = ()  # the terms they are named by
    days: tuple[int, int] | None = None  # the first and the last day it speaks of, as ordinals
    when: bool = False
    counted: bool = False


def parse_query(question: str, *, names: Mapping[str, frozenset[int]], now: date) -> Query:
    """*question* read against the people of a place: *names* are terms of their names."""
    question = question[:MAX_QUERY_LENGTH]
    known = terms_with_words(question)
    every = tuple(known)
    named = tuple(term for term in every if term in names)
    found = find_dates(question, now)
    plain = frozenset(words(question))
    kept = (tuple(term for term in every if term not in names) or every)[:MAX_QUERY_TERMS]
    return Query(
        terms=kept,
        words=tuple(known[term] for term in kept),
        people=frozenset(author for term in named for author in names[term]),
        names=named,
        days=(min(one.first for one in found).toordinal(), max(one.last for one in found).toordinal())
        if found
        else None,
        when=bool(plain & _WHEN),
        counted=bool(plain & _COUNTED),
    )

"""Parses search queries: terms, people, dates. Pure."""

from collections.abc import Mapping
from datetime import date

from msgspec import Struct

from palaver.memory.retrieval.dates import find_dates
from palaver.memory.retrieval.terms import terms_with_words, words

_WHEN = frozenset("when date day коли когда kiedy wann 什么时候 いつ".split())
_COUNT = frozenset("many often long old number скільки сколько ile wieviel".split())
MAX_QUERY_LENGTH = 4_000  # characters
MAX_QUERY_TERMS = 48


class Query(Struct, frozen=True, kw_only=True):
    """A parsed query."""

    terms: tuple[str, ...]  # without names of people in the place, unless there is nothing else
    words: tuple[str, ...] = ()  # the terms as they were written
    people: frozenset[int] = frozenset()  # authors whom the query names
    names: tuple[str, ...] = ()  # the terms that name them
    days: tuple[int, int] | None = None  # first and last day of the dates in it, as ordinals
    when: bool = False  # it asks for a date
    counted: bool = False  # it asks for a number


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

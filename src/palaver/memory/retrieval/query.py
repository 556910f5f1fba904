"""What a question asks for: words, people, a time. Pure."""

from collections.abc import Mapping
from datetime import date

from msgspec import Struct

from palaver.memory.retrieval.dates import spans
from palaver.memory.retrieval.terms import words, written

_WHEN = frozenset("when date day коли когда kiedy wann 什么时候 いつ".split())
LONGEST = 4_000  # characters that are read
_COUNTED = frozenset("many often long old number скільки сколько ile wieviel".split())


MOST = 48  # terms of a question that are looked for: one as long as a letter is cut


class Asked(Struct, frozen=True, kw_only=True):
    """A question, taken apart."""

    terms: tuple[str, ...]  # without names of people here, unless there is nothing else
    words: tuple[str, ...] = ()  # these as they were written
    people: frozenset[int] = frozenset()  # authors here who are named
    names: tuple[str, ...] = ()  # the terms they are named by
    days: tuple[int, int] | None = None  # the first and the last day it speaks of, as ordinals
    when: bool = False
    counted: bool = False


def asked(question: str, *, names: Mapping[str, frozenset[int]], now: date) -> Asked:
    """*question* read against the people of a place: *names* are terms of their names."""
    question = question[:LONGEST]
    known = written(question)
    every = tuple(known)
    named = tuple(term for term in every if term in names)
    found = spans(question, now)
    plain = frozenset(words(question))
    kept = (tuple(term for term in every if term not in names) or every)[:MOST]
    return Asked(
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

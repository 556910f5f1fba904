"""What a message is indexed as: its terms with their weights, and what can be said of it in numbers. Pure."""

from collections import Counter
from datetime import datetime

from msgspec import Struct

from palaver.characters import visible
from palaver.memory.finding.dates import spans
from palaver.memory.finding.words import terms

Posting = tuple[str, int, int]  # a term, the number of a message, weight and place of the term there, packed
Row = tuple[int, int, int, int, int, int, int]  # number, author, at, length, traits, first, last

ASKS, ENDS_ASKING, DIGITS, MEDIA = 1, 2, 4, 8
NEVER = -1
SCALE = 50  # a weight of a word in a message is kept in 1/SCALE
PLACES = 256  # where the word stands first is kept beside it: weight * PLACES + place

_SATURATION, _LENGTH_SHARE, _USUAL_LENGTH = 1.2, 0.5, 12
LONGEST = 16_000  # characters of a message that are indexed
_DATED = 4_000  # characters of it in which times are looked for


class Said(Struct, frozen=True, kw_only=True):
    """A message as it is read to be indexed."""

    number: int
    name: int  # the row of the name its author went by
    author: str  # that name
    at: datetime | None
    text: str
    shown: str = ""  # what its media show, in words

    @property
    def whole(self) -> str:
        """All of it, for an embedder."""
        shown = f" [{self.shown}]" if self.shown else ""
        return f"{self.author}: {self.text}{shown}"[:LONGEST]


class Entry(Struct, frozen=True, kw_only=True):
    """One message as it is indexed."""

    number: int
    name: int
    at: int  # seconds
    length: int
    traits: int
    first: int = NEVER  # the days it speaks of, as ordinals
    last: int = NEVER
    words: dict[str, int]  # for each term its weight, in 1/SCALE, and its place, packed


def entry(said: Said) -> Entry:
    found = terms(f"{said.text} {said.shown}"[:LONGEST])
    spoken = spans(said.text[:_DATED], said.at.date()) if said.at else []
    stands = {term: place for place, term in reversed(list(enumerate(found)))}
    return Entry(
        number=said.number,
        name=said.name,
        at=int(said.at.timestamp()) if said.at else NEVER,
        length=len(found),
        traits=_traits(visible(said.text), media=bool(said.shown)),
        first=min((one.first.toordinal() for one in spoken), default=NEVER),
        last=max((one.last.toordinal() for one in spoken), default=NEVER),
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

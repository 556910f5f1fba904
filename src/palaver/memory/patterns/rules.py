"""What a pattern over one clause is, and what may stand in its gaps. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache

from msgspec import Struct

Fits = Callable[[str], bool]

_WORD = re.compile(r"[^\W_]+(?:['&-][^\W_]+)*")
_LETTERS = re.compile(r"(?:[^\W\d_]|['-](?=\w)){1,20}")  # of a word of a name that is not known
_PARTICLES = frozenset("of de la le upon on am the и і".split())


class Rule(Struct, frozen=True, kw_only=True):
    """One way to say something of oneself. Its gaps are named groups, each checked by what is called the same."""

    key: str
    pattern: str
    text: str
    sure: float
    earnest: bool  # whether it is no statement beside laughter

    def match(self, clause: str) -> re.Match[str] | None:
        """The gaps of a clause that says it."""
        return _compiled(self.pattern).fullmatch(clause)


class Language(Struct, frozen=True, kw_only=True):
    """All that is known of how people speak of themselves in one language; words are given as alternatives."""

    rules: tuple[Rule, ...]
    fits: Mapping[str, Fits]
    said: Mapping[str, str]  # verbs of the first person, as they are said of somebody
    dated: str  # a sentence without its full stop, and a date
    times: str  # when it began, in front of a statement
    fillers: str  # what a statement may begin with
    starters: str  # what a statement begins with after one of the joints
    joints: str
    doubtful: str  # before a statement: it is none
    reported: str  # in the sentence of a statement: somebody else's, or not meant
    requests: str  # in a message: what it says is material
    echoes: str  # how a question that gives a question back begins


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Only once it is wanted: compiling all of them takes a while, and many programs learn nothing."""
    return re.compile(pattern, re.IGNORECASE)


def words_of(said: str) -> list[str]:
    return _WORD.findall(said.casefold())


def is_capital(word: str) -> bool:
    return word[:1].isupper()


def begins(word: str, stems: Iterable[str]) -> bool:
    return word.startswith(tuple(stems))


def listed(known: Collection[str], *, besides: Collection[str] = ()) -> Fits:
    """Nothing but what is known, joined as a list is."""

    def fits(said: str) -> bool:
        words = [word for word in words_of(said) if word not in besides]
        return 1 <= len(words) <= 4 and all(word in known for word in words)

    return fits


def slot_of_names(known: Collection[str], never: Collection[str], *, most: int) -> Fits:
    """A name: known, or with capitals and no other word of the language."""

    def fits(said: str) -> bool:
        own = said.split()
        words = words_of(said)
        if not own or len(own) > most or len(words) != len(own) or any(word in never for word in words):
            return False
        if words[0] in known:
            return True
        return not said.isupper() and all(is_capital(word) and _LETTERS.fullmatch(word) for word in own)

    return fits


def slot_of_places(
    known: Collection[str], never: Collection[str], *, stems: Iterable[str] = (), not_stems: Iterable[str] = ()
) -> Fits:
    """A place: known, or with capitals."""
    neither = tuple(not_stems) or ("\0",)
    beginnings = tuple(stem for stem in stems if len(stem) > 3)

    def fits(said: str) -> bool:
        own, words, folded = said.split(), words_of(said), said.casefold()
        if not words or len(own) > 4 or any(word in never for word in words) or any(c.isdigit() for c in said):
            return False
        if folded in known:
            return True
        if folded.startswith(neither) or own[0].casefold() == "the":
            return False
        if len(own) == 1 and len(folded) > 4 and folded.startswith(beginnings or ("\0",)):
            return len(folded) <= 14
        if said.isupper() and len(said) > 4:
            return False
        return is_capital(own[-1]) and all(is_capital(word) or word in _PARTICLES for word in own)

    return fits

"""Names: how people call agents, found in texts as whole words. Pure."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tertulia.characters import is_blank, one_line, visible
from tertulia.decisions import Address


@lru_cache(maxsize=256)
def name_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that finds the name as a whole word, in text that is visible and casefolded.

    Any ending may follow a name that ends in `*`. There is one such place in a pattern, at its end, so that the time it
    takes grows with the text alone.
    """
    return re.compile(rf"(?<![\w@]){_words(name)}(?!\w)")


def name_key(name: str) -> str:
    """Return what two names share that look the same to people."""
    return visible(one_line(name)).casefold()


class Called(NamedTuple):
    """A name of an agent, or a mention of it, as `@name`."""

    name: str
    agent: str
    address: Address


class NameSearch:
    """Finds names of agents in texts, all of them in one search.

    A word that begins several names begins the longest of them. Of names that overlap the longest is found. A name that
    several have is the first one's.
    """

    def __init__(self, names: Iterable[Called]) -> None:
        self._names = [one for one in names if not is_blank(one.name.strip("@*"))]
        self._names.sort(key=lambda one: len(_stem(one.name)), reverse=True)  # stable
        first = "".join(re.escape(_stem(one.name)[0]) for one in self._names)  # most words begin otherwise
        words = "|".join(f"({_words(one.name)})(?!\\w)" for one in self._names)
        # of no length, so that names may overlap
        self._pattern = re.compile(rf"(?=[{first}])(?<![\w@])(?={words})" if words else "(?!)")

    def find(self, text: str) -> list[Called]:
        """Return the names in a text that is visible and casefolded, in its order."""
        found = [(*match.span(match.lastindex or 0), match.lastindex or 0) for match in self._pattern.finditer(text)]
        if len(found) < 2:
            return [self._names[index - 1] for _, _, index in found]
        named, taken = [], bytearray(len(text))
        for begin, end, index in sorted(found, key=lambda one: one[0] - one[1]):
            if 1 not in taken[begin:end]:
                taken[begin:end] = b"\x01" * (end - begin)
                named.append((begin, self._names[index - 1]))
        return [one for _, one in sorted(named)]


def _words(name: str) -> str:
    return re.escape(_stem(name)) + (r"\w*" if name.endswith("*") else "")


def _stem(name: str) -> str:
    return visible(name.removesuffix("*")).casefold()

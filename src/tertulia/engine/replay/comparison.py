"""Comparison of two texts, word by word. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


class Word(NamedTuple):
    """A word of a text, and whether the other text does not have it there."""

    text: str
    is_changed: bool


def compare_words(before: str, after: str) -> tuple[Sequence[Word], Sequence[Word]]:
    """Return the words of both texts, marked where they differ; an empty word is the end of a paragraph."""
    old, new = _words(before), _words(after)
    left, right = [], []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left += [Word(word, kind != "equal") for word in old[i1:i2]]
        right += [Word(word, kind != "equal") for word in new[j1:j2]]
    return left, right


def _words(text: str) -> list[str]:
    return [word for number, line in enumerate(text.splitlines()) for word in ([""] * (number > 0) + line.split())]

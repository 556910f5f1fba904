"""Finds in any text what only one person said: words, names, numbers, runs of characters, sentences. Pure.

A text is taken apart into marks: `("word", "flowerpot")`, `("stem", "flowerpot")`, `("number", "380671234567")`,
`("run", "朝阳区")`, `("words", ("the", "blue", "key"))`, `("text", '"👍"')`. What only one person said is then a
difference of sets: their marks without those of everybody else. A text that has one of these marks holds their words.
Characters that nobody sees are left out before: they part no words.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from palaver.characters import INVISIBLE, visible
from palaver.memory.retrieval.terms import STOPWORDS, TOKEN, folded, is_unparted, stem
from palaver.store.values import dumps

Mark = tuple[str, Any]  # its kind, and what it is

SENTENCE = 5  # words in a row that are one person's wherever they stand
LONGEST_RUN = 6  # characters of a script without blanks that are compared together
_FEWEST_DIGITS = 4
_LEAST_STEMMED = 5  # letters; the stem of a shorter word is that of too many others
_STOP = frozenset(map(folded, STOPWORDS))
_NUMBER = re.compile(r"\d(?:[ \u00a0().-]{0,2}\d)+")
_CALENDAR = re.compile(r"(?:19|20)\d\d(?:(?:0[1-9]|1[0-2])(?:[0-3]\d)?)?")  # a year or a day: anybody's
_TEXT = re.compile(r'"text":("(?:[^"\\]|\\.)*")')
_ESCAPE = re.compile(r"\\+(?:u[0-9a-fA-F]{4}|.)")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_CODED = re.compile(r"(?<!\\)\\++u([0-9a-fA-F]{4})")


class PersonWords:
    """What is looked for in texts that people did not write themselves."""

    def __init__(self, marks: Iterable[Mark], media: Iterable[str] = ()) -> None:
        self._marks = frozenset(marks)
        self._sizes = sizes(self._marks)
        self._media = tuple(f'"unique_id":{dumps(unique_id)}' for unique_id in media if unique_id)

    def __bool__(self) -> bool:
        return bool(self._marks or self._media)

    def end(self, text: str) -> int | None:
        """Where the first of it ends in *text*, which may be JSON."""
        found = self._first(_plain(text))
        if found is None and _CODED.search(text):  # characters that somebody else's JSON has as numbers
            decoded = _CODED.sub(lambda code: chr(int(code.group(1), 16)), text)
            found = len(text) if self._first(_plain(decoded)) is not None else None
        ends = [text.find(wanted) + len(wanted) for wanted in self._media if wanted in text]
        whole = (at.end() for at in _TEXT.finditer(text) if ("text", at.group(1)) in self._marks)
        return min((end for end in (found, *ends, next(whole, None)) if end is not None), default=None)

    def is_in(self, *texts: str | None) -> bool:
        return bool(self) and any(text is not None and self.end(text) is not None for text in texts)

    def _first(self, text: str) -> int | None:
        if not self._marks:
            return None
        found = min((end for mark, end in marks_of(text, self._sizes) if mark in self._marks), default=None)
        return None if found is None else _with_invisible(text, found)


def sizes(marks: Iterable[Mark]) -> frozenset[int]:
    """How many words the sequences among *marks* have."""
    return frozenset(len(what) for kind, what in marks if kind == "words")


def said_marks(text: str, sequences: Collection[int] = (SENTENCE,)) -> set[Mark]:
    """The marks of a text that somebody wrote: its words, its sentences, and a short one as a whole."""
    found = {mark for mark, _ in marks_of(text, sequences)}
    words = _words(text)
    if 1 < len(words) < SENTENCE:
        found.add(("words", tuple(words)))
    if not any(kind in ("word", "number", "run") for kind, _ in found) and text.strip():
        found.add(("text", dumps(text)))
    return found


def name_marks(name: str) -> set[Mark]:
    """The marks of what somebody is called: each word of it, and all of them in a row."""
    words = _words(name)
    whole: set[Mark] = {("words", tuple(words))} if len(words) > 1 else set()
    return {mark for mark, _ in marks_of(name)} | whole


def marks_of(text: str, sequences: Collection[int] = ()) -> Iterator[tuple[Mark, int]]:
    """The marks of *text* and where each ends in what is visible of it; sequences of words of these sizes only."""
    text = visible(text)
    words: list[tuple[str, int]] = []
    for found in TOKEN.finditer(text):
        token, end = found.group(), found.end()
        if is_unparted(token):
            yield from _runs(token, found.start())
            continue
        for word in folded(token).split("'"):
            words.append((word, end))
            yield from ((mark, end) for mark in _of_word(word))
    for found in _NUMBER.finditer(text):
        digits = "".join(filter(str.isdigit, found.group()))
        yield from ((mark, found.end()) for mark in _of_number(digits))
    for size in sequences:
        for start in range(len(words) - size + 1):
            some = words[start : start + size]
            yield ("words", tuple(word for word, _ in some)), some[-1][1]


def _of_word(word: str) -> Iterator[Mark]:
    if word.isdigit():
        yield from _of_number(word)
        return
    if len(word) < 2 or word in _STOP:
        return
    yield "word", word
    if len(word) >= _LEAST_STEMMED:
        yield "stem", stem(word)


def _of_number(digits: str) -> Iterator[Mark]:
    if len(digits) >= _FEWEST_DIGITS and not _CALENDAR.fullmatch(digits):
        yield "number", digits
        if len(digits) > 9:
            yield "number", digits[-9:]  # of a telephone, with the prefix of its country or without


def _runs(token: str, at: int) -> Iterator[tuple[Mark, int]]:
    for size in range(2, LONGEST_RUN + 1):
        for start in range(len(token) - size + 1):
            yield ("run", token[start : start + size]), at + start + size


def _words(text: str) -> list[str]:
    return [
        word
        for found in TOKEN.findall(visible(text))
        if not is_unparted(found)
        for word in folded(found).split("'")
        if word
    ]


def _with_invisible(text: str, end: int) -> int:
    """Where in *text* the first *end* of its visible characters end."""
    for hidden in _INVISIBLE.finditer(text):
        if hidden.start() >= end:
            break
        end += 1
    return end


def _plain(json: str) -> str:
    """*json* with blanks for what it escapes, of the same length."""
    return _ESCAPE.sub(lambda found: " " * len(found.group()), json) if "\\" in json else json

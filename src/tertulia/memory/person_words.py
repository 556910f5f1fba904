"""Finds in any text what only one person said: words, names, numbers, runs of characters, sentences. Pure.

A text is taken apart into marks: `("word", "flowerpot")`, `("stem", "flowerpot")`, `("number", "380671234567")`,
`("run", "朝阳区")`, `("words", ("the", "blue", "key"))`, `("text", "👍")`. What only one person said is then a
difference of sets: their marks without those of everybody else. A text with one of these marks has their words.
Invisible characters are removed first, so they split no words.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from tertulia.characters import visible
from tertulia.memory.retrieval.terms import STOPWORDS, TOKEN, fold, is_unspaced, stem
from tertulia.parts import Media, Part, Text

Mark = tuple[str, Any]  # its kind, and what it is

SENTENCE = 5  # words of a sequence that identifies a person in any place
LONGEST_RUN = 6  # characters of a run in a script without blanks
ORDINARY = 3  # users that make a word ordinary
_FEWEST_DIGITS = 4
_LEAST_STEMMED = 5  # letters; the stem of a shorter word is that of too many others
_ONLY_WORDS = ("word", "stem", "run")  # marks that may as well be anybody's; a number, a name or a sentence is not
_FAR_DIGITS, _FAR_LETTERS, _FAR_RUN = 5, 6, 5  # what a mark needs to be theirs where they never were
_STOP = frozenset(map(fold, STOPWORDS))
_NUMBER = re.compile(r"\d(?:[ \u00a0().-]{0,2}\d)+")
_CALENDAR = re.compile(r"(?:19|20)\d\d(?:(?:0[1-9]|1[0-2])(?:[0-3]\d)?)?")  # a year or a date is not personal


class PersonWords:
    """The marks and media of a person, searched for in other texts."""

    def __init__(self, marks: Iterable[Mark], media: Iterable[str] = ()) -> None:
        self._marks = frozenset(marks)
        self._media = frozenset(media)
        self._sizes = sizes(self._marks)

    def __bool__(self) -> bool:
        return bool(self._marks or self._media)

    def is_in(self, *texts: str | None) -> bool:
        return bool(self) and any(text and self._is_in(text) for text in texts)

    def is_in_json(self, *texts: str | None) -> bool:
        """Return whether one of these JSON values has a mark in one of its texts."""
        return bool(self) and any(text and self.is_in(*strings_in(json.loads(text))) for text in texts)

    def _is_in(self, text: str) -> bool:
        if text in self._media or ("text", text) in self._marks:
            return True
        return any(mark in self._marks for mark in marks_of(text, self._sizes))


class Vocabulary(Struct, frozen=True, kw_only=True):
    """The words to search for in each place."""

    near: Mapping[int, PersonWords]  # where the person was
    far: PersonWords  # everywhere else

    def at(self, place: int | None) -> PersonWords:
        return self.far if place is None else self.near.get(place, self.far)


class Said:
    """What a person said, and which of it others use too."""

    def __init__(self, called: Iterable[str]) -> None:
        self.called = {mark for name in called for mark in name_marks(name)}
        self.first: dict[Mark, int] = {}  # the marks of their messages, each with the first message that has it
        self.derived: set[Mark] = set()
        self.media: set[str] = set()
        self.ordinary: set[Mark] = set()
        self._used: defaultdict[int, set[Mark]] = defaultdict(set)
        self._users: defaultdict[Mark, set[Hashable]] = defaultdict(set)

    def add(self, row: int, parts: Iterable[Part]) -> None:
        """Add the content of a message of the person."""
        self.media |= {part.unique_id for part in parts if isinstance(part, Media) and part.unique_id}
        for mark in {mark for text in texts_of(parts) for mark in said_marks(text)}:
            self.first[mark] = min(row, self.first.get(mark, row))

    def add_derived(self, text: str) -> None:
        """Add a text that was made of their messages: its sentences and numbers, no single words."""
        found = {mark for mark in said_marks(text) if mark[0] not in ("word", "stem")}
        self.derived |= {mark for mark in found if mark[0] != "run" or len(mark[1]) >= _FAR_RUN}

    def marks(self) -> set[Mark]:
        return {*self.first, *self.called, *self.derived}

    def subtract(self, texts: Iterable[tuple[int, Hashable, str]]) -> None:
        """Note which marks others use, by place and author."""
        wanted = self.marks()
        lengths = sizes(wanted)
        for place, author, text in texts:
            for mark in said_marks(text, lengths) & wanted:
                self._used[place].add(mark)
                if len(self._users[mark]) < ORDINARY:
                    self._users[mark].add(author)

    def subtract_configured(self, texts: Iterable[str]) -> None:
        """Note the marks of the instructions and tools of the agent."""
        self.ordinary |= {mark for text in texts for mark in marks_of(text)}

    def subtract_ours(self, texts: Iterable[tuple[int, str]]) -> None:
        """Note which marks the agent used before the person, by the rows of its messages."""
        for row, text in texts:
            self.ordinary |= {mark for mark in marks_of(text) if self.first.get(mark, 0) > row}

    def vocabulary(self, near: Iterable[int], titles: Callable[[int], Iterable[str]]) -> Vocabulary:
        """Return the marks that only the person used, for each place.

        A mark that anybody else wrote in the same place is excluded there. Ordinary words are excluded everywhere: what
        three others use, what the agent used before the person, or what its instructions and tools contain.
        """
        marks, media = self.marks(), self.media
        ordinary = self.ordinary | {mark for mark, people in self._users.items() if len(people) >= ORDINARY}
        words: dict[int, PersonWords] = {}
        for place in near:
            common = ordinary | {mark for title in titles(place) for mark in marks_of(title)}
            weak = {mark for mark in common if mark[0] in _ONLY_WORDS} - self.called
            words[place] = PersonWords(marks - self._used[place] - weak, media)
        anywhere = set().union(*self._used.values())
        distinct = {mark for mark in marks if self._is_distinct(mark)}
        return Vocabulary(near=words, far=PersonWords(distinct - anywhere, media))

    def _is_distinct(self, mark: Mark) -> bool:
        """Return whether a mark identifies the person even in places where they never were."""
        kind, what = mark
        if kind == "words":
            return len(what) >= SENTENCE or mark in self.called
        if kind == "number":
            return len(what) >= _FAR_DIGITS
        if kind == "run":
            return len(what) >= _FAR_RUN
        return kind == "word" and mark in self.called and len(what) >= _FAR_LETTERS and not what.isalpha()


def sizes(marks: Iterable[Mark]) -> frozenset[int]:
    """Return the lengths of the word sequences among *marks*."""
    return frozenset(len(what) for kind, what in marks if kind == "words")


def said_marks(text: str, sequences: Collection[int] = (SENTENCE,)) -> set[Mark]:
    """Return the marks of a written text: its words, word sequences, and a short text as a whole."""
    found = set(marks_of(text, sequences))
    words = _words(text)
    if 1 < len(words) < SENTENCE:
        found.add(("words", tuple(words)))
    if not any(kind in ("word", "number", "run") for kind, _ in found) and text.strip():
        found.add(("text", text))
    return found


def name_marks(name: str) -> set[Mark]:
    """Return the marks of a name: each word, and all words as a sequence."""
    words = _words(name)
    whole: set[Mark] = {("words", tuple(words))} if len(words) > 1 else set()
    return {*marks_of(name), *whole}


def marks_of(text: str, sequences: Collection[int] = ()) -> Iterator[Mark]:
    """Yield the marks of *text*; word sequences of these sizes only."""
    text = visible(text)
    for token in TOKEN.findall(text):
        if is_unspaced(token):
            for size in range(2, LONGEST_RUN + 1):
                yield from (("run", token[start : start + size]) for start in range(len(token) - size + 1))
        else:
            for word in fold(token).split("'"):
                yield from _of_word(word)
    for number in _NUMBER.findall(text):
        yield from _of_number("".join(filter(str.isdigit, number)))
    words = _words(text) if sequences else []
    for size in sequences:
        yield from (("words", tuple(words[start : start + size])) for start in range(len(words) - size + 1))


def texts_of(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the texts of parts, and the names and descriptions of media."""
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Media):
            yield from filter(None, (part.label, part.rendered_text))


def strings_in(value: Any) -> Iterator[str]:
    """Yield all texts in a value of JSON."""
    match value:
        case str():
            yield value
        case dict():
            for name, one in value.items():
                yield name
                yield from strings_in(one)
        case list() | tuple():
            for one in value:
                yield from strings_in(one)


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


def _words(text: str) -> list[str]:
    return [
        word
        for found in TOKEN.findall(visible(text))
        if not is_unspaced(found)
        for word in fold(found).split("'")
        if word
    ]

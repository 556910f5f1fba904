"""Compares the words of a fact with those of a text, however they are inflected. Pure.

The content words of a fact are those that say something about one person: no function words ("is", "and"), no verbs
that are said about many ("lives", "likes"), not the person's own names. Two words are the same if they begin alike and
differ in a few letters at the end; vowels that alternate in Slavic languages count as one. Where words are not divided
by spaces, pairs of characters are compared.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from palaver.memory.sentences import words_in

MIN_OVERLAP = 0.6  # of the content words
COMMON_PREFIX = 3  # letters that two forms of one word have in common at least

_HAN_AND_KIN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
_LATER_WORD = re.compile(r"(?<=[\s(\"«'/-])[^\W\d_][\w'-]*")
_PAIR = re.compile(r"(?<![^\W\d_])[^\W\d_]++(?:/[^\W\d_]++)++")  # she/her
_NUMBER = re.compile(r"\d+")
_ALTERNATING = str.maketrans({"і": "о", "е": "о", "є": "о", "ї": "о", "ё": "о", "ь": None, "'": None, "ó": "o"})

_COUNTS = {
    word: str(number)
    for number, words in enumerate(
        (
            "one один одна одне",
            "two two два дві двоє двох pair",
            "three три троє трьох",
            "four чотири четверо",
            "five п'ять п'ятеро",
            "six шість",
            "seven сім",
            "eight вісім",
            "nine дев'ять",
            "ten десять",
        ),
        1,
    )
    for word in words.split()
}

_FUNCTION = frozenset(
    """
    a an the is are was were be been being has have had does do did not no doesn't don't isn't can't and or of in at on
    to for from with by as that who which this it its his her their they he she them him user person
    old years year currently now very really also some any about than more less into out up one own there since until
    still would longer anymore formerly previously former once never
    і й та а або в у на з із зі до від для про за по під над не ні що як це той та має є мати його її їх він вона вони
    воно користувач користувачка людина років роки рік вже зараз дуже також ще раніше колись більше станом
    и или в во на с со к ко о об от для не он она они его её их это лет имеет
    jest ma w z na i nie się der die das ist hat und nicht in aus
    """.split()
)
_COMMON = frozenset(
    """
    named called name goes
    lives live living works work working likes like loves love dislikes hates enjoys prefers wants owns using uses
    eats eat drinks drink plays play learns learning pronouns speaks used lived worked studied left quit stopped
    speak studies study born moved favourite favorite birthday age job profession
    звати звуть ім'я живе мешкає проживає працює любить подобається ненавидить обожнює хоче родом
    народився народилася народилась переїхав переїхала
    жив жила мешкав мешкала працював працювала вчився вчилася кинув кинула звільнився звільнилася
    їсть їм п'є п'ю пити їсти вживає грає вивчає вчить
    улюблений улюблена улюблене улюблені займенники вік розмовляє вчиться навчається день народження
    живет живёт работает любит зовут mieszka pracuje lubi wohnt arbeitet mag heißt
    """.split()
)  # said about many people
_GENERIC = _FUNCTION | _COMMON


def is_same_word(one: str, other: str) -> bool:
    """Return whether two words are forms of one word."""
    if one == other:
        return True
    one, other = one.translate(_ALTERNATING), other.translate(_ALTERNATING)
    shorter = min(len(one), len(other))
    shared = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    return shared >= max(COMMON_PREFIX, shorter - 2) and max(len(one), len(other)) - shared <= 4


def is_supported(fact: str, clauses: Collection[str], *, called: Collection[str] = ()) -> bool:
    """Return whether clauses contain what a fact says: all its names and numbers, and most of its content words.

    *called* are the names of the person the fact is about; clauses need not contain them.
    """
    written = " ".join(clauses).casefold()
    words = WordIndex.of(_counted(_words(written)))
    own = {word for name in called for word in _words(name)}
    proper = [word for word in _LATER_WORD.findall(fact) if word[0].isupper()]
    names = [word for found in proper for word in _words(found) if word not in own | _GENERIC]
    pairs = _PAIR.findall(fact.casefold())
    if not all(map(words.contains, [*names, *_NUMBER.findall(fact)])) or not all(map(written.__contains__, pairs)):
        return False
    grams = _grams(fact)
    if grams:
        return sum(gram in written for gram in grams) >= MIN_OVERLAP * len(grams)
    content = content_words(fact, called=called)
    return bool(content or pairs) and sum(map(words.contains, content)) >= MIN_OVERLAP * len(content)


def is_about_same(one: str, other: str) -> bool:
    """Return whether one fact contains all content words of the other."""
    few, many = sorted((content_words(one), content_words(other)), key=len)
    index = WordIndex.of(many)
    return all(map(index.contains, few))


class FactWords(Struct, frozen=True, kw_only=True):
    """The content words of a fact."""

    words: tuple[str, ...]
    pairs: tuple[str, ...]  # of characters, where words are not divided by spaces

    @classmethod
    def of(cls, text: str, *, called: Collection[str] = ()) -> "FactWords":
        grams = _grams(text)
        return cls(words=() if grams else tuple(content_words(text, called=called)), pairs=tuple(grams))


def may_contain(text: str, facts: Iterable[FactWords]) -> list[bool]:
    """Return for each fact whether *text* may contain its words: a quick test, since most texts do not."""
    folded = text.casefold().translate(_ALTERNATING)
    return [all(_prefix(word) in folded for word in one.words if not word.isdigit()) for one in facts]


def contains_any(text: str, facts: Iterable[FactWords]) -> bool:
    """Return whether *text* contains all content words of one of the facts, in any form."""
    return any(map(WordIndex.in_text(text).contains_fact, facts))


def content_words(text: str, *, called: Iterable[str] = ()) -> list[str]:
    """Return the content words of a fact, without the names of the person it is about."""
    own = {word for name in called for word in _words(name)}
    return [word for word in _counted(_words(text)) if word not in own | _GENERIC]


def common_words(text: str) -> list[str]:
    """Return the words of a fact that are said about many people, mostly verbs."""
    return [word for word in _words(text) if word in _COMMON]


def has_any_word(text: str, words: Iterable[str]) -> bool:
    return any(map(WordIndex.in_text(text).contains, words))


class WordIndex(Struct, frozen=True, kw_only=True):
    """Words of a text, among which others are looked up in any form."""

    by_prefix: Mapping[str, Collection[str]]
    numbers: Collection[str]
    text: str = ""  # in lower case

    @classmethod
    def of(cls, words: Collection[str], text: str = "") -> "WordIndex":
        by_prefix: dict[str, set[str]] = {}
        for word in words:
            by_prefix.setdefault(_prefix(word), set()).add(word)
        return cls(
            by_prefix=by_prefix, numbers={number for word in words for number in _NUMBER.findall(word)}, text=text
        )

    @classmethod
    def in_text(cls, text: str) -> "WordIndex":
        lowered = text.casefold()
        return cls.of(_counted(_words(lowered)), lowered)

    def contains_fact(self, fact: FactWords) -> bool:
        """Return whether all content words of a fact are there, in any form."""
        if not (fact.words or fact.pairs):
            return False
        return all(map(self.contains, fact.words)) and all(map(self.text.__contains__, fact.pairs))

    def contains_exactly(self, word: str) -> bool:
        return word in self.by_prefix.get(_prefix(word), ())

    def contains(self, word: str) -> bool:
        near = self.by_prefix.get(_prefix(word), ())
        if word.isdigit():
            return word in near or word in self.numbers
        return any(is_same_word(word, other) for other in near)


def _grams(text: str) -> list[str]:
    return [run[at : at + 2] for run in _HAN_AND_KIN.findall(text) for at in range(len(run) - 1)]


def _prefix(word: str) -> str:
    return word.translate(_ALTERNATING)[:COMMON_PREFIX]


def _words(text: str) -> list[str]:
    return words_in(text.replace("-", " "))


def _counted(words: Iterable[str]) -> list[str]:
    return [_COUNTS.get(word, word) for word in words]

"""Whether words that somebody said bear out a sentence about them, in inflected languages too. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from palaver.memory.sentences import words_in

MIN_OVERLAP = 0.6  # of the words that count
COMMON_PREFIX = 3  # letters that two forms of one word begin with

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
)  # what is said of many people, and tells little of one
_GENERIC = _FUNCTION | _COMMON


def is_same_word(one: str, other: str) -> bool:
    """Whether two words are one, but for how they are inflected."""
    if one == other:
        return True
    one, other = one.translate(_ALTERNATING), other.translate(_ALTERNATING)
    shorter = min(len(one), len(other))
    shared = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    return shared >= max(COMMON_PREFIX, shorter - 2) and max(len(one), len(other)) - shared <= 4


def is_supported(text: str, said: Collection[str], *, called: Collection[str] = ()) -> bool:
    """Whether *said*, pieces of what somebody wrote, hold what *text* says: its numbers and names, most of its words.

    *called* are the names of the person it is about, which need not be said.
    """
    heard = " ".join(said).casefold()
    words = WordIndex.of(_counted(_words(heard)))
    own = {word for name in called for word in _words(name)}
    proper = [word for word in _LATER_WORD.findall(text) if word[0].isupper()]
    names = [word for found in proper for word in _words(found) if word not in own | _GENERIC]
    pairs = _PAIR.findall(text.casefold())
    if not all(map(words.holds, [*names, *_NUMBER.findall(text)])) or not all(map(heard.__contains__, pairs)):
        return False
    told = content_words(text, called=called)
    grams = _grams(text)
    if grams:
        return sum(gram in heard for gram in grams) >= MIN_OVERLAP * len(grams)
    return bool(told or pairs) and sum(map(words.holds, told)) >= MIN_OVERLAP * len(told)


def is_about_same(one: str, other: str) -> bool:
    """Whether all that one sentence speaks of is spoken of in the other."""
    few, many = sorted((content_words(one), content_words(other)), key=len)
    heard = WordIndex.of(many)
    return all(heard.holds(word) for word in few)


class FactWords(Struct, frozen=True, kw_only=True):
    """What a sentence about somebody comes down to."""

    words: tuple[str, ...]  # that count
    pairs: tuple[str, ...]  # of characters, where words are not parted

    @classmethod
    def of(cls, text: str, *, called: Collection[str] = ()) -> "FactWords":
        grams = _grams(text)
        return cls(words=() if grams else tuple(content_words(text, called=called)), pairs=tuple(grams))


def may_contain(said: str, sentences: Iterable[FactWords]) -> list[bool]:
    """For each sentence whether *said* can hold its words at all: at once, as most of what is said does not."""
    folded = said.casefold().translate(_ALTERNATING)
    return [all(_beginning(word) in folded for word in one.words if not word.isdigit()) for one in sentences]


def contains_any(said: str, sentences: Iterable[FactWords]) -> bool:
    """Whether *said* holds all the words that count of one of the sentences, in whatever form."""
    return any(map(WordIndex.in_text(said).has, sentences))


def content_words(text: str, *, called: Iterable[str] = ()) -> list[str]:
    """The words of a sentence about somebody that count: no names of theirs, nothing that is said of anybody."""
    own = {word for name in called for word in _words(name)}
    return [word for word in _counted(_words(text)) if word not in own | _GENERIC]


def common_words(text: str) -> list[str]:
    """The words of a sentence about somebody that are said of many: what they do, rather than with what."""
    return [word for word in _words(text) if word in _COMMON]


def has_any_word(said: str, words: Iterable[str]) -> bool:
    heard = WordIndex.of(_counted(_words(said.casefold())))
    return any(map(heard.holds, words))


class WordIndex(Struct, frozen=True, kw_only=True):
    """Words among which others are looked up, however they are inflected."""

    begun: Mapping[str, Collection[str]]  # by the letters that no inflection changes
    numbers: Collection[str]
    text: str = ""  # in lower case

    @classmethod
    def of(cls, words: Collection[str], text: str = "") -> "WordIndex":
        begun: dict[str, set[str]] = {}
        for word in words:
            begun.setdefault(_beginning(word), set()).add(word)
        return cls(begun=begun, numbers={number for word in words for number in _NUMBER.findall(word)}, text=text)

    @classmethod
    def in_text(cls, said: str) -> "WordIndex":
        lowered = said.casefold()
        return cls.of(_counted(_words(lowered)), lowered)

    def has(self, sentence: FactWords) -> bool:
        """Whether all the words that count of a sentence are there, in whatever form."""
        told = bool(sentence.words or sentence.pairs)
        return told and all(map(self.holds, sentence.words)) and all(map(self.text.__contains__, sentence.pairs))

    def holds_exactly(self, word: str) -> bool:
        return word in self.begun.get(_beginning(word), ())

    def holds(self, word: str) -> bool:
        near = self.begun.get(_beginning(word), ())
        if word.isdigit():
            return word in near or word in self.numbers
        return any(is_same_word(word, other) for other in near)


def _grams(text: str) -> list[str]:
    return [run[at : at + 2] for run in _HAN_AND_KIN.findall(text) for at in range(len(run) - 1)]


def _beginning(word: str) -> str:
    return word.translate(_ALTERNATING)[:COMMON_PREFIX]


def _words(text: str) -> list[str]:
    return words_in(text.replace("-", " "))


def _counted(words: Iterable[str]) -> list[str]:
    return [_COUNTS.get(word, word) for word in words]

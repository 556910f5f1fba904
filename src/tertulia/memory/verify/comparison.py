"""Compares facts with texts, and facts with each other, by their words. Pure.

The content words of a fact are those that say something about one person: no function words ("is", "and"), no verbs
that are said about many ("lives", "likes"), not the person's own names. Two words are the same if they begin alike and
differ in a few letters at the end; vowels that alternate in Slavic languages count as one. Where words are not divided
by spaces, pairs of characters are compared.

Three comparisons of two facts, from strict to loose. `comparable_words` are equal for the same fact in other words: "I
am shy" and "Is shy." `frame` is equal for two values of one thing: "Likes tea" and "Hates tea", "Has 2 cats" and "Has 3
cats". `is_past` tells a fact about the past from the present one: "Used to live in Lviv".
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from tertulia.characters import visible
from tertulia.memory.patterns import Language, find_facts, grammar, is_first_person
from tertulia.memory.sentences import words_in
from tertulia.messages import Author, Message, Place
from tertulia.parts import Text

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

_ARTICLES = frozenset("a an the".split())
_THEM = frozenset(
    "user person he she they користувач користувачка людина він вона вони пользователь он она они".split()
)
_NEGATIONS = frozenset("not no never longer anymore не ні ніколи більше вже нет никогда больше уже".split())
_AUXILIARIES = frozenset("do does did can ca може now again тепер зараз знову".split())
LIKING_VERBS = frozenset(
    """
    like likes love loves adore adores enjoy enjoys dislike dislikes hate hates despise despises loathe loathes stand
    любить обожнює полюбляє ненавидить подобається подобаються терпіти терпить переносить любит ненавидит обожает
    """.split()
)
_BEFORE_COUNTS = frozenset("is has have aged turned owns має є йому їй виповнилось имеет ему ей".split())

_PAST = re.compile(
    r"\b(?:no longer|any ?more|(?:does|do|is|did)(?:n['\u2019]t| not)|used to|formerly|former|previously|lived|worked|"
    r"until|quit|left|(?:більше|вже|уже) не|не (?:живе|мешкає|проживає|працює|є)|раніше|колись|"
    r"(?:жи|мешка|прожива|працюва)(?:в|ла|ли)|звільни(?:вся|лася|лась))\b",
    re.IGNORECASE,
)
_SHORTENED = re.compile(r"n['\u2019\u02bc]t\b")
_WORD = re.compile(r"\w+(?:['\u2019\u02bc]\w+)*[+#]*")  # C++ is not C
_COUNT = re.compile(r"\d{1,3}")
_SOMEBODY = Author(id="1", name="")
_SOMEWHERE = Place(platform="", id="1", kind="direct")


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


def normalize(text: str, name: str = "") -> tuple[str, ...]:
    """Return the words of a fact, without case, punctuation and articles, and without the person it begins with."""
    folded = _folded(text)
    words = [word for word in _WORD.findall(folded) if word not in _ARTICLES]
    called = _WORD.findall(_folded(name))
    if called and words[: len(called)] == called:
        words = words[len(called) :]
    elif words and words[0] in _THEM:
        words = words[1:]
    return tuple(words) or (folded,)


@lru_cache(maxsize=2_048)
def frame(words: tuple[str, ...]) -> tuple[str, ...]:
    """Reduce a fact so that “Likes tea” and “Hates tea” are equal: no negation, one word for liking, `#` for counts."""
    content = [word for word in words if word not in _NEGATIONS and word not in _AUXILIARIES]
    counts = (before in _BEFORE_COUNTS and _COUNT.fullmatch(word) for before, word in pairwise(("", *content)))
    return tuple("#" if is_count else _stem(word) for word, is_count in zip(content, counts, strict=True))


def is_past(text: str) -> bool:
    """Return whether a fact tells what a person no longer does."""
    return bool(_PAST.search(text))


def _folded(text: str) -> str:
    return _SHORTENED.sub(" not", " ".join(unicodedata.normalize("NFKC", visible(text)).casefold().split()))


def _stem(word: str) -> str:
    """Cut the `s` of an English verb or the last vowels of a Slavic case; all liking becomes `like`."""
    if word in LIKING_VERBS:
        return "like"
    if len(word) > 3 and word.isascii():
        return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return word.rstrip("аяуюиіеєої") if len(word) > 3 else word


@lru_cache(maxsize=2_048)  # a new fact is compared with all about its person
def comparable_words(text: str, name: str) -> tuple[str, ...]:
    """Return the words by which two facts about a person are compared, in the third person and without the name."""
    return normalize(to_third_person(text), name)


def to_third_person(text: str) -> str:
    """Put a sentence into the third person: as patterns learn it if that keeps all content words, else by its verb."""
    if not is_first_person(text):
        return text
    found = find_facts(Message(id="1", place=_SOMEWHERE, author=_SOMEBODY, parts=(Text(text=text),)))
    if len(found) == 1 and _keeps_content(found[0].text, text):
        return found[0].text
    return _conjugate(text)


def _keeps_content(fact: str, own: str) -> bool:
    """Return whether a fact contains all content words of the sentence it was made from."""
    index = WordIndex.in_text(fact)
    words = (word for word in content_words(own) if word not in grammar().first_person_words)
    return all(index.contains(grammar().verbs.get(word, word)) for word in words)


def _conjugate(text: str) -> str:
    """Put the verb of a sentence in the first person into the third; a verb that is not known stays as it is."""
    for language in grammar().languages:
        found = re.match(r"\W*" + language.first_person.verb, text, re.IGNORECASE)
        verb = _third_person(" ".join(found[1].casefold().replace("\u2019", "'").split()), language) if found else ""
        if found and verb:
            return verb + text[found.end() :]
    return text


def _third_person(verb: str, language: Language) -> str:
    rules = language.first_person
    if known := rules.irregular.get(verb) or language.verbs.get(verb):
        return known
    if rules.unchanged and re.fullmatch(rules.unchanged, verb):
        return verb
    for ending, replacement in rules.endings:
        if re.search(ending, verb):
            return re.sub(ending, replacement, verb, count=1)
    return ""

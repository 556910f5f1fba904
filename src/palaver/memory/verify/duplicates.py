"""Whether two sentences about somebody say the same, or the same with another value. Pure."""

import re
import unicodedata

from palaver.characters import visible
from palaver.memory.patterns.engine import conjugate, find_facts, grammar, is_first_person
from palaver.memory.verify.overlap import WordIndex, content_words
from palaver.messages import Author, Message, Place
from palaver.parts import Text

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


def normalize(text: str, name: str = "") -> tuple[str, ...]:
    """The words that count: without case, punctuation, articles, and who it is about where it begins with that."""
    folded = _folded(text)
    words = [word for word in _WORD.findall(folded) if word not in _ARTICLES]
    called = _WORD.findall(_folded(name))
    if called and words[: len(called)] == called:
        words = words[len(called) :]
    elif words and words[0] in _THEM:
        words = words[1:]
    return tuple(words) or (folded,)


def frame(words: tuple[str, ...]) -> tuple[str, ...]:
    """What stays the same when something becomes untrue, is liked no more, or a count changes."""
    kept = [word for word in words if word not in _NEGATIONS and word not in _AUXILIARIES]
    return tuple("#" if _is_count(kept, place) else _stem(word) for place, word in enumerate(kept))


def is_past(text: str) -> bool:
    """Whether a sentence about somebody tells what they no longer do."""
    return bool(_PAST.search(text))


def _folded(text: str) -> str:
    return _SHORTENED.sub(" not", " ".join(unicodedata.normalize("NFKC", visible(text)).casefold().split()))


def _is_count(words: list[str], place: int) -> bool:
    return bool(place and words[place - 1] in _BEFORE_COUNTS and _COUNT.fullmatch(words[place]))


def _stem(word: str) -> str:
    """Without the s that `does not` takes from a verb, or the vowel of a case; one word for all kinds of liking."""
    if word in LIKING_VERBS:
        return "like"
    if len(word) > 3 and word.isascii():
        return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return word.rstrip("аяуюиіеєої") if len(word) > 3 else word


def comparable_words(text: str, name: str) -> tuple[str, ...]:
    """The words by which two facts about somebody of that name are the same, whoever is said to speak."""
    return normalize(to_third_person(text), name)


def to_third_person(text: str) -> str:
    """The sentence as patterns learn it, where that says all of it; else with its verb as it is said of somebody."""
    if not is_first_person(text):
        return text
    found = find_facts(Message(id="1", place=_SOMEWHERE, author=_SOMEBODY, parts=(Text(text=text),)))
    if len(found) == 1 and _says_all(found[0].text, text):
        return found[0].text
    return conjugate(text)


def _says_all(told: str, own: str) -> bool:
    """Whether a sentence holds all the telling words of the one it was made of."""
    heard = WordIndex.in_text(told)
    words = (word for word in content_words(own) if word not in grammar().first_person_words)
    return all(heard.holds(grammar().verbs.get(word, word)) for word in words)

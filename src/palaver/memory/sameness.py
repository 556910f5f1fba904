"""Whether two sentences about somebody say the same, or the same with another value. Pure."""

import re
import unicodedata

from palaver.characters import visible

_ARTICLES = frozenset("a an the".split())
_THEM = frozenset(
    "user person he she they користувач користувачка людина він вона вони пользователь он она они".split()
)
_NEGATIONS = frozenset("not no never longer anymore не ні ніколи більше вже нет никогда больше уже".split())
_AUXILIARIES = frozenset("do does did can ca може now again тепер зараз знову".split())
LIKING = frozenset(
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


def normal(text: str, name: str = "") -> tuple[str, ...]:
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


def is_of_the_past(text: str) -> bool:
    """Whether a sentence about somebody tells what they no longer do."""
    return bool(_PAST.search(text))


def _folded(text: str) -> str:
    return _SHORTENED.sub(" not", " ".join(unicodedata.normalize("NFKC", visible(text)).casefold().split()))


def _is_count(words: list[str], place: int) -> bool:
    return bool(place and words[place - 1] in _BEFORE_COUNTS and _COUNT.fullmatch(words[place]))


def _stem(word: str) -> str:
    """Without the s that `does not` takes from a verb, or the vowel of a case; one word for all kinds of liking."""
    if word in LIKING:
        return "like"
    if len(word) > 3 and word.isascii():
        return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return word.rstrip("аяуюиіеєої") if len(word) > 3 else word

"""Compares facts: whether two sentences about a person say the same, or the same with another value. Pure.

Three comparisons, from strict to loose. `comparable_words` are equal for the same fact in other words: "I am shy" and
"Is shy." `frame` is equal for two values of one thing: "Likes tea" and "Hates tea", "Has 2 cats" and "Has 3 cats".
`is_past` tells a fact about the past from the present one: "Used to live in Lviv".
"""

import re
import unicodedata

from palaver.characters import visible
from palaver.memory.patterns import Language, find_facts, grammar, is_first_person
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
    """Return the words of a fact, without case, punctuation and articles, and without the person it begins with."""
    folded = _folded(text)
    words = [word for word in _WORD.findall(folded) if word not in _ARTICLES]
    called = _WORD.findall(_folded(name))
    if called and words[: len(called)] == called:
        words = words[len(called) :]
    elif words and words[0] in _THEM:
        words = words[1:]
    return tuple(words) or (folded,)


def frame(words: tuple[str, ...]) -> tuple[str, ...]:
    """Reduce a fact so that “Likes tea” and “Hates tea” are equal: no negation, one word for liking, `#` for counts."""
    content = [word for word in words if word not in _NEGATIONS and word not in _AUXILIARIES]
    return tuple("#" if _is_count(content, place) else _stem(word) for place, word in enumerate(content))


def is_past(text: str) -> bool:
    """Return whether a fact tells what a person no longer does."""
    return bool(_PAST.search(text))


def _folded(text: str) -> str:
    return _SHORTENED.sub(" not", " ".join(unicodedata.normalize("NFKC", visible(text)).casefold().split()))


def _is_count(words: list[str], place: int) -> bool:
    return bool(place and words[place - 1] in _BEFORE_COUNTS and _COUNT.fullmatch(words[place]))


def _stem(word: str) -> str:
    """Cut the `s` of an English verb or the last vowels of a Slavic case; all liking becomes `like`."""
    if word in LIKING_VERBS:
        return "like"
    if len(word) > 3 and word.isascii():
        return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return word.rstrip("аяуюиіеєої") if len(word) > 3 else word


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

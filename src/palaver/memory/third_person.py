"""A sentence in the first person as it is said of somebody: “I am shy” and “Is shy.” are one fact. Pure."""

import re

from palaver.memory.patterns.english import ENGLISH
from palaver.memory.patterns.reading import facts_in
from palaver.memory.patterns.ukrainian import UKRAINIAN
from palaver.memory.sameness import normal
from palaver.memory.support import Heard, told_words
from palaver.messages import Author, Message, Place
from palaver.parts import Text

_FIRST = re.compile(
    r"\W*(?:i|i['\u2019](?:m|ve)|im|my|я|мене|мені|(?:у|в) мене|мій|моя|моє|мої)(?![\w'\u2019])", re.IGNORECASE
)
_ENGLISH = re.compile(r"\W*i(?:['\u2019]|\s+)([a-z]+(?:['\u2019]t)?)\b", re.IGNORECASE)
_UKRAINIAN = re.compile(r"\W*я\s+((?:не\s+)?[\w'\u2019]+)", re.IGNORECASE)
_VERBS = {
    "am": "is",
    "m": "is",
    "have": "has",
    "ve": "has",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
    **dict.fromkeys("can could will would should must may might was had did went got can't cannot".split()),
    **ENGLISH.said,
}
_AS_IT_IS = re.compile(r"\w+(?:ed|ly)|\w*['\u2019]t|never|also|always|often|usually|really|still")
_HISSING = re.compile(r"(?:s|x|z|ch|sh|o)$")
_OWN = frozenset("i i'm im i've my am got я мене мені мій моя моє мої".split())  # what is not told of somebody
_SAID = {**ENGLISH.said, **UKRAINIAN.said}
_SOMEBODY = Author(id="1", name="")
_SOMEWHERE = Place(platform="", id="1", kind="direct")


def same_words(text: str, name: str) -> tuple[str, ...]:
    """The words by which two facts about somebody of that name are the same, whoever is said to speak."""
    return normal(in_third_person(text), name)


def is_in_first_person(text: str) -> bool:
    return bool(_FIRST.match(text))


def in_third_person(text: str) -> str:
    """The sentence as patterns learn it, where that says all of it; else with its verb as it is said of somebody."""
    if not is_in_first_person(text):
        return text
    found = facts_in(Message(id="1", place=_SOMEWHERE, author=_SOMEBODY, parts=(Text(text=text),)))
    if len(found) == 1 and _says_all(found[0].text, text):
        return found[0].text
    return _conjugated(text)


def _says_all(told: str, own: str) -> bool:
    """Whether a sentence holds all the telling words of the one it was made of."""
    heard = Heard.in_text(told)
    words = (_SAID.get(word, word) for word in told_words(own) if word not in _OWN)
    return all(map(heard.holds, words))


def _conjugated(text: str) -> str:
    if begun := _ENGLISH.match(text):
        return _english(begun[1].casefold().replace("\u2019", "'")) + text[begun.end() :]
    begun = _UKRAINIAN.match(text)
    verb = UKRAINIAN.said.get(" ".join(begun[1].casefold().split())) if begun else None
    return verb + text[begun.end() :] if begun and verb else text


def _english(verb: str) -> str:
    if verb in _VERBS:
        return _VERBS[verb] or verb
    if _AS_IT_IS.fullmatch(verb):
        return verb
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if _HISSING.search(verb) else f"{verb}s"

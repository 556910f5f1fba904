"""What may not be learned, whoever says it was said: each guard gives its reason. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from palaver.memory.markers import (
    CLAUSES,
    FIRST,
    INSTRUCTION,
    MOMENTARY,
    NEGATED,
    OWN_REPORT,
    PASSING,
    SAYS_NO,
    SAYS_WISH,
    SECOND,
    SENTENCES,
    THIRD,
    WISHED,
)
from palaver.memory.patterns import IDIOMS, REPORTED, REQUESTS, before_echo, pieces
from palaver.memory.rules import words_of
from palaver.memory.sameness import normal
from palaver.memory.secrets import holds_secret
from palaver.memory.statements import Sentence, own_words, sentences, spoken
from palaver.memory.support import alike, is_borne_out
from palaver.messages import Author, Message

LONGEST = 240  # characters of a fact
LEAST_SURE = 0.5
LASTING = frozenset({"home", "work", "studies", "learning"})  # what holds now holds for long
MOST_SOURCES = 6  # messages of a claim that are looked at
RECALLED = 4  # words from which on a text is known again within another


class Claim(Struct, frozen=True, kw_only=True):
    """A fact as a model says that it was said."""

    sources: tuple[int, ...]  # numbers of messages
    about: str  # the id of a person
    key: str
    text: str
    confidence: float


class Heard(Struct, frozen=True, kw_only=True):
    """What a claim is held against."""

    messages: Mapping[int, Message]  # the new ones by their numbers
    people: Mapping[str, Author]  # by id
    recalled: tuple[str, ...] = ()  # what the agent was reminded of


def refusal(claim: Claim, heard: Heard) -> str:
    """Why a claim is not learned; nothing where it may be."""
    return next((reason for guard in GUARDS if (reason := guard(claim, heard))), "")


def unfit_to_keep(text: str, recalled: Sequence[str]) -> str:
    """Why these words are no fact, wherever they come from; nothing where they may be."""
    if not text.strip() or len(text) > LONGEST or "\n" in text.strip():
        return "is no short sentence"
    if holds_secret(text):
        return "is a secret"
    if any(INSTRUCTION.search(sentence) for sentence in SENTENCES.split(text)):
        return "is an instruction"
    if normal(text) in _normal(tuple(recalled)):
        return "was recalled"
    return ""


def sources_of(claim: Claim, heard: Heard) -> list[Message]:
    """Those among its messages in which its subject speaks, or is spoken of."""
    numbers = islice(dict.fromkeys(claim.sources), MOST_SOURCES)
    named = [heard.messages[number] for number in numbers if number in heard.messages]
    return [message for message in named if any(_words_about(claim, message, heard))]


def is_recalled(message: Message, recalled: Sequence[str]) -> bool:
    """Whether a message says again what the agent was reminded of."""
    return bool(recalled) and _says_again(spoken(message), tuple(recalled))


@lru_cache(maxsize=256)
def _says_again(text: str, recalled: tuple[str, ...]) -> bool:
    said = " ".join(normal(own_words(text)))
    return any(len(words) >= RECALLED and " ".join(words) in said for words in _normal(recalled))


@lru_cache(maxsize=16)
def _normal(texts: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset(map(normal, texts))


@lru_cache(maxsize=256)
def _sentences(text: str) -> tuple[str, ...]:
    """What a text states, sentence by sentence."""
    return tuple(filter(None, map(_stated, sentences(text))))


def _words_are_fit(claim: Claim, heard: Heard) -> str:
    return unfit_to_keep(claim.text, heard.recalled)


def _is_sure(claim: Claim, heard: Heard) -> str:
    return "" if LEAST_SURE <= claim.confidence <= 1 else "is doubtful"


def _will_last(claim: Claim, heard: Heard) -> str:
    passes = PASSING.search(claim.text) or (claim.key not in LASTING and MOMENTARY.search(claim.text))
    return "will have passed" if passes else ""


def _has_sources(claim: Claim, heard: Heard) -> str:
    known = claim.sources and all(number in heard.messages for number in claim.sources)
    return "" if known else "is from no new message"


def _is_about_a_person(claim: Claim, heard: Heard) -> str:
    person = heard.people.get(claim.about)
    return "" if person and person.persona is None else "is about nobody who is here"


def _is_said_by_or_of_them(claim: Claim, heard: Heard) -> str:
    return "" if sources_of(claim, heard) else "was not said by or of them"


def _is_borne_out(claim: Claim, heard: Heard) -> str:
    said = [words for message in sources_of(claim, heard) for words in _words_about(claim, message, heard)]
    person = heard.people[claim.about]
    return "" if is_borne_out(claim.text, said, called=[person.name]) else "is not what was said"


GUARDS: tuple[Callable[[Claim, Heard], str], ...] = (
    _words_are_fit,
    _is_sure,
    _will_last,
    _has_sources,
    _is_about_a_person,
    _is_said_by_or_of_them,
    _is_borne_out,
)


def _words_about(claim: Claim, message: Message, heard: Heard) -> Iterator[str]:
    """The clauses of *message* that can be about the subject of the claim, as the claim has it."""
    person = heard.people.get(claim.about)
    if person is None or is_recalled(message, heard.recalled):
        return
    for text in _sentences(spoken(message)):
        if not _is_of(person, text, message, heard) or _is_open(text, claim.text):
            continue
        for clause in CLAUSES.split(text):
            if not _is_meant(clause, claim.text):
                continue
            if message.author.id != person.id or _is_own(clause, claim.text, heard, person):
                yield clause


def _stated(sentence: Sentence) -> str:
    """A sentence without the question in it, and without phrases that only look like a condition."""
    text = IDIOMS.sub(" ", sentence.text)
    return ", ".join(piece for _, piece in before_echo(list(pieces(text)))) if sentence.asks else text


def _is_open(text: str, told: str) -> bool:
    """Whether it is wished, reported or only material, and told as if it were so."""
    if REQUESTS.search(text) or REPORTED.search(OWN_REPORT.sub(" ", text)):
        return True
    return bool(WISHED.search(text)) and not SAYS_WISH.search(told)


def _is_meant(clause: str, told: str) -> bool:
    return bool(clause) and (not NEGATED.search(clause) or bool(SAYS_NO.search(told)))


def _is_of(person: Author, text: str, message: Message, heard: Heard) -> bool:
    """Whether somebody speaks of themselves, or clearly of another: by name, by username or in reply to them."""
    if message.author.id == person.id:
        return True
    if FIRST.search(text):
        return False
    if is_named(person, text, heard.people.values()):
        return True
    quoted = message.reply_to.author if message.reply_to else None
    return quoted is not None and quoted.id == person.id and bool(SECOND.search(text))


def is_named(person: Author, text: str, people: Iterable[Author]) -> bool:
    """Whether *text* names that person, and nobody else who is called the same."""
    words = words_of(text)
    if person.username and re.search(rf"(?<!\w){re.escape(person.username)}(?!\w)", text, re.IGNORECASE):
        return True
    called = words_of(person.name)[:1]
    if not called or len(called[0]) < 3 or not any(alike(called[0], word) for word in words):
        return False
    return not any(other.id != person.id and words_of(other.name)[:1] == called for other in people)


def _is_own(clause: str, told: str, heard: Heard, person: Author) -> bool:
    """Whether an author speaks of themselves in it: a clause about another counts where the claim names that one."""
    if FIRST.match(clause.strip()):
        return True
    found = THIRD.match(clause)
    if found is not None:
        return found["kin"] is not None and any(alike(found["kin"].casefold(), word) for word in words_of(told))
    others = (one for one in heard.people.values() if one.id != person.id)
    first = words_of(clause)[:1]
    return not any(first and words_of(one.name)[:1] == first and first[0] not in words_of(told) for one in others)

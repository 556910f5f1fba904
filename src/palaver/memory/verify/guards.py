"""What may not be learned, whoever says it was said: each guard gives its reason. Pure."""

import re
from collections.abc import Callable, Mapping
from itertools import islice

from msgspec import Struct

from palaver.memory.patterns.engine import grammar
from palaver.memory.sentences import words_in
from palaver.memory.verify.clauses import supporting_clauses
from palaver.memory.verify.markers import MOMENTARY, PASSING, is_instruction
from palaver.memory.verify.overlap import is_supported
from palaver.messages import Author, Message
from palaver.redaction import API_KEY

MAX_LENGTH = 240  # characters of a fact
MIN_CONFIDENCE = 0.5
LASTING_KEYS = frozenset({"home", "work", "studies", "learning"})  # what holds now holds for long
MAX_CLAIM_SOURCES = 6  # messages of a claim that are looked at

_SECRET_NAME = re.compile(
    r"\b(?:passwords?|passphrase|passcode|pin(?:[- ]?code)?|cvv|cvc|seed phrase|private key|secret key|api[ _-]?key|"
    r"access token|auth token|2fa|otp|ssn|social security|credit card|card number|iban|"
    r"парол\w*|пін(?:-?код\w*)?|секретн\w+ ключ\w*|номер\w* карт\w+|паспорт\w*|іпн|рнокпп|кодов\w+ "
    r"слов\w+|пароль|passwort|kennwort|"
    r"hasło)\b",
    re.IGNORECASE,
)
_LONG_NUMBER = re.compile(r"(?:\d[ -]?){9,}")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,}")


class Claim(Struct, frozen=True, kw_only=True):
    """A fact as a model says that it was said."""

    sources: tuple[int, ...]  # numbers of messages
    about: str  # the id of a person
    key: str
    text: str
    confidence: float


class Evidence(Struct, frozen=True, kw_only=True):
    """What a claim is held against."""

    messages: Mapping[int, Message]  # the new ones by their numbers
    people: Mapping[str, Author]  # by id


def verify_claim(claim: Claim, heard: Evidence) -> list[Message] | str:
    """Those among its messages in which its subject speaks or is spoken of, or why the claim is not learned."""
    if reason := next((reason for guard in GUARDS if (reason := guard(claim, heard))), ""):
        return reason
    person = heard.people[claim.about]
    named = [heard.messages[number] for number in islice(dict.fromkeys(claim.sources), MAX_CLAIM_SOURCES)]
    said = [(one, words) for one in named if (words := [*supporting_clauses(person, claim.text, one, heard.people)])]
    if not said:
        return "was not said by or of them"
    if not is_supported(claim.text, [word for _, words in said for word in words], called=[person.name]):
        return "is not what was said"
    return [message for message, _ in said]


def refusal_reason(claim: Claim, heard: Evidence) -> str:
    """Why a claim is not learned; nothing where it may be."""
    found = verify_claim(claim, heard)
    return found if isinstance(found, str) else ""


def unfit_reason(text: str) -> str:
    """Why these words are no fact, wherever they come from; nothing where they may be."""
    if not text.strip() or len(text) > MAX_LENGTH or "\n" in text.strip():
        return "is no short sentence"
    if holds_secret(text):
        return "is a secret"
    if is_instruction(text):
        return "is an instruction"
    return ""


def holds_secret(text: str) -> bool:
    """Whether *text* names a secret, or holds what looks like one."""
    return any(pattern.search(text) for pattern in (_SECRET_NAME, API_KEY, _LONG_NUMBER, _IBAN))


def _words_are_fit(claim: Claim, heard: Evidence) -> str:
    return unfit_reason(claim.text)


def _is_sure(claim: Claim, heard: Evidence) -> str:
    return "" if MIN_CONFIDENCE <= claim.confidence <= 1 else "is doubtful"


def _is_a_name(claim: Claim, heard: Evidence) -> str:
    titled = claim.key == "name" and not grammar().titles.isdisjoint(words_in(claim.text))
    return "is no name" if titled else ""


def _will_last(claim: Claim, heard: Evidence) -> str:
    passes = PASSING.search(claim.text) or (claim.key not in LASTING_KEYS and MOMENTARY.search(claim.text))
    return "will have passed" if passes else ""


def _has_sources(claim: Claim, heard: Evidence) -> str:
    known = claim.sources and all(number in heard.messages for number in claim.sources)
    return "" if known else "is from no new message"


def _is_about_a_person(claim: Claim, heard: Evidence) -> str:
    person = heard.people.get(claim.about)
    return "" if person and person.is_person else "is about nobody who is here"


GUARDS: tuple[Callable[[Claim, Evidence], str], ...] = (
    _words_are_fit,
    _is_a_name,
    _is_sure,
    _will_last,
    _has_sources,
    _is_about_a_person,
)

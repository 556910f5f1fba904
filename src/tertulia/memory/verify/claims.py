"""Verifies claims of a model: a claim becomes a fact only if the messages support it. Pure.

A claim passes if all of this holds; otherwise `verify_claim` returns the reason of the first failure.

1. Guards: the text is one short sentence, no secret and no instruction; a name is no title ("admin"); the model is
   confident; the fact will last longer than today; every source is a new message; the subject is a person in the chat.
2. Subject: a source has clauses about that person: the person's own clauses in the first person, or clauses of somebody
   else that begin with the person's name, or with "you" in a reply to the person (`clauses`).
3. Meaning: these clauses are the author's own statements, not quotes, questions, wishes or hearsay, and agree with the
   claim in negation and tense (`clauses`, `markers`).
4. Overlap: together they contain every name and number of the claim and most of its content words (`comparison`).

Claims come from extraction. What a model stores on purpose, with the tool `remember` or the block `# «remember»`, must
pass `unfit_reason` and 2 to 4 (`supporting_messages`), but not the other guards: it has no confidence and no key, and a
person may ask to remember what holds only today.
"""

import re
from collections.abc import Mapping
from itertools import islice

from msgspec import Struct

from tertulia.memory.patterns import grammar
from tertulia.memory.sentences import words_in
from tertulia.memory.verify.clauses import supporting_clauses
from tertulia.memory.verify.comparison import is_supported
from tertulia.memory.verify.markers import MOMENTARY, PASSING, is_instruction
from tertulia.messages import Author, Message
from tertulia.redaction import API_KEY

MAX_LENGTH = 240  # characters of a fact
MIN_CONFIDENCE = 0.5
LASTING_KEYS = frozenset({"home", "work", "studies", "learning"})  # "now" is no sign that it will pass
MAX_CLAIM_SOURCES = 6  # of one claim; others are not read

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
    """A fact as a model reports it."""

    sources: tuple[int, ...]  # numbers of messages
    about: str  # the id of a person
    key: str
    text: str
    confidence: float


class Evidence(Struct, frozen=True, kw_only=True):
    """The messages and people that a claim is compared with."""

    messages: Mapping[int, Message]  # the new messages by number
    people: Mapping[str, Author]  # by id


def verify_claim(claim: Claim, evidence: Evidence) -> list[Message] | str:
    """Return the messages that support a claim, or the reason why it is refused."""
    if reason := _guard(claim, evidence):
        return reason
    person, people = evidence.people[claim.about], evidence.people
    sources = [evidence.messages[number] for number in islice(dict.fromkeys(claim.sources), MAX_CLAIM_SOURCES)]
    found = [(one, clauses) for one in sources if (clauses := [*supporting_clauses(person, claim.text, one, people)])]
    if not found:
        return "was not said by or of them"
    if not is_supported(claim.text, [clause for _, clauses in found for clause in clauses], called=[person.name]):
        return "is not what was said"
    return [message for message, _ in found]


def _guard(claim: Claim, evidence: Evidence) -> str:
    """Return the reason why a claim is refused, whatever its sources say; empty if they decide."""
    if reason := unfit_reason(claim.text):
        return reason
    if claim.key == "name" and not grammar().titles.isdisjoint(words_in(claim.text)):
        return "is no name"
    if not MIN_CONFIDENCE <= claim.confidence <= 1:
        return "is doubtful"
    if PASSING.search(claim.text) or (claim.key not in LASTING_KEYS and MOMENTARY.search(claim.text)):
        return "will have passed"
    if not claim.sources or any(number not in evidence.messages for number in claim.sources):
        return "is from no new message"
    person = evidence.people.get(claim.about)
    return "" if person and person.is_person else "is about nobody who is here"


def unfit_reason(text: str) -> str:
    """Return the reason why a text must not be stored as a fact, whatever its source; empty if it may."""
    if not text.strip() or len(text) > MAX_LENGTH or "\n" in text.strip():
        return "is no short sentence"
    if holds_secret(text):
        return "is a secret"
    if is_instruction(text):
        return "is an instruction"
    return ""


def holds_secret(text: str) -> bool:
    """Return whether *text* names a secret or contains what looks like one: a key, a long number, an IBAN."""
    return any(pattern.search(text) for pattern in (_SECRET_NAME, API_KEY, _LONG_NUMBER, _IBAN))

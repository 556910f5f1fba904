"""Finds the clauses of a message that support a fact: same person, same negation, same tense. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from palaver.memory.patterns import before_echo, grammar, split_clauses
from palaver.memory.sentences import Sentence, own_sentences, spoken_text
from palaver.memory.verify.markers import (
    DENIED,
    HEARSAY,
    LONG_AGO,
    OWN_REPORT,
    SAYS_NO,
    SAYS_WISH,
    WISHED,
    claims_authority,
    is_order,
    is_over,
    tells_past,
)
from palaver.memory.verify.overlap import content_words, has_any_word, is_supported
from palaver.memory.verify.subjects import clauses_about_author, clauses_about_other
from palaver.messages import Author, Message


class _Statement(Struct, frozen=True, kw_only=True):
    """A sentence that its author states, and how it is meant."""

    text: str
    wished: bool
    long_ago: bool
    denied: bool  # or in the past
    ordered: bool
    hearsay: bool


def supporting_clauses(person: Author, fact: str, message: Message, people: Mapping[str, Author]) -> Iterator[str]:
    """Find the clauses of *message* that are about *person* and agree with *fact* in negation, tense and wish."""
    for sentence in _statements(spoken_text(message)):
        if _sentence_agrees(sentence, fact):
            yield from (
                clause
                for clause in _clauses_about(person, sentence, fact, message, people)
                if _clause_agrees(clause, fact)
            )


def supporting_messages(fact: str, person: Author, messages: Sequence[Message]) -> list[Message]:
    """Find which of *messages*, oldest first, support a fact: the newest that does alone, or several together."""
    people, called = _authors(messages), [person.name]
    clauses = [(message, list(supporting_clauses(person, fact, message, people))) for message in messages]
    for message, words in reversed(clauses):
        if is_supported(fact, words, called=called):
            return [message]
    if not is_supported(fact, [word for _, words in clauses for word in words], called=called):
        return []
    counted = content_words(fact, called=called)
    return [message for message, words in clauses if has_any_word(" ".join(words), counted)]


@lru_cache(maxsize=1024)
def _statements(text: str) -> tuple[_Statement, ...]:
    """Return the sentences that the author of a text states: no reports, no requests, no claims of authority."""
    return tuple(
        _statement(text) for text in map(_without_question, own_sentences(text)) if text and _is_authors_own(text)
    )


def _without_question(sentence: Sentence) -> str:
    """Return a sentence without the question in it, and without idioms that look like a condition."""
    text = grammar().idioms.sub("", sentence.text)
    return ", ".join(piece for _, piece in before_echo(list(split_clauses(text)))) if sentence.asks else text


def _is_authors_own(text: str) -> bool:
    return not (
        grammar().requests.search(text)
        or grammar().reported.search(OWN_REPORT.sub(" ", text))
        or claims_authority(text)
    )


def _statement(text: str) -> _Statement:
    return _Statement(
        text=text,
        wished=bool(WISHED.search(text)),
        long_ago=bool(LONG_AGO.search(text)),
        denied=is_over(text) or any(one.search(text) for one in (DENIED, SAYS_NO)),
        ordered=is_order(text),
        hearsay=bool(HEARSAY.search(text)),
    )


def _sentence_agrees(sentence: _Statement, fact: str) -> bool:
    """Return whether *fact* keeps the wish and the past of the sentence, and adds no negation to it."""
    if sentence.wished and not SAYS_WISH.search(fact):
        return False
    if sentence.long_ago and not tells_past(fact):
        return False
    return sentence.denied or not SAYS_NO.search(fact)


def _clause_agrees(clause: str, fact: str) -> bool:
    if DENIED.search(clause) and not SAYS_NO.search(fact):
        return False
    return not is_over(clause) or tells_past(fact)


def _clauses_about(
    person: Author, sentence: _Statement, fact: str, message: Message, people: Mapping[str, Author]
) -> Iterable[str]:
    if message.author.id == person.id:
        others = [one for one in people.values() if one.id != person.id]
        return clauses_about_author(sentence.text, fact, others=others, strictly=sentence.ordered)
    if sentence.ordered or sentence.hearsay:
        return ()
    quoted = message.reply_to.author if message.reply_to else None
    addressed = quoted is not None and quoted.id == person.id
    return clauses_about_other(sentence.text, fact, person=person, people=people.values(), addressed=addressed)


def _authors(messages: Iterable[Message]) -> dict[str, Author]:
    return {message.author.id: message.author for message in messages if message.author.is_person}

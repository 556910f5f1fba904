"""Which words of a message bear on a sentence about somebody: of them, and meant as it has them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from palaver.memory.instructions import gives_authority, is_order
from palaver.memory.markers import (
    DENIED,
    HEARSAY,
    LONG_AGO,
    OWN_REPORT,
    SAYS_NO,
    SAYS_WISH,
    WISHED,
    is_over,
    is_told_as_over,
)
from palaver.memory.patterns.reading import IDIOMS, REPORTED, REQUESTS, before_echo, pieces
from palaver.memory.statements import Sentence, sentences, spoken
from palaver.memory.subjects import of_another, of_author
from palaver.memory.support import holds_any, is_borne_out, told_words
from palaver.messages import Author, Message


def words_about(person: Author, told: str, message: Message, people: Mapping[str, Author]) -> Iterator[str]:
    """The clauses of *message* that speak of *person*, in the way *told* does."""
    for sentence in _sentences(spoken(message)):
        if _is_meant(sentence, told):
            yield from (clause for clause in _of(person, sentence, told, message, people) if _is_as(clause, told))


def said_in(told: str, person: Author, messages: Sequence[Message]) -> list[Message]:
    """Those of *messages*, the oldest first, that say of somebody what is told: the newest that does, or several."""
    people, called = _people(messages), [person.name]
    said = [(message, list(words_about(person, told, message, people))) for message in messages]
    for message, words in reversed(said):
        if is_borne_out(told, words, called=called):
            return [message]
    if not is_borne_out(told, [word for _, words in said for word in words], called=called):
        return []
    counted = told_words(told, called=called)
    return [message for message, words in said if holds_any(" ".join(words), counted)]


@lru_cache(maxsize=1024)
def _sentences(text: str) -> tuple[str, ...]:
    """What a text states, sentence by sentence."""
    return tuple(filter(None, map(_stated, sentences(text))))


def _stated(sentence: Sentence) -> str:
    """A sentence without the question in it, and without phrases that only look like a condition."""
    text = IDIOMS.sub(" ", sentence.text)
    return ", ".join(piece for _, piece in before_echo(list(pieces(text)))) if sentence.asks else text


def _is_meant(sentence: str, told: str) -> bool:
    """Whether it is neither reported nor material, and wished, past or denied only where it is told so."""
    if REQUESTS.search(sentence) or REPORTED.search(OWN_REPORT.sub(" ", sentence)) or gives_authority(sentence):
        return False
    if WISHED.search(sentence) and not SAYS_WISH.search(told):
        return False
    if LONG_AGO.search(sentence) and not is_told_as_over(told):
        return False
    return not SAYS_NO.search(told) or is_over(sentence) or any(one.search(sentence) for one in (DENIED, SAYS_NO))


def _is_as(clause: str, told: str) -> bool:
    if DENIED.search(clause) and not SAYS_NO.search(told):
        return False
    return not is_over(clause) or is_told_as_over(told)


def _of(person: Author, sentence: str, told: str, message: Message, people: Mapping[str, Author]) -> Iterable[str]:
    ordered = is_order(sentence)
    if message.author.id == person.id:
        others = [one for one in people.values() if one.id != person.id]
        return of_author(sentence, told, others=others, strictly=ordered)
    if ordered or HEARSAY.search(sentence):
        return ()
    quoted = message.reply_to.author if message.reply_to else None
    addressed = quoted is not None and quoted.id == person.id
    return of_another(sentence, told, person=person, people=people.values(), addressed=addressed)


def _people(messages: Iterable[Message]) -> dict[str, Author]:
    return {message.author.id: message.author for message in messages if message.author.persona is None}

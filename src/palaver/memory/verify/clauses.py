"""Which words of a message bear on a sentence about somebody: of them, and meant as it has them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from palaver.memory.patterns.engine import before_echo, grammar, split_clauses
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


class _Stated(Struct, frozen=True, kw_only=True):
    """A sentence, and how it is meant, whatever is made of it."""

    text: str
    wished: bool
    long_ago: bool
    denied: bool  # or over
    ordered: bool
    hearsay: bool


def supporting_clauses(person: Author, told: str, message: Message, people: Mapping[str, Author]) -> Iterator[str]:
    """The clauses of *message* that speak of *person*, in the way *told* does."""
    for sentence in _sentences(spoken_text(message)):
        if _is_meant(sentence, told):
            yield from (clause for clause in _of(person, sentence, told, message, people) if _is_as(clause, told))


def supporting_messages(told: str, person: Author, messages: Sequence[Message]) -> list[Message]:
    """Those of *messages*, the oldest first, that say of somebody what is told: the newest that does, or several."""
    people, called = _people(messages), [person.name]
    said = [(message, list(supporting_clauses(person, told, message, people))) for message in messages]
    for message, words in reversed(said):
        if is_supported(told, words, called=called):
            return [message]
    if not is_supported(told, [word for _, words in said for word in words], called=called):
        return []
    counted = content_words(told, called=called)
    return [message for message, words in said if has_any_word(" ".join(words), counted)]


@lru_cache(maxsize=1024)
def _sentences(text: str) -> tuple[_Stated, ...]:
    """What a text states, sentence by sentence: nothing that is reported or material."""
    return tuple(_as_meant(text) for text in map(_stated, own_sentences(text)) if text and _is_own(text))


def _stated(sentence: Sentence) -> str:
    """A sentence without the question in it, and without phrases that only look like a condition."""
    text = grammar().idioms.sub("", sentence.text)
    return ", ".join(piece for _, piece in before_echo(list(split_clauses(text)))) if sentence.asks else text


def _is_own(text: str) -> bool:
    return not (
        grammar().requests.search(text)
        or grammar().reported.search(OWN_REPORT.sub(" ", text))
        or claims_authority(text)
    )


def _as_meant(text: str) -> _Stated:
    return _Stated(
        text=text,
        wished=bool(WISHED.search(text)),
        long_ago=bool(LONG_AGO.search(text)),
        denied=is_over(text) or any(one.search(text) for one in (DENIED, SAYS_NO)),
        ordered=is_order(text),
        hearsay=bool(HEARSAY.search(text)),
    )


def _is_meant(sentence: _Stated, told: str) -> bool:
    """Whether it is wished, past or denied only where it is told so."""
    if sentence.wished and not SAYS_WISH.search(told):
        return False
    if sentence.long_ago and not tells_past(told):
        return False
    return sentence.denied or not SAYS_NO.search(told)


def _is_as(clause: str, told: str) -> bool:
    if DENIED.search(clause) and not SAYS_NO.search(told):
        return False
    return not is_over(clause) or tells_past(told)


def _of(person: Author, sentence: _Stated, told: str, message: Message, people: Mapping[str, Author]) -> Iterable[str]:
    if message.author.id == person.id:
        others = [one for one in people.values() if one.id != person.id]
        return clauses_about_author(sentence.text, told, others=others, strictly=sentence.ordered)
    if sentence.ordered or sentence.hearsay:
        return ()
    quoted = message.reply_to.author if message.reply_to else None
    addressed = quoted is not None and quoted.id == person.id
    return clauses_about_other(sentence.text, told, person=person, people=people.values(), addressed=addressed)


def _people(messages: Iterable[Message]) -> dict[str, Author]:
    return {message.author.id: message.author for message in messages if message.author.is_person}

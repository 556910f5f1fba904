"""Removes echoes from messages: sentences that only repeat a text that the agent has recalled. Pure."""

import re
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from palaver.memory.sentences import MAX_MESSAGE_LENGTH
from palaver.memory.verify.duplicates import normalize
from palaver.memory.verify.markers import FIRST
from palaver.messages import Message
from palaver.parts import Part, Text

MIN_QUOTED_WORDS = 10  # so many words are not the same by chance
_SENTENCES = re.compile(r"((?<=[.!?…;])\s+|\n\s*)")
_WORD = re.compile(r"\w+")


class RecalledTexts(Struct, frozen=True, kw_only=True):
    """Texts and messages that the agent has recalled lately."""

    texts: tuple[str, ...] = ()  # facts, summaries and episodes
    names: tuple[str, ...] = ()  # of the people they are about
    messages: tuple[Message, ...] = ()


def remove_echo(messages: Iterable[Message], recalled: RecalledTexts) -> list[Message]:
    """Remove sentences that repeat a recalled text, and long passages of recalled messages by others.

    A sentence in the first person is always kept: its author says so, whoever said the same before.
    """
    recalled_words = {
        words for text in recalled.texts for one in _SENTENCES.split(text) for words in _words(one, recalled.names)
    }
    found = [
        (one.author.id, passage)
        for one in recalled.messages
        if (passage := _plain(one)).count(" ") >= MIN_QUOTED_WORDS - 1
    ]

    def is_own(sentence: str) -> bool:
        return (
            not recalled_words
            or bool(FIRST.search(sentence))
            or recalled_words.isdisjoint(_words(sentence, recalled.names))
        )

    def own(message: Message) -> Message:
        plain = _plain(message)
        pasted = [passage for author, passage in found if author != message.author.id and passage in plain]
        return replace(message, parts=tuple(_own(part, pasted, is_own) for part in message.parts))

    return [own(message) for message in messages]


def _words(sentence: str, names: Iterable[str]) -> set[tuple[str, ...]]:
    """Return the words of a sentence, without each of the names in turn; a single word is not compared."""
    return {words for name in ("", *names) if len(words := normalize(sentence, name)) > 1}


def _plain(message: Message) -> str:
    """Return the words of a message, divided by single spaces."""
    return " ".join(
        word
        for part in message.parts
        if isinstance(part, Text)
        for word in _WORD.findall(part.text[:MAX_MESSAGE_LENGTH].lower())
    )


def _own(part: Part, pasted: Iterable[str], is_own: Callable[[str], bool]) -> Part:
    if not isinstance(part, Text):
        return part
    text = part.text[:MAX_MESSAGE_LENGTH]
    for passage in pasted:
        text = re.sub(rf"\b{passage}\b".replace(" ", r"\W+"), " ", text, flags=re.IGNORECASE)
    return replace(part, text="".join(filter(is_own, _SENTENCES.split(text))))

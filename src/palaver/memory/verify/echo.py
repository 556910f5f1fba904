"""What of a message only repeats what the agent was reminded of: it is nothing its author says. Pure."""

import re
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from palaver.memory.sentences import MAX_MESSAGE_LENGTH
from palaver.memory.verify.duplicates import normalize
from palaver.memory.verify.markers import FIRST
from palaver.messages import Message
from palaver.parts import Part, Text

MIN_QUOTED_WORDS = 10  # words from which on nobody says the same as another by chance
_SENTENCES = re.compile(r"((?<=[.!?…;])\s+|\n\s*)")
_WORD = re.compile(r"\w+")


class RecalledTexts(Struct, frozen=True, kw_only=True):
    """What the agent was reminded of lately."""

    texts: tuple[str, ...] = ()  # in words of its own
    names: tuple[str, ...] = ()  # of those whom they are about
    messages: tuple[Message, ...] = ()  # in words of whoever wrote them


def remove_echo(messages: Iterable[Message], recalled: RecalledTexts) -> list[Message]:
    """Messages without sentences of the agent's, and without long messages of others.

    What somebody says in the first person is their own, whoever has said the same.
    """
    told = {words for text in recalled.texts for one in _SENTENCES.split(text) for words in _words(one, recalled.names)}
    found = [
        (one.author.id, passage)
        for one in recalled.messages
        if (passage := _plain(one)).count(" ") >= MIN_QUOTED_WORDS - 1
    ]

    def is_own(sentence: str) -> bool:
        return not told or bool(FIRST.search(sentence)) or told.isdisjoint(_words(sentence, recalled.names))

    def own(message: Message) -> Message:
        said = _plain(message)
        pasted = [passage for author, passage in found if author != message.author.id and passage in said]
        return replace(message, parts=tuple(_own(part, pasted, is_own) for part in message.parts))

    return [own(message) for message in messages]


def _words(sentence: str, names: Iterable[str]) -> set[tuple[str, ...]]:
    """What a sentence says, whomever of these it names; a single word says nothing."""
    return {words for name in ("", *names) if len(words := normalize(sentence, name)) > 1}


def _plain(message: Message) -> str:
    """The words of a message, one after the other."""
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

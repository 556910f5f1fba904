"""Finds texts that say what is known already: statements of a fact, and echoes of recalled texts. Pure.

Statements are found so that they can be hidden when the fact is forgotten. A text that has a word in common with a fact
does not state it. Two content words of the fact do, wherever they are: "allergic" and "peanuts". With one content word
("tea"), one sentence must contain the whole fact, its verb included ("you like tea"). A fact with no verb but "is" and
"has" must be said about the person in that sentence ("you are vegetarian", "my two cats"), or word for word.

Echoes are removed from messages before facts are learned: sentences that only repeat a text that the agent has
recalled.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress

from msgspec import Struct
from msgspec.structs import replace

from tertulia.memory.retrieval.terms import terms
from tertulia.memory.sentences import MAX_MESSAGE_LENGTH
from tertulia.memory.verify.comparison import (
    LIKING_VERBS,
    FactWords,
    WordIndex,
    common_words,
    content_words,
    may_contain,
    normalize,
)
from tertulia.memory.verify.markers import FIRST
from tertulia.messages import Message
from tertulia.parts import Part, Text

_ENDS = re.compile(r'[.!?…;\n"\\。！？]+')  # of a sentence, also inside JSON
_BY_THEM = frozenset(
    """i i'm i've me my mine myself am я мене мені мій моя моє мої моїх моїм меня мне мой моя моё мои ja mam mój moja
    moje ich mein meine""".split()
)
_TO_THEM = frozenset(
    """you you're you've your yours yourself ти тебе тобі твій твоя твоє твої ви вас вам ваш ваша ваше ваші ты тебя тебе
    твой твоя вы ваш ваша ty ciebie twój twoja du dich dein deine sie ihr""".split()
)

_MIN_SHARED = 0.5  # of the content words of the shorter text
_MIN_CONTENT_WORDS = 2  # state a fact wherever they are

MIN_QUOTED_WORDS = 10  # so many words are not the same by chance
_SENTENCES = re.compile(r"((?<=[.!?…;])\s+|\n\s*)")
_WORD = re.compile(r"\w+")


def _any_of(words: str) -> str:
    return "|".join(word.strip() for word in words.split("|"))


_POLITE = _any_of(
    """please|pls|kindly|just|now|ok|okay|and|so|then|also|hey|hi|well|no|yes|thanks|can|could|would|will|you
    |i want you to|i'd like you to|i would like you to|i need you to|прошу|будь ласка|можеш|чи|ти|ви|а|і|та|ну|добре
    |пожалуйста|можешь|ты|proszę|bitte|kannst|du"""
)
_FORGET = _any_of(
    """forget|erase|delete|remove|unlearn|don['\u2019]t remember|do not remember|stop remembering|забудь|забудьте|забути
    |видали|видаліть|видалити|зітри|зітріть|стерти|прибери|не пам['\u2019]ятай|удали|удалите|удалить|сотри|стереть
    |не помни|zapomnij|usuń|vergiss|lösch|lösche|oublie|olvida"""
)
_REQUEST = re.compile(
    rf"\W*+(?:(?:(?:{_POLITE})(?!\w)|@?\w++[,:])\W*+)*+(?:{_FORGET})(?!\w)|\W*+(?:请|你)*(?:忘记|忘掉|忘了|删除)",
    re.IGNORECASE,
)


class Statement(Struct, frozen=True, kw_only=True):
    """A fact as it is looked for in texts."""

    sentence: FactWords
    verbs: tuple[str, ...]  # and other words that are said about many people
    normal: tuple[str, ...]

    @classmethod
    def of(cls, text: str, name: str) -> "Statement":
        """Read the text of a fact about a person of that name."""
        return cls(
            sentence=FactWords.of(text, called=[name]),
            verbs=tuple(common_words(text)),
            normal=normalize(text, name),
        )

    @property
    def is_telling(self) -> bool:
        """Whether its content words are enough, wherever they are."""
        words = [word for word in self.sentence.words if not word.isdigit()]
        return bool(self.sentence.pairs) or len(words) >= _MIN_CONTENT_WORDS


def mentioned_in(text: str, statements: Sequence[Statement]) -> list[Statement]:
    """Find the statements whose content words are all in *text*, which may be JSON."""
    few = list(compress(statements, may_contain(text, (one.sentence for one in statements))))
    index = WordIndex.in_text(text) if few else None
    return [one for one in few if index and index.contains_fact(one.sentence)]


def states_any(text: str, mentioned: Sequence[Statement], *, by_them: bool) -> bool:
    """Return whether *text* makes one of the statements that it mentions.

    *by_them*: the person whom they are about speaks; otherwise somebody speaks to that person.
    """
    if any(one.is_telling for one in mentioned):
        return True
    marks = _BY_THEM if by_them else _TO_THEM
    return any(_states(piece, WordIndex.in_text(piece), one, marks) for piece in _pieces(text) for one in mentioned)


def states_any_by_anyone(text: str, statements: Sequence[Statement]) -> bool:
    """Return whether a sentence of *text* makes one of the statements, whoever speaks: for prompts and the like."""
    likely = mentioned_in(text, statements)
    return any(
        states_any(piece, found, by_them=by_them)
        for piece in (_pieces(text) if likely else ())
        if (found := mentioned_in(piece, likely))
        for by_them in (True, False)
    )


def answers_any(question: str, answer: str, mentioned: Sequence[Statement]) -> bool:
    """Return whether a sentence of an answer, together with its question, makes a statement: “Where?” “In Lviv.”"""
    asked = WordIndex.in_text(question)
    return any(
        _is_said_of_them(one, WordIndex.in_text(f"{question} {piece}"), of_them=_has_any(asked, _BY_THEM))
        for piece in _pieces(answer)
        for one in mentioned_in(piece, mentioned)
    )


def asks_to_forget(text: str, statements: Sequence[Statement]) -> bool:
    """Return whether a sentence of *text* asks to forget something and contains a content word of a statement."""
    asked = [WordIndex.in_text(piece) for piece in _pieces(text) if _REQUEST.match(piece)]
    return any(_speaks_of(index, one.sentence) for index in asked for one in statements)


def _speaks_of(index: WordIndex, sentence: FactWords) -> bool:
    return any(map(index.contains, sentence.words)) or any(map(index.text.__contains__, sentence.pairs))


def _pieces(text: str) -> list[str]:
    return [piece for piece in _ENDS.split(text) if piece.strip()]


def _states(piece: str, index: WordIndex, one: Statement, marks: Collection[str]) -> bool:
    if not index.contains_fact(one.sentence):
        return False
    return normalize(piece) == one.normal or _is_said_of_them(one, index, of_them=_has_any(index, marks))


def _is_said_of_them(one: Statement, index: WordIndex, *, of_them: bool) -> bool:
    """Return whether the text has all verbs of the fact. For a fact without a verb, *of_them* decides."""
    if not one.verbs:
        return of_them
    return all(index.contains(verb) or (verb in LIKING_VERBS and _has_any(index, LIKING_VERBS)) for verb in one.verbs)


def _has_any(index: WordIndex, words: Collection[str]) -> bool:
    return any(map(index.contains_exactly, words))


def sentences_about(text: str, statements: Sequence[Statement]) -> list[str]:
    """Find the sentences of *text* that contain a content word of one of the statements."""
    return [
        piece.strip()
        for piece in _pieces(text)
        if any(_speaks_of(WordIndex.in_text(piece), one.sentence) for one in statements)
    ]


def is_repetition(text: str, before: str) -> bool:
    """Return whether *text* repeats an earlier text; if that is one sentence, whether a sentence of *text* does."""
    pieces = _pieces(text) if len(_pieces(before)) == 1 else [text]
    return any(is_similar(piece, before) for piece in pieces)


def is_similar(one: str, other: str) -> bool:
    """Return whether half of the content words of the shorter text are in the longer one."""
    few, many = sorted((_content_terms(one), _content_terms(other)), key=len)
    return len(few & many) >= _MIN_SHARED * len(few) if few else False


def _content_terms(text: str) -> set[str]:
    return {term for word in content_words(text) if word not in _BY_THEM | _TO_THEM for term in terms(word)}


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

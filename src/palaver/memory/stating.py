"""Whether what somebody said states a fact about a person, and does not only share a word with it. Pure.

Two telling words of the fact make it so wherever they stand: “allergic” and “peanuts”. One alone does not, since tea is
also drunk by others: then one sentence must hold all that the fact says, its verb included (“you like tea”). A fact
with no verb but “is” and “has” must be said of the person there (“you are vegetarian”, “my two cats”), or as it stands.
"""

import re
from collections.abc import Collection, Iterable

from msgspec import Struct

from palaver.memory.finding.words import terms
from palaver.memory.sameness import LIKING, normal
from palaver.memory.support import Heard, Sentence, common_words, told_words

_ENDS = re.compile(r'[.!?…;\n"\\。！？]+')  # of a sentence; of a text within JSON too
_BY_THEM = frozenset(
    """i i'm i've me my mine myself am я мене мені мій моя моє мої моїх моїм меня мне мой моя моё мои ja mam mój moja
    moje ich mein meine""".split()
)
_TO_THEM = frozenset(
    """you you're you've your yours yourself ти тебе тобі твій твоя твоє твої ви вас вам ваш ваша ваше ваші ты тебя тебе
    твой твоя вы ваш ваша ty ciebie twój twoja du dich dein deine sie ihr""".split()
)
_MUCH = 0.5  # of the words of the shorter of two texts
_ENOUGH = 2  # telling words that make a fact wherever they stand


class Statement(Struct, frozen=True, kw_only=True):
    """A fact as it is looked for in what was said."""

    sentence: Sentence
    verbs: tuple[str, ...]  # and other words that are said of anybody
    normal: tuple[str, ...]

    @classmethod
    def of(cls, text: str, name: str) -> "Statement":
        """What *text* says about somebody of that name."""
        return cls(
            sentence=Sentence.of(text, called=[name]),
            verbs=tuple(common_words(text)),
            normal=normal(text, name),
        )

    @property
    def is_telling(self) -> bool:
        """Whether its words say enough, wherever they stand."""
        words = [word for word in self.sentence.words if not word.isdigit()]
        return bool(self.sentence.pairs) or len(words) >= _ENOUGH


def stated_in(said: str, statements: Iterable[Statement], *, by_them: bool) -> list[Statement]:
    """Those of *statements* that *said* makes: words of the person they are about, or of somebody who speaks to them.

    It may be JSON.
    """
    heard = Heard.in_text(said)
    near = [one for one in statements if heard.has(one.sentence)]
    if all(one.is_telling for one in near):
        return near
    pieces = [(piece, Heard.in_text(piece)) for piece in _ENDS.split(said) if piece.strip()]
    marks = _BY_THEM if by_them else _TO_THEM
    return [one for one in near if one.is_telling or any(_states(*piece, one, marks) for piece in pieces)]


def _states(piece: str, heard: Heard, one: Statement, marks: Collection[str]) -> bool:
    if not heard.has(one.sentence):
        return False
    if normal(piece) == one.normal:
        return True
    if one.verbs:
        return all(_is_said(verb, heard) for verb in one.verbs)
    return any(map(heard.holds_exactly, marks))


def _is_said(verb: str, heard: Heard) -> bool:
    return heard.holds(verb) or (verb in LIKING and any(map(heard.holds_exactly, LIKING)))


def is_much_the_same(one: str, other: str) -> bool:
    """Whether half of the telling words of the shorter text are in the longer one."""
    few, many = sorted((_telling(one), _telling(other)), key=len)
    return len(few & many) >= _MUCH * len(few) if few else False


def _telling(text: str) -> set[str]:
    return {term for word in told_words(text) if word not in _BY_THEM | _TO_THEM for term in terms(word)}

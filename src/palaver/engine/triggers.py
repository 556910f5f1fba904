"""Triggers: whether a message is addressed to the agent. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from inspect import isawaitable
from typing import Literal

from msgspec import Struct

from palaver.characters import is_blank, visible
from palaver.errors import InvalidValue
from palaver.messages import Author, Message
from palaver.parts import cut_text

Decision = Literal[
    "answer",
    "not addressed",  # said in a group, and not to us
    "our own",
    "an agent's turn too many",  # agents have talked long enough among themselves
    "blocked",
    "too many",  # from this author just now
]
Rule = Callable[[Message], bool]


class RateLimit(Struct, frozen=True, kw_only=True):
    """So many messages of one author are answered within so many seconds."""

    messages: int = 20
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.messages < 1 or not self.seconds >= 0:
            raise InvalidValue("a limit is one message at least, in 0 seconds or more")


class Triggers(Struct, frozen=True, kw_only=True):
    """Who we are, and what we answer besides what is said to us."""

    me: Author
    names: tuple[str, ...] = ()  # what else people call us
    rule: Rule | None = None  # what else is answered in groups
    blocked: frozenset[tuple[str, str]] = frozenset()  # platforms and ids of authors
    agents_in_a_row: int = 2  # messages of agents after which we wait for a person

    def judge(self, message: Message, before: Sequence[Message] = ()) -> Decision:
        """What to do with *message*, after the messages *before* it."""
        if self._is_own(message.author):
            return "our own"
        if (message.place.author_namespace, message.author.id) in self.blocked:
            return "blocked"
        if not self._addressed(message):
            return "not addressed"
        if message.author.persona is not None and self._agents_alone(before):
            return "an agent's turn too many"
        return "answer"

    def _is_own(self, author: Author) -> bool:
        """Whether it is our account, under whatever name; another account is not ours, whatever persona it bears."""
        return author.id == self.me.id

    def _addressed(self, message: Message) -> bool:
        if message.place.kind == "direct":
            return True
        quote = message.reply_to
        if quote is not None and quote.author is not None and self._is_own(quote.author):
            return True
        said = visible(cut_text(message.parts)).casefold()
        if any(calling(name).search(said) for name in self._called()):
            return True
        return self.rule is not None and decided(self.rule(message))

    def _called(self) -> Iterable[str]:
        if self.me.username:
            yield "@" + self.me.username.lstrip("@")
        yield from (name for name in (self.me.name, *self.names) if not is_blank(name))

    def _agents_alone(self, before: Sequence[Message]) -> bool:
        """Whether the last messages, as many as are allowed, are agents' without a person among them."""
        last = before[-self.agents_in_a_row :] if self.agents_in_a_row else ()
        return len(last) >= self.agents_in_a_row and all(self._is_agent(message.author) for message in last)

    def _is_agent(self, author: Author) -> bool:
        return author.persona is not None or self._is_own(author)


def decided(verdict: object) -> bool:
    """Return the verdict of a rule; refuse one that is to be awaited."""
    if isawaitable(verdict):
        raise InvalidValue("a rule says at once whether a message is answered; this one is to be awaited")
    return bool(verdict)


@lru_cache(maxsize=256)
def calling(name: str) -> re.Pattern[str]:
    """The name as a word of its own."""
    return re.compile(rf"(?<![\w@]){re.escape(visible(name).casefold())}(?!\w)")

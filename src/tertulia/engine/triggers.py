"""Triggers: whether a message is addressed to the agent. Pure."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tertulia.characters import is_blank, visible
from tertulia.decisions import Address, Decision
from tertulia.engine.agents.meant import Rule as Rule
from tertulia.engine.agents.meant import rule_result as rule_result
from tertulia.engine.agents.names import name_pattern as name_pattern
from tertulia.messages import Author, Message
from tertulia.parts import cut_text


class Triggers(Struct, frozen=True, kw_only=True):
    """Decides whether a message is for the agent: by its author, its place, and the names and the rule of the agent."""

    me: Author
    names: tuple[str, ...] = ()  # other names that people use for us
    rule: Rule | None = None  # answers further messages in groups
    blocked: frozenset[tuple[str, str]] = frozenset()  # platforms and ids of authors
    agents_in_a_row: int = 2  # messages of agents after which we wait for a person

    def decide(self, message: Message, before: Sequence[Message] = ()) -> Decision:
        """Return the decision about *message*, given the messages *before* it."""
        if self._is_own(message.author):
            return Decision(reason="our own")
        if (message.place.author_namespace, message.author.id) in self.blocked:
            return Decision(reason="blocked")
        address = self._address(message)
        if address is None:
            return Decision(reason="not addressed")
        if message.author.persona is not None and self._are_agents_alone(before):
            return Decision(reason="agents in a row", address=address)
        return Decision(reason="answered", address=address)

    def _is_own(self, author: Author) -> bool:
        """Return whether the author is our account: only the id counts, not a name or a persona."""
        return author.id == self.me.id

    def _address(self, message: Message) -> Address | None:
        """Return how *message* speaks to us. A name in forwarded words was not meant for us here."""
        if message.place.kind == "direct":
            return "direct"
        quote = message.reply_to
        if quote is not None and quote.author is not None and self._is_own(quote.author):
            return "reply"
        if message.forwarded_from is None and (named := self._named(message)):
            return named
        return "rule" if self.rule is not None and rule_result(self.rule(message)) else None

    def _named(self, message: Message) -> Address | None:
        text = visible(cut_text(message.parts)).casefold()
        if self.me.username and name_pattern("@" + self.me.username.lstrip("@")).search(text):
            return "mention"
        return "name" if any(name_pattern(name).search(text) for name in self._names()) else None

    def _names(self) -> Iterable[str]:
        own = (name.rstrip("*") for name in (self.me.name, self.me.persona or ""))  # no patterns
        yield from (name for name in (*own, *self.names) if not is_blank(name))

    def _are_agents_alone(self, before: Sequence[Message]) -> bool:
        """Return whether the last `agents_in_a_row` messages are all by agents."""
        last = before[-self.agents_in_a_row :] if self.agents_in_a_row else ()
        return len(last) >= self.agents_in_a_row and all(
            message.author.persona is not None or self._is_own(message.author) for message in last
        )

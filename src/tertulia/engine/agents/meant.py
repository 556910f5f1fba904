"""Who is meant: which agents of a place a message is for, and how it speaks to them. Pure."""

from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable

from msgspec import Struct

from tertulia.characters import visible
from tertulia.decisions import Address, Decision
from tertulia.engine.agents.agent import Agent, Cast, PlaceAgents
from tertulia.engine.agents.names import Called, NameSearch, name_key
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message
from tertulia.parts import cut_text
from tertulia.value_cache import cached

Rule = Callable[[Message], bool]
Addressed = list[tuple[Agent, Address]]

CALLS: tuple[Address, ...] = ("mention", "reply", "name")  # how a message calls agents; the first that it has decides
AGENT_CALLS: tuple[Address, ...] = ("mention", "name", "reply")  # how one of an agent does: it quotes what it answers


class Recipients(Struct, frozen=True, kw_only=True, dict=True):
    """Decides which agents of a place answer a message.

    The first rule that finds somebody decides: what the platform says, mentions, the author of the quoted message,
    names in the text, the agent of a direct chat, the rule of the operator. The names are compiled once, and a text is
    searched once.
    """

    cast: Cast
    here: PlaceAgents
    me: Author  # our account, which the agents share or which is one agent's own
    accounts: Mapping[str, Author] = {}  # further ones on the service that are agents' own, by the names of these
    rule: Rule | None = None  # says which further messages in groups the default agent answers
    blocked: frozenset[tuple[str, str]] = frozenset()  # platforms and ids of authors
    agents_in_a_row: int = 2  # messages of agents after which all of them wait for a person

    def decide(
        self,
        message: Message,
        before: Sequence[Message] = (),
        *,
        addressed: Sequence[str] | None = None,
        quoted: str | None = None,
    ) -> tuple[Decision, ...]:
        """Return a decision for each agent that is meant, in the order in which they answer; else why nobody is.

        *before* are the messages before it, *addressed* is `Received.addressed`, and *quoted* is `Message.agent` of the
        message that it quotes. Without an agent, what our account wrote is of the agent whose account it is.
        """
        wrote, quote = self._author(message.author, message.agent), message.reply_to
        quoted = self._author(quote.author, quoted) if quote else None
        if wrote is not None:
            meant = self._called(message, quoted, besides=wrote)  # only these rules
        elif (message.place.author_namespace, message.author.id) in self.blocked:
            return (Decision(reason="blocked"),)
        elif addressed is not None:
            found = {agent.name: agent for name in addressed if (agent := self._named(name))}
            meant = [(agent, "platform") for agent in found.values() if agent in self.here.agents]
        else:
            meant = self._called(message, quoted) or self._uncalled(message)
        if not meant:
            return (Decision(reason="not addressed" if wrote is None else "our own"),)
        is_by_agent = wrote is not None or message.author.persona is not None
        is_over = is_by_agent and self._are_agents_alone(before)
        return tuple(
            Decision(reason="agents in a row" if is_over else "answered", address=address, agent=agent.name)
            for agent, address in meant
        )

    def _named(self, name: str) -> Agent | None:
        """Return the agent that a platform names; the only one may have the name of our account, or none."""
        if self.cast.is_single and name_key(name) in ("", name_key(self.me.name)):
            return self.cast.default
        return self.cast.get(name) if name else None

    def _author(self, author: Author | None, known: str | None) -> str | None:
        """Return the name of the agent that is an author; None where it is none of ours."""
        if known is not None:
            agent = self.cast.get(known)
            return agent.name if agent else known  # it was removed
        if author is None:
            return None
        return next((name for name, one in self.our_accounts if one.id == author.id), None)  # by no name or persona

    @property
    def our_accounts(self) -> list[tuple[str, Author]]:
        """Our accounts, each with the name of the agent that is meant by it."""
        return [((self.here.account or self.cast.default).name, self.me), *self.accounts.items()]

    def _called(self, message: Message, quoted: str | None, *, besides: str | None = None) -> Addressed:
        """Return the agents that a message mentions, else the one that it quotes, else those that it names."""
        agents = {agent.name: agent for agent in self.here.agents if agent.name != besides}
        found = self._find_names(message)
        for how in CALLS if besides is None else AGENT_CALLS:
            called = [quoted] if how == "reply" else [one.agent for one in found if one.address == how]
            if names := [name for name in dict.fromkeys(called) if name in agents]:
                return [(agents[name], self._address(message, quoted, name, how)) for name in names if name is not None]
        return []

    def _address(self, message: Message, quoted: str | None, name: str, how: Address) -> Address:
        """Return how a message that calls an agent speaks to it; what it would do without its words goes first."""
        default = self.here.default
        if message.place.kind == "direct" and default is not None and default.name == name:
            return "direct"
        return "reply" if name == quoted else how

    def _uncalled(self, message: Message) -> Addressed:
        """Return the agent that is meant by a message that calls nobody."""
        default = self.here.default
        if default is None:
            return []
        if message.place.kind == "direct":
            return [(default, "direct")]
        return [(default, "rule")] if self.rule is not None and rule_result(self.rule(message)) else []

    def _find_names(self, message: Message) -> list[Called]:
        """Return the names in the text of a message; those in forwarded words are meant for nobody here."""
        if message.forwarded_from is not None:
            return []
        return cached(self, "search", _search_of).find(visible(cut_text(message.parts)).casefold())

    def _are_agents_alone(self, before: Sequence[Message]) -> bool:
        """Return whether the last `agents_in_a_row` messages are all by agents."""
        last = before[-self.agents_in_a_row :] if self.agents_in_a_row else ()
        return len(last) >= self.agents_in_a_row and all(
            one.author.persona is not None or self._author(one.author, one.agent) is not None for one in last
        )


def _search_of(recipients: Recipients) -> NameSearch:
    """Return the search for the names of all agents, also of those that are not here: who means them means no other."""
    cast = recipients.cast.agents
    names = [Called(name, one.name, "name") for one in cast for name in one.called]
    if len(cast) > 1:
        names += [Called(f"@{name}", agent, "mention") for name, agent, _ in names if not name.endswith("*")]
    for agent, account in recipients.our_accounts:
        names.append(Called(account.name.rstrip("*"), agent, "name"))
        names.append(Called(f"@{(account.username or '').lstrip('@')}", agent, "mention"))
    return NameSearch(names)


def rule_result(result: object) -> bool:
    """Return what a rule returned, as a bool; raise `InvalidValue` for a coroutine."""
    if isawaitable(result):
        raise InvalidValue("Behavior.answer_if must be a plain function: this one returns an awaitable")
    return bool(result)

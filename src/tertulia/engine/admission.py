"""Admission: which messages are answered."""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from tertulia.context.log import with_current_quote
from tertulia.decisions import Decision
from tertulia.engine.agents.meant import Recipients, rule_result
from tertulia.engine.background import log_text
from tertulia.engine.batches import album_of, bursts_of, time_left
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import WaitingMessage
from tertulia.messages import Message, Place

log = logging.getLogger(__name__)


class Admission:
    """Decides about messages by who is meant, the log before them, albums, and the rate limit."""

    def __init__(self, shared: Shared, rate_limiter: RateLimiter, confirmations: Confirmations) -> None:
        self._messages, self._inbox = shared.store.log, shared.store.inbox
        self._place_settings = shared.store.place_settings
        self._identity = shared.identity
        self._behavior = shared.behavior
        self._rate_limiter = rate_limiter
        self._confirmations = confirmations
        self._places = shared.agent_places
        self._recipients: dict[tuple[str, tuple[str, ...], str | None], Recipients] = {}  # by platform and agents

    async def apply_limits(self, message: Message, decision: Decision) -> Decision:
        """Return the decision, or that the album of the message was answered, or its author is over the rate limit."""
        if decision.reason != "answered":
            return decision
        if await self._is_album_answered(message):
            return replace(decision, reason="album answered")
        return decision if await self._rate_limiter.allows(message) else replace(decision, reason="rate limit")

    async def decide(self, waiting: WaitingMessage, recipients: Recipients) -> tuple[Decision, ...]:
        """Return a decision for each agent that is meant, in their order, whatever albums and the rate limit say.

        Where nobody is, the one decision says why.
        """
        message = waiting.message
        before: Sequence[Message] = ()
        if message.author.persona is not None:
            number = await self._messages.number(message) or 0
            before = await self._messages.read(message.place, number - self._behavior.agents_in_a_row, number)
        quoted, cast = await self._quoted_agent(message), self._identity.cast
        if message.reply_to is not None and message.reply_to.author is None:  # some platforms give only the id
            message = await with_current_quote(self._messages, message)
        found = recipients.decide(message, before, addressed=waiting.addressed, quoted=quoted)
        return tuple(replace(one, agent="") for one in found) if cast.is_single else found

    async def _quoted_agent(self, message: Message) -> str | None:
        """Return the agent that wrote what a message quotes, as the log says; None where it does not."""
        if message.reply_to is None or self._identity.cast.is_single:
            return None
        quoted = await self._messages.get(message.place, message.reply_to.message_id)
        return quoted.agent if quoted else None

    async def joining(
        self, waiting: Sequence[WaitingMessage], now: datetime, *, since: int, agent: str
    ) -> list[tuple[Message, Decision]]:
        """Return the messages that a run of an agent may take in, from number *since* on.

        They are complete bursts that are to be answered by it, and by nobody else.
        """
        waiting = [one for one in waiting if one.number >= since]
        gap, longest = timedelta(seconds=self._behavior.debounce), timedelta(seconds=self._behavior.max_debounce)
        decisions = [await self._only_decision(one, agent) for one in waiting]
        by_id = {one.message.id: decision for one, decision in zip(waiting, decisions, strict=True)}
        addressed = [at for at, decision in enumerate(decisions) if decision.reason == "answered"]
        bursts = bursts_of(addressed, waiting, gap, longest)
        complete = [burst for burst in bursts if time_left(burst, now, gap, longest) <= timedelta(0)]
        burst_messages = [one.message for burst in complete for one in burst]
        return [(one, by_id[one.id]) for one in burst_messages if not await self._confirmations.find_facts(one)]

    async def _only_decision(self, waiting: WaitingMessage, agent: str) -> Decision:
        message = waiting.message
        found = await self.decide(waiting, await self.recipients(message.place))
        if len(found) > 1 or found[0].agent != agent or waiting.agent not in ("", agent):
            return replace(found[0], reason="waiting")
        return await self.apply_limits(message, found[0])

    async def recipients(self, place: Place) -> Recipients:
        """Return who may be meant in a place; the same object until what it is made of changes."""
        here, blocked = await self._places.here(place), await self._place_settings.blocked()
        cast, me = self._identity.cast, self._identity.platforms[place.platform].me
        beside = [one for one in self._identity.platforms_beside(place.platform) if one.name != place.platform]
        accounts = {owner.name: one.me for one in beside if (owner := cast.owner_of(one.name))}
        key = place.platform, tuple([agent.name for agent in here.agents]), here.default.name if here.default else None
        known = self._recipients.get(key)
        if (
            known is None
            or known.cast is not cast
            or (known.me, known.accounts, known.blocked) != (me, accounts, blocked)
        ):
            known = self._recipients[key] = Recipients(
                cast=cast,
                here=here,
                me=me,
                accounts=accounts,
                rule=self._behavior.answer_if and self._follows_rule,
                blocked=blocked,
                agents_in_a_row=self._behavior.agents_in_a_row,
            )
        return known

    async def _is_album_answered(self, message: Message) -> bool:
        """Return whether the album of a message was answered already: then the message is only context."""
        album = album_of(message)
        if album is None:
            return False
        return any(decision.run_id is not None for _, decision in await self._inbox.album(message.place, *album))

    def _follows_rule(self, message: Message) -> bool:
        """Return whether the user's rule says that a message is answered; False where the rule raises."""
        try:
            return self._behavior.answer_if is not None and rule_result(self._behavior.answer_if(message))
        except Exception as error:  # noqa: BLE001 (the rule is the user's)
            log.error("Behavior.answer_if failed on message %s, which is not answered: %s", message.id, log_text(error))
            return False


class DecisionCache:
    """Decisions about the messages that wait in a place, each cached until the message or who may be meant changes."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._decisions: dict[str, tuple[Message, Recipients, tuple[Decision, ...]]] = {}  # by the id of the message

    async def decide(self, waiting: WaitingMessage) -> tuple[Decision, ...]:
        """Return a decision for each agent that is meant, or why nobody is."""
        message = waiting.message
        recipients = await self._admission.recipients(message.place)
        cached = self._decisions.get(message.id)
        if cached is None or cached[1] is not recipients or cached[0] != message:
            cached = (message, recipients, await self._admission.decide(waiting, recipients))
            self._decisions[message.id] = cached
        return cached[2]

    def retain(self, messages: Iterable[Message]) -> None:
        """Drop the decisions about all but these messages."""
        ids = {message.id for message in messages}
        self._decisions = {message_id: cached for message_id, cached in self._decisions.items() if message_id in ids}

"""Admission: which messages are answered."""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from tertulia.context.log import with_current_quote
from tertulia.decisions import Decision
from tertulia.engine.background import log_text
from tertulia.engine.batches import album_of, bursts_of, time_left
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import WaitingMessage
from tertulia.engine.triggers import Triggers, rule_result
from tertulia.messages import Message

log = logging.getLogger(__name__)


class Admission:
    """Decides about messages by the triggers of their platform, the log before them, albums, and the rate limit."""

    def __init__(self, shared: Shared, rate_limiter: RateLimiter, confirmations: Confirmations) -> None:
        self._messages, self._inbox = shared.store.log, shared.store.inbox
        self._place_settings = shared.store.place_settings
        self._identity = shared.identity
        self._behavior = shared.behavior
        self._rate_limiter = rate_limiter
        self._confirmations = confirmations
        self._triggers: dict[str, Triggers] = {}  # by platform

    async def decide_with_limits(self, message: Message) -> Decision:
        """Return the decision about a message, by its album and the rate limit too."""
        return await self.apply_limits(message, await self.decide(message, await self.triggers(message.place.platform)))

    async def apply_limits(self, message: Message, decision: Decision) -> Decision:
        """Return the decision, or that the album of the message was answered, or its author is over the rate limit."""
        if decision.reason != "answered":
            return decision
        if await self._is_album_answered(message):
            return replace(decision, reason="album answered")
        return decision if await self._rate_limiter.allows(message) else replace(decision, reason="rate limit")

    async def decide(self, message: Message, triggers: Triggers) -> Decision:
        """Return the decision about a message, whatever its album and the rate limit say."""
        before: Sequence[Message] = ()
        if message.author.persona is not None:
            number = await self._messages.number(message) or 0
            before = await self._messages.read(message.place, number - self._behavior.agents_in_a_row, number)
        if message.reply_to is not None and message.reply_to.author is None:  # some platforms give only the id
            message = await with_current_quote(self._messages, message)
        return triggers.decide(message, before)

    async def joining(
        self, waiting: Sequence[WaitingMessage], now: datetime, *, since: int
    ) -> list[tuple[Message, Decision]]:
        """Return the messages that a run may take in: complete bursts to be answered, from number *since* on."""
        waiting = [one for one in waiting if one.number >= since]
        gap, longest = timedelta(seconds=self._behavior.debounce), timedelta(seconds=self._behavior.max_debounce)
        decisions = [await self.decide_with_limits(one.message) for one in waiting]
        by_id = {one.message.id: decision for one, decision in zip(waiting, decisions, strict=True)}
        addressed = [at for at, decision in enumerate(decisions) if decision.reason == "answered"]
        bursts = bursts_of(addressed, waiting, gap, longest)
        complete = [burst for burst in bursts if time_left(burst, now, gap, longest) <= timedelta(0)]
        burst_messages = [one.message for burst in complete for one in burst]
        return [(one, by_id[one.id]) for one in burst_messages if not await self._confirmations.find_facts(one)]

    async def triggers(self, platform: str) -> Triggers:
        """Return the triggers of a platform; the same object until what they are made of changes."""
        me, blocked = self._identity.author_on(platform), await self._place_settings.blocked()
        names = (*self._identity.persona.names, *self._behavior.names)
        cached = self._triggers.get(platform)
        if cached is None or (cached.me, cached.names, cached.blocked) != (me, names, blocked):
            cached = self._triggers[platform] = Triggers(
                me=me,
                names=names,
                rule=self._behavior.answer_if and self._follows_rule,
                blocked=blocked,
                agents_in_a_row=self._behavior.agents_in_a_row,
            )
        return cached

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
    """Decisions about the messages that wait in a place, each cached until the message or the triggers change."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._decisions: dict[str, tuple[Message, Triggers, Decision]] = {}  # by the id of the message

    async def decide(self, message: Message) -> Decision:
        """Return the decision about a message, whatever its album and the rate limit say."""
        triggers = await self._admission.triggers(message.place.platform)
        cached = self._decisions.get(message.id)
        if cached is None or cached[1] is not triggers or cached[0] != message:
            cached = (message, triggers, await self._admission.decide(message, triggers))
            self._decisions[message.id] = cached
        return cached[2]

    def retain(self, messages: Iterable[Message]) -> None:
        """Drop the decisions about all but these messages."""
        ids = {message.id for message in messages}
        self._decisions = {message_id: cached for message_id, cached in self._decisions.items() if message_id in ids}

"""Admission: which messages are answered, and the rate limit of their authors."""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from palaver.context.log import Log, with_current_quote
from palaver.engine.background import error_text
from palaver.engine.batches import bursts_of, quiet_in
from palaver.engine.behavior import Behavior
from palaver.engine.builtin_tasks import BuiltinTasks
from palaver.engine.coordination import AuthorKey, RateLimitStore
from palaver.engine.identity import Identity
from palaver.engine.store_protocols import WaitingMessage
from palaver.engine.triggers import Decision, Triggers, decided
from palaver.messages import Message

log = logging.getLogger(__name__)


class Admission:
    def __init__(
        self, messages: Log, duties: BuiltinTasks, selves: Identity, behavior: Behavior, limits: RateLimitStore
    ) -> None:
        self._messages = messages
        self._duties = duties
        self._selves = selves
        self._conduct = behavior
        self._limits = limits
        self._triggers: dict[str, Triggers] = {}  # by platform

    async def verdict(self, message: Message) -> Decision:
        """Return the verdict on a message; "too many" where the rate limit of its author is reached."""
        found = await self.judged(message, await self.triggers(message.place.platform))
        return found if found != "answer" or await self.allows(message) else "too many"

    async def judged(self, message: Message, triggers: Triggers) -> Decision:
        """Return the verdict on a message without the rate limit."""
        before: Sequence[Message] = ()
        if message.author.persona is not None:
            number = await self._messages.number(message) or 0
            before = await self._messages.read(message.place, number - self._conduct.agents_in_a_row, number)
        if message.reply_to is not None and message.reply_to.author is None:  # a platform may know only which it is
            message = await with_current_quote(self._messages, message)
        return triggers.judge(message, before)

    async def allows(self, message: Message) -> bool:
        """Whether its author may be answered once more; nothing is counted."""
        return await self._limits.allows(_author(message), self._conduct.limit)

    async def bursts(self, waiting: Sequence[WaitingMessage], now: datetime, *, since: int) -> list[Message]:
        """The messages to answer among those that wait, with what belongs to them, once no more of that comes.

        Only what has a number from *since* on is looked at.
        """
        waiting = [one for one in waiting if one.number >= since]
        gap, longest = timedelta(seconds=self._conduct.burst), timedelta(seconds=self._conduct.longest_burst)
        addressed = [at for at, one in enumerate(waiting) if await self.verdict(one.message) == "answer"]
        found = bursts_of(addressed, waiting, gap, longest)
        return [one.message for burst in found if quiet_in(burst, now, gap, longest) <= timedelta(0) for one in burst]

    async def admits(self, message: Message) -> bool:
        """Whether its author may be answered once more; that counts then. Other places may have been quicker."""
        return await self._limits.take(_author(message), self._conduct.limit)

    async def tells(self, message: Message) -> bool:
        """Whether its author is to be told that this is too much: once, until answered again."""
        return await self._limits.warn(_author(message))

    async def take_back(self, message: Message) -> None:
        """Uncount an answer: it could not be stored, and is tried again."""
        await self._limits.give_back(_author(message))

    async def untell(self, message: Message) -> None:
        """Tell the author again later: the notice could not be stored."""
        await self._limits.unwarn(_author(message))

    async def triggers(self, platform: str) -> Triggers:
        """Return the triggers of a platform; the same object until something of them changes."""
        me, blocked = self._selves.author_on(platform), await self._duties.blocked()
        known = self._triggers.get(platform)
        if known is None or known.me != me or known.blocked != blocked:
            known = self._triggers[platform] = Triggers(
                me=me,
                names=self._conduct.names,
                rule=self._conduct.rule and self._follows_rule,
                blocked=blocked,
                agents_in_a_row=self._conduct.agents_in_a_row,
            )
        return known

    def _follows_rule(self, message: Message) -> bool:
        """Whether the caller's rule says that a message is answered; a rule that fails answers nothing."""
        try:
            return self._conduct.rule is not None and decided(self._conduct.rule(message))
        except Exception as error:  # noqa: BLE001 (the rule is the caller's)
            log.error("the rule failed on message %s; it is not answered: %s", message.id, error_text(error))
            return False


class DecisionCache:
    """The verdicts on the messages that wait in a place: each is judged once, until it or the triggers change."""

    def __init__(self, judge: Admission) -> None:
        self._judge = judge
        self._known: dict[str, tuple[Message, Triggers, Decision]] = {}

    async def of(self, message: Message) -> Decision:
        triggers = await self._judge.triggers(message.place.platform)
        known = self._known.get(message.id)
        if known is None or known[1] is not triggers or known[0] != message:
            known = (message, triggers, await self._judge.judged(message, triggers))
            self._known[message.id] = known
        return known[2]

    def retain(self, messages: Iterable[Message]) -> None:
        """Forget all but the verdicts on these messages."""
        ids = {message.id for message in messages}
        self._known = {message_id: known for message_id, known in self._known.items() if message_id in ids}


def _author(message: Message) -> AuthorKey:
    return message.place.author_namespace, message.author.id

"""Which messages are answered: what speaks to us, and no more of one author than is agreed."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from palaver.context.reading import Log, with_current_quote
from palaver.conversation.bursts import bursts_of, follow_ups, quiet_in
from palaver.conversation.conduct import Conduct
from palaver.conversation.duties import Duties
from palaver.conversation.journal import AuthorKey, RateLimits, Waiting
from palaver.conversation.selves import Selves
from palaver.conversation.triggers import Triggers, Verdict
from palaver.messages import Message

log = logging.getLogger(__name__)


class Judge:
    def __init__(self, messages: Log, duties: Duties, selves: Selves, conduct: Conduct, limits: RateLimits) -> None:
        self._messages = messages
        self._duties = duties
        self._selves = selves
        self._conduct = conduct
        self._limits = limits

    async def verdict(self, message: Message) -> Verdict:
        """What to do with a message."""
        before: Sequence[Message] = ()
        if message.author.persona is not None:
            number = await self._messages.number(message) or 0
            before = await self._messages.read(message.place, number - self._conduct.agents_in_a_row, number)
        if message.reply_to is not None and message.reply_to.author is None:  # a platform may know only which it is
            message = await with_current_quote(self._messages, message)
        triggers = await self._triggers(message.place.platform)
        try:
            found = triggers.judge(message, before)
        except Exception:
            log.exception("the rule failed on message %s; it is not answered", message.id)
            return "not addressed"
        if found == "answer" and not await self._limits.allows(_author(message), self._conduct.limit):
            return "too many"
        return found

    async def bursts(self, waiting: Sequence[Waiting], now: datetime, *, since: int) -> list[Message]:
        """The messages to answer among those that wait, with what belongs to them, once no more of that comes.

        Only what has a number from *since* on is looked at.
        """
        waiting = [one for one in waiting if (await self._messages.number(one.message) or 0) >= since]
        gap, longest = timedelta(seconds=self._conduct.burst), timedelta(seconds=self._conduct.longest_burst)
        addressed = [at for at, one in enumerate(waiting) if await self.verdict(one.message) == "answer"]
        found = bursts_of(addressed, waiting, gap, longest)
        return [one.message for burst in found if quiet_in(burst, now, gap, longest) <= timedelta(0) for one in burst]

    async def follow_ups(self, taken: Sequence[str], waiting: Sequence[Waiting], *, end: int) -> tuple[str, ...]:
        """The ids of messages that belong to those *taken* though they came when the burst was over.

        A prompt that shows a place up to number *end* shows them. They speak to nobody by themselves, so that no other
        run would answer them: the author goes on with what is being answered.
        """
        longest = timedelta(seconds=self._conduct.longest_burst)
        return tuple(
            [
                one.message.id
                for one in follow_ups(taken, waiting, longest)
                if (await self._messages.number(one.message) or 0) < end
                and await self.verdict(one.message) == "not addressed"
            ]
        )

    async def admits(self, message: Message) -> bool:
        """Whether its author may be answered once more; that counts then. Other places may have been quicker."""
        return await self._limits.take(_author(message), self._conduct.limit)

    async def tells(self, message: Message) -> bool:
        """Whether its author is to be told that this is too much: once, until answered again."""
        return await self._limits.warn(_author(message))

    async def take_back(self, message: Message) -> None:
        """What was admitted could not be kept, and will be tried again."""
        await self._limits.give_back(_author(message))

    async def untell(self, message: Message) -> None:
        """What was to be told could not be kept, and will be tried again."""
        await self._limits.unwarn(_author(message))

    async def _triggers(self, platform: str) -> Triggers:
        conduct = self._conduct
        return Triggers(
            me=self._selves.author_on(platform),
            names=conduct.names,
            rule=conduct.rule,
            blocked=await self._duties.blocked(),
            agents_in_a_row=conduct.agents_in_a_row,
        )


def _author(message: Message) -> AuthorKey:
    return message.place.author_namespace, message.author.id

"""The ends of runs: replies and tasks, an honest line, or nothing. All of it is stored before any of it is sent."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from palaver.context.log import Log
from palaver.engine.background import error_text
from palaver.engine.behavior import FAILED, NOTHING_TO_SAY, Behavior
from palaver.engine.delimiters import DelimiterCache
from palaver.engine.identity import Identity
from palaver.engine.outbox_sender import on_draft, split_replies
from palaver.engine.store_protocols import (
    DRAFT_END,
    PROPOSAL,
    OutboxItem,
    OutboxStore,
    PromptOutdated,
    ProposalStore,
    RunStore,
)
from palaver.errors import InvalidValue, PalaverError
from palaver.memory.facts import Fact
from palaver.messages import Message, Reply
from palaver.parts import ToolResult
from palaver.platform import DeliveryKind, Platform
from palaver.run.clean.cleaner import clean
from palaver.run.journal import Run
from palaver.run.loop import RunAnswered
from palaver.run.outcome import ParsedTexts, reply_to_id, run_outcome
from palaver.tasks.policy import FORGET_CONFIRMED
from palaver.tasks.task import Task

log = logging.getLogger(__name__)

STOPPED_LINE = "(stopped)"


def stop_line(draft: OutboxItem, now: datetime) -> OutboxItem:
    """What a draft says once no answer comes; it is no part of the conversation."""
    reply = replace(draft.reply, text=STOPPED_LINE)
    return OutboxItem(
        id=f"{draft.id}{DRAFT_END}", reply=reply, made_at=now, run=draft.run, kind="notice", edits=draft.message_id
    )


class RunOutput(Struct, frozen=True, kw_only=True):
    """What goes out, and what is planned, when a run ends."""

    replies: tuple[OutboxItem, ...] = ()
    tasks: tuple[Task, ...] = ()


Answer = tuple[Run, RunOutput, Message]  # a run that is to end, with what, and which message it answers


class RunCompletion:
    """Stores the ends of runs. *sent* is then called with the replies, *planned* where there are tasks."""

    def __init__(
        self,
        runs: RunStore,
        proposals: ProposalStore,
        messages: Log,
        delimiters: DelimiterCache,
        identity: Identity,
        behavior: Behavior,
        *,
        platforms: Mapping[str, Platform],
        outbox: OutboxStore,
        sent: Callable[[Iterable[OutboxItem]], None],
        planned: Callable[[], None],
        now: Callable[[], datetime],
        failed: Callable[[Run, PalaverError], None] = lambda run, error: None,
    ) -> None:
        self._runs = runs
        self._proposals = proposals
        self._messages = messages
        self._delimiters = delimiters
        self._identity = identity
        self._behavior = behavior
        self._platforms = platforms
        self._outbox = outbox
        self._sent = sent
        self._planned = planned
        self._now = now
        self._failed = failed  # is told why a run ends with an honest line

    async def end_drafts(self) -> None:
        """Edit the drafts of runs that ended, or were withdrawn, without an answer."""
        if not any(platform.capabilities.drafts for platform in self._platforms.values()):
            return
        for draft in await self._outbox.abandoned_drafts():
            if draft.reply.place.platform in self._platforms:
                line = stop_line(draft, self._now())
                await self._outbox.put(line)
                self._sent([line])

    async def words_of(
        self, answered: RunAnswered, target: Message, texts: ParsedTexts, *, markers: Collection[str] = frozenset()
    ) -> RunOutput:
        """Return the replies and tasks of an answer."""
        run = answered.run
        found = run_outcome(
            answered.turns,
            run,
            target,
            now=self._now(),
            delimiter=await self._delimiters.get(target.place),
            texts=texts,
            markers=markers,
        )
        replies = tuple(
            replace(self._outgoing(run, number, reply), streamed=streamed)
            for number, (reply, streamed) in enumerate(zip(found.replies, found.streamed, strict=True))
        )
        if replies:
            replies = (replace(replies[0], turns=found.turns), *replies[1:])
        ran_tools = any(isinstance(part, ToolResult) for turn in answered.turns for part in turn.parts)
        if ran_tools and (proposed := await self._proposed(run, target)):  # only a tool proposes anything
            replies = (*replies, proposed)
        if not (replies or found.tasks or found.silent):
            replies = (self._line(run, target, NOTHING_TO_SAY, kind="notice"),)
        return RunOutput(replies=replies, tasks=found.tasks)

    async def _proposed(self, run: Run, target: Message) -> OutboxItem | None:
        """The line that tells a person what the model would forget, and that they must confirm it."""
        facts = await self._proposals.made_by(run.id)
        if not facts:
            return None
        words = clean(self._behavior.proposal(facts), delimiter=await self._delimiters.get(target.place))
        return replace(self._line(run, target, words, kind="notice"), id=f"{run.id}{PROPOSAL}")

    async def with_forgetting(self, run: Run, target: Message, facts: Sequence[Fact]) -> None:
        """End a run with a task that forgets the facts that *target* confirms."""
        args = {"facts": [fact.id for fact in facts], "reply_to": reply_to_id(target)}
        task = Task(
            id=f"{run.id}{PROPOSAL}",
            kind=FORGET_CONFIRMED,
            place=target.place,
            due_at=self._now(),
            args=args,
            made_by=run.id,
        )
        await self._end(replace(run, status="done"), RunOutput(tasks=(task,)))

    async def with_words(self, run: Run, said: RunOutput, target: Message) -> None:
        """End a run with its answer; with an honest line where the store refuses it: somebody was forgotten."""
        try:
            await self._end(replace(run, status="done"), said)
        except PromptOutdated:
            raise
        except InvalidValue as error:
            log.warning("run %s: %s", run.id, error)
            await self.with_excuse(run, target, error)

    async def with_excuse(self, run: Run, target: Message, error: PalaverError) -> None:
        """End a run with an honest line about what went wrong."""
        self._failed(run, error)
        try:
            words = self._behavior.excuse(error)
            words = words if words.strip() else FAILED
        except Exception as fault:  # noqa: BLE001 (the words are the caller's)
            log.error("there are no words for %s: %s", error, error_text(fault))
            words = FAILED
        await self._with_line(run, target, words, kind="error", why=str(error)[:1000])

    async def with_notice(self, run: Run, target: Message, words: str, *, why: str) -> None:
        """End a run with words of our own. Nothing went wrong."""
        await self._with_line(run, target, words, kind="notice", why=why)

    async def _with_line(self, run: Run, target: Message, words: str, *, kind: DeliveryKind, why: str) -> None:
        await self._fail(run, why, RunOutput(replies=(self._line(run, target, words, kind=kind),)))

    async def with_nothing(self, run: Run, *, why: str) -> None:
        await self._fail(run, why, RunOutput())

    async def _fail(self, run: Run, why: str, said: RunOutput) -> None:
        await self._end(replace(run, status="failed", why=why), said)

    def _line(self, run: Run, target: Message, words: str, *, kind: DeliveryKind) -> OutboxItem:
        line = self._outgoing(run, 0, Reply(place=target.place, text=words, reply_to=reply_to_id(target)))
        return replace(line, kind=kind)

    def _outgoing(self, run: Run, number: int, reply: Reply) -> OutboxItem:
        me = self._identity.author_on(reply.place.platform)
        return OutboxItem(id=f"{run.id}-{number}", reply=reply, made_at=self._now(), run=run.id, author=me)

    async def _end(self, run: Run, said: RunOutput) -> None:
        """Store the end and carry it out. A cancelled caller waits for that: a write that has begun is not undone."""
        ending = asyncio.ensure_future(self._keep(run, said.replies, said.tasks))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait([ending])
            if trouble := ending.exception():
                log.error("run %s is still open: %s", run.id, trouble)
            raise

    async def _keep(self, run: Run, replies: Sequence[OutboxItem], tasks: Sequence[Task]) -> None:
        if run.status == "failed":
            run = await self._as_kept(run)
            replies = [_quoting(run.target, line) for line in replies]
        deliveries = await self._on_draft(run, split_replies(replies, self._platforms))
        await self._runs.end(replace(run, ended_at=self._now()), replies=deliveries, tasks=tasks)
        self._sent(deliveries)
        if tasks:
            self._planned()

    async def _on_draft(self, run: Run, deliveries: tuple[OutboxItem, ...]) -> tuple[OutboxItem, ...]:
        """Return the deliveries; where people see a draft of the answer, the first one edits it."""
        platform = self._platforms.get(run.place.platform)
        if platform is None or not platform.capabilities.drafts:
            return deliveries
        draft = await self._outbox.draft(run.id)
        if draft is None or draft.status != "sent" or draft.message_id is None:
            return deliveries
        return on_draft(draft, deliveries, line=stop_line(draft, self._now()))

    async def _as_kept(self, run: Run) -> Run:
        """The run as it was begun, and with the messages it took on since: its first target may have been deleted."""
        journal = await self._runs.journal(run.id)
        if journal is None:  # it has asked nothing
            return replace(run, horizon=0)
        begun = journal.run
        return replace(run, target=begun.target, taken=begun.taken, horizon=begun.horizon)


def _quoting(message_id: str, line: OutboxItem) -> OutboxItem:
    """The line with this message quoted, where it quotes one."""
    if line.reply.reply_to is None:
        return line
    return replace(line, reply=replace(line.reply, reply_to=message_id))

"""Run completion: ends a run with replies and tasks, an error notice, or nothing, stored before anything is sent."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tertulia.engine.background import foreign_code, log_text
from tertulia.engine.elsewhere import Elsewhere
from tertulia.engine.languages.lines import Lines
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.reply_parts import LongReplies, edit_draft
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import OutboxItem, PromptOutdated
from tertulia.engine.task_worker import TaskWorker
from tertulia.errors import InvalidValue, TertuliaError, reason_of, seconds_to_wait
from tertulia.events import RunFailed
from tertulia.memory.values import Fact
from tertulia.messages import Message, Place, Reply
from tertulia.models.base import Response
from tertulia.parts import ToolResult
from tertulia.platform import DeliveryKind
from tertulia.run.cleaner import clean
from tertulia.run.journal import Run
from tertulia.run.loop import RunAnswered
from tertulia.run.outcome import MOST_MEDIA, ParsedTexts, reply_to_id, run_outcome
from tertulia.tasks.task import FORGET_CONFIRMED, Task

log = logging.getLogger(__name__)


class RunOutput(Struct, frozen=True, kw_only=True):
    """The replies and tasks of a run."""

    replies: tuple[OutboxItem, ...] = ()
    tasks: tuple[Task, ...] = ()


Answer = tuple[Run, RunOutput, Message]  # a run to complete, its output, and the message it answers


class RunCompletion:
    """Stores the ends of runs, then gives on their replies and tasks."""

    def __init__(self, shared: Shared, long_replies: LongReplies, sender: OutboxSender, tasks: TaskWorker) -> None:
        self._shared = shared
        self._runs, self._outbox = shared.store.runs, shared.store.outbox
        self._delimiters = shared.delimiters
        self._behavior = shared.behavior
        self._translator = shared.translator
        self._platforms = shared.platforms
        self._now = shared.now
        self._long_replies = long_replies
        self._sender = sender
        self._tasks = tasks
        self._elsewhere = Elsewhere(shared)

    async def close_drafts(self) -> None:
        """Replace the drafts of runs that ended, or were withdrawn, without an answer."""
        for draft in await self._outbox.abandoned_drafts():
            platform = self._platforms.get(draft.reply.place.platform)
            if platform is not None and platform.capabilities_in(draft.reply.place).drafts:
                line = await self._stop_line(draft)
                await self._outbox.put(line)
                self._sender.enqueue([line])

    async def correction(self, texts: ParsedTexts, run: Run, response: Response) -> str | None:
        """Return a text for the model about the blocks of its answer that cannot be used, if there are any."""
        await self._look_up(texts, run, response.text)
        return texts.correction(response)

    async def _look_up(self, texts: ParsedTexts, run: Run, text: str) -> None:
        """Look up the stickers that a text names, and where it sends."""
        await self._look_up_stickers(texts, run.place, text)
        for recipient in texts.recipients(text):
            texts.set_target(recipient, await self._elsewhere.find(run, recipient))

    async def _look_up_stickers(self, texts: ParsedTexts, place: Place, text: str) -> None:
        """Ask the platform for the stickers that a text names."""
        platform = self._platforms[place.platform]
        for set_name, name in texts.stickers(text):
            try:
                with foreign_code(platform.name):
                    fault = await platform.sticker_fault(set_name, name)
            except Exception as error:  # noqa: BLE001 (a platform's own; then nobody knows)
                log.error("%s.sticker_fault failed: %s", platform.name, log_text(error))
                fault = None
            texts.set_fault((set_name, name), fault)

    async def make_output(
        self, answered: RunAnswered, target: Message, texts: ParsedTexts, *, markers: Collection[str] = frozenset()
    ) -> RunOutput:
        """Return the replies and tasks of an answer."""
        run = answered.run
        for turn in answered.turns:
            if turn.role == "model":
                await self._look_up(texts, run, turn.text)
        turns = await self._long_replies.media.add_files_to_turns(answered.turns, target.place.platform)
        found = run_outcome(
            turns,
            run,
            target,
            now=self._now(),
            delimiter=await self._delimiters.get(target.place),
            texts=texts,
            markers=markers,
        )
        made = [await self._long_replies.media.add_files_to_reply(reply) for reply in found.replies]
        replies = tuple(
            replace(self._make_item(run, number, reply), streamed=streamed, turns=own)
            for number, (reply, streamed, own) in enumerate(zip(made, found.streamed, found.turns, strict=True))
        )
        if found.unsent:
            line = (await self._translator.lines_for(target, run.agent)).more_media.format(
                count=found.unsent, most=MOST_MEDIA
            )
            replies = (*replies, replace(self._line(run, target, line, kind="notice"), id=f"{run.id}-more"))
        ran_tools = any(isinstance(part, ToolResult) for turn in answered.turns for part in turn.parts)
        if ran_tools and (proposed := await self._forget_proposal(run, target)):  # only tools make proposals
            replies = (*replies, proposed)
        if not (replies or found.tasks or found.silent):
            lines = await self._translator.lines_for(target, run.agent)
            replies = (self._line(run, target, lines.nothing_to_say, kind="notice"),)
        return RunOutput(replies=replies, tasks=found.tasks)

    async def _forget_proposal(self, run: Run, target: Message) -> OutboxItem | None:
        """Return the line that asks a person to confirm what the model proposes to forget."""
        facts = await self._shared.store.proposals.made_by(run.id)
        if not facts:
            return None
        lines = await self._translator.lines_for(target, run.agent)
        words = clean(self._behavior.forget_line(facts, lines), delimiter=await self._delimiters.get(target.place))
        return replace(self._line(run, target, words, kind="notice"), id=f"{run.id}-forget", purpose="proposal")

    async def complete_with_forgetting(self, run: Run, target: Message, facts: Sequence[Fact]) -> None:
        """End a run with a task that forgets the facts that *target* confirms."""
        language = await self._translator.language_of(target.place, target.author)
        args = {"facts": [fact.id for fact in facts], "reply_to": reply_to_id(target), "language": language}
        task = Task(
            id=f"{run.id}-forget",
            kind=FORGET_CONFIRMED,
            place=target.place,
            due_at=self._now(),
            args=args,
            made_by=run.id,
        )
        await self._end(replace(run, status="done"), RunOutput(tasks=(task,)))

    async def complete(self, run: Run, output: RunOutput, target: Message) -> None:
        """End a run with its output; with an error notice where the store refuses it: a person was forgotten."""
        try:
            await self._end(replace(run, status="done"), output)
        except PromptOutdated:
            raise
        except InvalidValue as error:
            await self.complete_with_error(run, target, error)

    async def complete_with_error(self, run: Run, target: Message, error: TertuliaError) -> None:
        """End a run with a line about the error, by `Behavior.error_text`."""
        self._publish_failure(run, error)
        lines = await self._translator.lines_for(target, run.agent)
        try:
            words = self._behavior.error_line(error, lines)
            words = words if words.strip() else lines.failed
        except Exception as failure:  # noqa: BLE001 (the function is the user's)
            log.error("Behavior.error_text failed for %s: %s", error, log_text(failure))
            words = lines.failed
        await self._fail(run, reason_of(error)[:1000], self._line(run, target, words, kind="error"))

    def _publish_failure(self, run: Run, error: TertuliaError) -> None:
        wait = seconds_to_wait(getattr(error, "retry_after", None))
        why, kind, events = reason_of(error), type(error).__name__, self._shared.events
        if not events.has_readers:
            log.warning("run %s failed: %s", run.id, why)
        events.publish(RunFailed(place=run.place, run_id=run.id, error=kind, why=why, retry_after=wait))

    async def complete_with_notice(self, run: Run, target: Message, line: Callable[[Lines], str], *, why: str) -> None:
        """End a run with a notice that is not an error."""
        words = line(await self._translator.lines_for(target, run.agent))
        await self._fail(run, why, self._line(run, target, words, kind="notice"))

    async def complete_silently(self, run: Run, *, why: str) -> None:
        await self._fail(run, why)

    async def _fail(self, run: Run, why: str, *lines: OutboxItem) -> None:
        await self._end(replace(run, status="failed", why=why), RunOutput(replies=lines))

    def _line(self, run: Run, target: Message, words: str, *, kind: DeliveryKind) -> OutboxItem:
        """Return a line of the agent itself; without an author it does not enter the log."""
        line = self._make_item(run, 0, Reply(place=target.place, text=words, reply_to=reply_to_id(target)))
        return replace(line, kind=kind, author=None, waits=False)

    def _make_item(self, run: Run, number: int, reply: Reply) -> OutboxItem:
        identity = self._shared.identity
        return OutboxItem(
            id=f"{run.id}-{number}",
            reply=reply,
            made_at=self._now(),
            run=run.id,
            agent=run.agent,
            waits=not identity.cast.is_single,
            author=identity.author_in(reply.place, run.agent),
        )

    async def _end(self, run: Run, output: RunOutput) -> None:
        """Store the end of a run. A cancelled caller waits for that, since a write that has begun is not undone."""
        ending = asyncio.ensure_future(self._store_end(run, output.replies, output.tasks))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait([ending])
            if trouble := ending.exception():
                log.error("run %s is not ended: %s", run.id, trouble)
            raise

    async def _store_end(self, run: Run, replies: Sequence[OutboxItem], tasks: Sequence[Task]) -> None:
        if run.status == "failed":
            run = await self._as_begun(run)
            replies = [
                replace(line, reply=replace(line.reply, reply_to=None if line.reply.reply_to is None else run.target))
                for line in replies
            ]
        deliveries = await self._edit_draft(run, await self._long_replies.split(replies))
        tasks = [replace(task, agent=run.agent) for task in tasks]
        await self._runs.end(replace(run, ended_at=self._now()), replies=deliveries, tasks=tasks)
        self._sender.enqueue(deliveries)
        if tasks:
            self._tasks.wake()

    async def _edit_draft(self, run: Run, deliveries: tuple[OutboxItem, ...]) -> tuple[OutboxItem, ...]:
        """Return the deliveries; where a draft of the run is visible, the first one edits it."""
        platform = self._platforms.get(run.place.platform)
        if platform is None or not platform.capabilities_in(run.place).drafts:
            return deliveries
        draft = await self._outbox.draft(run.id)
        if draft is None or draft.status != "sent" or draft.message_id is None:
            return deliveries
        return edit_draft(draft, deliveries, closing=await self._stop_line(draft))

    async def _stop_line(self, draft: OutboxItem) -> OutboxItem:
        """Return the line that replaces a draft without an answer; it does not enter the log."""
        lines = await self._translator.lines_for_reply(draft)
        return OutboxItem(
            id=f"{draft.id}-end",
            reply=replace(draft.reply, text=lines.stopped_draft),
            made_at=self._now(),
            run=draft.run,
            kind="notice",
            purpose="draft end",
            agent=draft.agent,
            edits=draft.message_id,
        )

    async def _as_begun(self, run: Run) -> Run:
        """Return the run with its target and messages as stored: those it was made with may have been deleted."""
        journal = await self._runs.journal(run.id)
        if journal is None:  # it never began
            return replace(run, horizon=0)
        begun = journal.run
        return replace(run, target=begun.target, taken=begun.taken, horizon=begun.horizon)

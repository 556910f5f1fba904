"""Task worker: runs each task once when it is due, and retries it with backoff when it fails.

The handlers of the built-in kinds are here: send, sticker, remember, forget, block, unblock, clear-conversation.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from tertulia.engine.background import (
    BackgroundTasks,
    foreign_code,
    is_cancelled,
    log_text,
    retry_forever,
    wait_for_event,
)
from tertulia.engine.behavior import Behavior, require_right_to_clear
from tertulia.engine.memory.recall import evidence_messages
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.reply_parts import LongReplies
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import CallerMustAct, InvalidValue, StoreBroken, TertuliaError, reason_of, seconds_to_wait
from tertulia.memory.facts import as_own, default_scope, subject_of
from tertulia.memory.values import MAX_FACT_LENGTH, Fact
from tertulia.memory.verify.claims import unfit_reason
from tertulia.memory.verify.clauses import supporting_messages
from tertulia.messages import Author, Reply
from tertulia.run.outcome import make_reply
from tertulia.tasks import graph
from tertulia.tasks.blocks import block_text, lines_for_model
from tertulia.tasks.kinds import KINDS, BlockLine, Body, Kind, for_model, offered_kinds
from tertulia.tasks.task import FORGET_CONFIRMED, SENDS, Send, SendSticker, Task, block_of
from tertulia.turns import Turn, model

log = logging.getLogger(__name__)

GRACE = 5.0  # seconds that running tasks may take to end when the engine closes
CLOCK_CHECK = 30.0  # seconds between reads of the wall clock, which may have been set

RunTask = Callable[[Task], Awaitable[Sequence[Reply] | None]]  # runs a task; returns the replies to send


def raw_text(body: Body) -> object:
    """Read a block whose body may be anything."""
    return body.text


class TaskHandler(Struct, frozen=True, kw_only=True):
    """Runs the tasks of one kind, and reads its blocks."""

    run: RunTask
    read: Kind = raw_text
    repeatable: bool = False  # whether it may run twice, after a crash with an unknown outcome
    about: str | None = ""  # a line for the model about its blocks; None leaves it out
    notices: bool = False  # whether its replies are notices, which are no part of the conversation


def block_kinds(task_handlers: Mapping[str, TaskHandler], behavior: Behavior) -> dict[str, Kind]:
    """Return the block kinds: the built-in ones and those of *task_handlers*; a model may use those of *behavior*."""
    known = {**KINDS, **{kind: _logged(kind, work.read) for kind, work in task_handlers.items()}}
    if unknown := [name for name in behavior.blocks or () if name not in known]:
        raise InvalidValue(f"Behavior: blocks must hold some of {', '.join(known)}, not {', '.join(unknown)}")
    return for_model(known, offered_kinds(known, may=behavior.model_may, chosen=behavior.blocks))


def _logged(name: str, read: Kind) -> Kind:
    """Return *read* with logging: an error other than `ValueError`, which goes to the model, is logged."""

    def logged(body: Body) -> object:
        try:
            return read(body)
        except ValueError:
            raise
        except Exception as error:
            log.warning("task block %s: read failed: %s", name, log_text(error))
            raise

    return logged


def block_lines(
    task_handlers: Mapping[str, TaskHandler], kinds: Mapping[str, Kind], behavior: Behavior
) -> tuple[BlockLine, ...]:
    """Return the lines for the model about those of *kinds* that it is offered."""
    offered = offered_kinds(kinds, may=behavior.model_may, chosen=behavior.blocks)
    return lines_for_model(offered, {kind: work.about for kind, work in task_handlers.items()})


class TaskWorker:
    """Runs due tasks and ends blocks of authors. It reads the store only when one is due or `wake` is called."""

    def __init__(
        self,
        shared: Shared,
        task_handlers: Mapping[str, TaskHandler],
        long_replies: LongReplies,
        sender: OutboxSender,
        *,
        grace: float = GRACE,
    ) -> None:
        self._shared = shared
        self._tasks = shared.store.tasks
        self._end_blocks = shared.store.place_settings.end_blocks
        self._platforms = shared.platforms
        self._now, self._sleep = shared.now, shared.sleep
        self._handlers = {**BuiltinTasks(shared).handlers, **task_handlers}
        self._long_replies = long_replies
        self._sender = sender
        self._grace = grace
        self._loop: asyncio.Task[None] | None = None
        self._background = BackgroundTasks()
        self._woken = asyncio.Event()
        self._asleep = asyncio.Event()  # set while no task is due

    async def recover(self) -> None:
        """Reset the tasks that an earlier process left running, and end the blocks that ended meanwhile."""
        await self._end_blocks(self._now())
        repeatable = {kind for kind, handler in self._handlers.items() if handler.repeatable}
        for task in await self._tasks.recover(repeatable, platforms=self._platforms):
            if task.doubtful:
                log.warning("task %s (%s): %s", task.id, task.kind, task.why)

    def wake(self) -> None:
        """Read the store again: a task was added, or one that others depend on has ended."""
        self._asleep.clear()
        self._woken.set()

    async def done(self) -> None:
        """Wait until no task is due or running."""
        await self._asleep.wait()
        await self._background.done()

    @property
    def busy(self) -> bool:
        return self._background.busy or not self._asleep.is_set()

    def start(self) -> None:
        """Run due tasks until `stop`."""
        self._loop = asyncio.create_task(self.run())

    @property
    def is_started(self) -> bool:
        return self._loop is not None

    async def stop(self) -> None:
        """Start no more tasks; those that run go on."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
            self._loop = None

    async def close(self) -> None:
        """Stop; running tasks have *grace* seconds to end."""
        await self.stop()
        await self._background.stop(grace=self._grace)

    async def run(self) -> None:
        """Run due tasks until cancelled."""
        while True:
            self._woken.clear()
            self._asleep.clear()
            try:
                due = await self._start_due_tasks()
            except StoreBroken as error:
                log.error("tasks stop until the store is repaired: %s", error)
                self._background.broken, due = error, None
            except TertuliaError as error:  # of the store, which may work again later
                log.error("tasks are read again in %g s: %s", CLOCK_CHECK, error)
                due = self._now() + timedelta(seconds=CLOCK_CHECK)
            if not self._woken.is_set():
                self._asleep.set()
            await self._sleep_until(due)

    async def _start_due_tasks(self) -> datetime | None:
        """Start all tasks that are due, and end the blocks that end; return when the next one is or does."""
        while True:
            block_end = await self._end_blocks(self._now())
            due = await self._tasks.next_due(platforms=self._platforms)
            if due is None or due > self._now():
                return min(filter(None, (due, block_end)), default=None)
            for task in await self._tasks.take(self._now(), platforms=self._platforms):
                self._asleep.clear()
                self._background.start(self._run_task(task))

    async def _sleep_until(self, due: datetime | None) -> None:
        if due is None:
            await self._woken.wait()
            return
        while not self._woken.is_set() and (left := (due - self._now()).total_seconds()) > 0:
            await wait_for_event(self._woken, min(left, CLOCK_CHECK), sleep=self._sleep)

    async def _run_task(self, task: Task) -> None:
        """Run one task, and store its end."""
        try:
            replies = await self._make_items(task, await self._call_handler(task))
            ended = graph.finish(task, now=self._now())
        except CallerMustAct as error:
            ended, replies = self._failed(task, error, permanent=True), []
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            ended, replies = self._failed(task, TertuliaError("cancelled by the handler, not by shutdown")), []
        except Exception as error:  # noqa: BLE001 (the handler is foreign code; the task is retried)
            ended, replies = self._failed(task, error), []
        await self._end(task, ended, replies)
        self.wake()

    async def _end(self, task: Task, ended: Task, replies: Sequence[OutboxItem]) -> None:
        """Store the end of a task; where the store refuses its replies, the task has failed."""
        try:
            await retry_forever(lambda: self._tasks.end(ended, replies=replies), sleep=self._sleep)
            self._sender.enqueue(replies)
        except InvalidValue as error:
            if not replies:  # it was removed meanwhile
                log.info("%s", error)
                return
            await self._end(task, self._failed(task, error, permanent=True), ())

    async def _call_handler(self, task: Task) -> Sequence[Reply]:
        handler = self._handlers.get(task.kind)
        if handler is None:
            raise CallerMustAct(f"no handler for tasks of kind {task.kind!r}")
        with foreign_code(task.kind):
            return await handler.run(task) or ()

    async def _make_items(self, task: Task, replies: Sequence[Reply]) -> Sequence[OutboxItem]:
        if not isinstance(replies, list | tuple) or not all(isinstance(reply, Reply) for reply in replies):
            raise InvalidValue(f"the handler of {task.kind!r} must return a list of replies or None, not {replies!r}")
        if unknown := {reply.place.platform for reply in replies} - set(self._platforms):
            raise InvalidValue(f"the engine has no platform {', '.join(sorted(unknown))}")
        notices = self._handlers[task.kind].notices
        name = f"{task.id}-{task.due_at:%Y%m%dT%H%M%S}" if task.again else task.id  # each time has replies of its own
        items = [
            OutboxItem(
                id=f"{name}-{number}",
                reply=await self._long_replies.media.add_files_to_task_reply(reply) if reply.media else reply,
                made_at=self._now(),
                task=task.id,
                kind="notice" if notices else "task",
                agent=task.agent,
                waits=not (notices or self._shared.identity.cast.is_single),
                author=None if notices else self._shared.identity.author_in(reply.place, task.agent),
                turns=_written(task, reply),
            )
            for number, reply in enumerate(replies)
        ]
        return await self._long_replies.split(items)

    def _failed(self, task: Task, error: Exception, *, permanent: bool = False) -> Task:
        why = reason_of(error)
        pause = timedelta(seconds=seconds_to_wait(getattr(error, "retry_after", None)) or 0.0)  # any error may have it
        failed = graph.fail(
            task, now=self._now(), why=why, permanent=permanent, pause=pause, retry=self._shared.behavior.retry
        )
        log.warning("task %s (%s), %s: %s", task.id, task.kind, failed.status, log_text(error))
        return failed


def _written(task: Task, reply: Reply) -> tuple[Turn, ...]:
    """Return a reply that a model planned as it wrote the block, for the history; nothing for other replies."""
    if task.run is None or task.kind not in SENDS:
        return ()
    step = block_of(task)
    return (model(block_text(replace(step, text=reply.text) if isinstance(step, Send) else step)),)


class BuiltinTasks:
    """Handlers of the task kinds that every agent has. `handlers` has them by kind."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._place_settings = shared.store.place_settings
        self._facts = shared.store.facts
        self._behavior = shared.behavior
        self._now = shared.now
        self.handlers: Mapping[str, TaskHandler] = {
            kind: TaskHandler(run=run, repeatable=True, notices=kind == FORGET_CONFIRMED)
            for kind, run in (
                ("send", self._say),
                ("sticker", self._say),
                ("remember", self._remember),
                ("block", self._block),
                ("unblock", self._unblock),
                ("clear-conversation", self._clear),
                (FORGET_CONFIRMED, self._forget),
            )
        }

    async def _say(self, task: Task) -> Sequence[Reply]:
        step = block_of(task)
        if not isinstance(step, Send | SendSticker):
            raise InvalidValue(f"task {task.id}: kind {task.kind} sends nothing")
        reply = make_reply(step, task.place, None, delimiter=await self._shared.delimiters.get(task.place))
        return [reply] if reply else []

    async def _remember(self, task: Task) -> None:
        texts, source = task.args.get("facts"), task.args.get("source")
        if not isinstance(texts, list) or not isinstance(source, str):
            raise InvalidValue(f"task {task.id} has no facts to remember")
        author = _author(task)
        evidence = await evidence_messages(self._shared.store.log, author, place=task.place, target=source)
        found = [
            (number, text, await asyncio.to_thread(supporting_messages, text, author, evidence))
            for number, text in enumerate(map(str, texts))
        ]
        facts = [
            Fact(
                id=f"{task.id}-{number}",
                subject=subject_of(author, task.place),
                text=text[:MAX_FACT_LENGTH],
                place=task.place,
                sources=tuple(message.id for message in sources),
                learned_at=self._now(),
                scope=default_scope(task.place),
            )
            for number, text, sources in found
            if sources and not unfit_reason(text)  # rejects claims without support, instructions and secrets
        ]
        if len(facts) < len(found):
            log.info("task %s: %d of %d facts rejected", task.id, len(found) - len(facts), len(found))
        seen_by = self._shared.identity.seen_by(task.agent)
        await self._facts.learn([as_own(fact, seen_by.agent) for fact in facts] if seen_by and seen_by.own else facts)

    async def _forget(self, task: Task) -> Sequence[Reply]:
        facts, near = task.args.get("facts"), task.args.get("reply_to")
        if not isinstance(facts, list):
            raise InvalidValue(f"task {task.id} has no list of facts to forget")
        await self._facts.forget(list(map(str, facts)), at=self._now())
        lines = self._behavior.lines_in(str(task.args.get("language") or ""))
        return [Reply(place=task.place, text=lines.forgotten, reply_to=near)]

    def _refuse_models(self, task: Task) -> None:
        """Raise `InvalidValue` for a destructive task of a model that `model_may` does not allow now."""
        if task.run is not None and task.kind not in self._behavior.model_may:
            raise InvalidValue(f"task {task.id}: Behavior.model_may does not allow {task.kind}")

    async def _block(self, task: Task) -> None:
        self._refuse_models(task)
        service = task.place.author_namespace
        await self._place_settings.block(platform=service, author_id=_author(task).id, at=self._now())

    async def _unblock(self, task: Task) -> None:
        await self._place_settings.unblock(platform=task.place.author_namespace, author_id=_author(task).id)

    async def _clear(self, task: Task) -> None:
        self._refuse_models(task)
        beginning = task.args.get("beginning")
        if not isinstance(beginning, int):
            raise InvalidValue(f"task {task.id} has no number at which the conversation begins")
        if task.run is not None and task.place.kind != "direct":  # planned by a model, so its author needs the right
            await require_right_to_clear(task.place, _author(task), self._shared.identity.is_administrator)
        await self._place_settings.clear(task.place, beginning, at=self._now())


def _author(task: Task) -> Author:
    """Return the author of the message that led to the task."""
    try:
        return convert(task.args.get("author"), Author)
    except ValidationError as error:
        raise InvalidValue(f"task {task.id} has no author") from error

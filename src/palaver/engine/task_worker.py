"""Tasks carried out when they are due, each once, however often the process or its clock is interrupted."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from palaver.engine.background import (
    BackgroundTasks,
    Sleep,
    error_text,
    foreign_code,
    is_cancelled,
    retry_forever,
    wait_for_event,
)
from palaver.engine.outbox_sender import split_replies
from palaver.engine.store_protocols import OutboxItem, TaskStore
from palaver.errors import CallerMustAct, InvalidValue, PalaverError, StoreBroken, seconds_to_wait
from palaver.messages import Author, Place, Reply
from palaver.platform import Platform
from palaver.redaction import redact_keys
from palaver.tasks import graph
from palaver.tasks.blocks import lines_for_model
from palaver.tasks.kinds import KINDS, Body, Kind, for_model
from palaver.tasks.policy import RETRY, Retry
from palaver.tasks.task import Task

log = logging.getLogger(__name__)

GRACE = 5.0  # seconds in which what is under way may end when the program does
GLANCE = 30.0  # seconds after which the clock on the wall is looked at again: it may have been set

RunTask = Callable[[Task], Awaitable[Sequence[Reply] | None]]  # does the work; what is to be said about it


def as_it_stands(body: Body) -> object:
    """A kind of block whose body may be anything."""
    return body.text


class TaskHandler(Struct, frozen=True, kw_only=True):
    """What runs the tasks of one kind, and reads its blocks."""

    run: RunTask
    read: Kind = as_it_stands
    repeatable: bool = False  # whether it may run again when a crash has left its outcome unknown
    about: str | None = ""  # a line for the model: what its blocks are for; None: the model is not told of them


def kinds_with(task_handlers: Mapping[str, TaskHandler], *, may: Collection[str] = ()) -> dict[str, Kind]:
    """All kinds of blocks as a model may use them: those that every agent knows, and those of *task_handlers*."""
    return for_model({**KINDS, **{kind: _logged(kind, work.read) for kind, work in task_handlers.items()}}, may=may)


def _logged(name: str, read: Kind) -> Kind:
    """The kind *read*, registered under that name; an error that it does not mean for the model is logged."""

    def logged(body: Body) -> object:
        try:
            return read(body)
        except ValueError:
            raise
        except Exception as error:
            log.warning("a block of the kind %s cannot be read: %s", name, error_text(error))
            raise

    return logged


def block_lines(task_handlers: Mapping[str, TaskHandler], kinds: Mapping[str, Kind]) -> tuple[str, ...]:
    """A line for the model about each of *kinds* that it may use."""
    return lines_for_model(kinds, {kind: work.about for kind, work in task_handlers.items()})


class TaskWorker:
    """Sleeps until something is due, and touches the store only then."""

    def __init__(
        self,
        tasks: TaskStore,
        task_handlers: Mapping[str, TaskHandler],
        *,
        platforms: Mapping[str, Platform],
        me: Callable[[Place], Author],
        sent: Callable[[Sequence[OutboxItem]], None],
        now: Callable[[], datetime],
        retry: Retry = RETRY,
        sleep: Sleep = asyncio.sleep,
        grace: float = GRACE,
    ) -> None:
        self._tasks = tasks
        self._grace = grace
        self._works = task_handlers
        self._platforms = platforms
        self._background = BackgroundTasks()
        self._me = me
        self._sent = sent
        self._now = now
        self._retry = retry
        self._sleep = sleep
        self._woken = asyncio.Event()
        self._asleep = asyncio.Event()  # nothing is due

    async def recover(self) -> None:
        """Take up what an earlier process was at."""
        repeatable = {kind for kind, work in self._works.items() if work.repeatable}
        for task in await self._tasks.recover(repeatable, platforms=self._platforms):
            if task.doubtful:
                log.warning("task %s (%s): %s", task.id, task.kind, task.why)

    def wake(self) -> None:
        """Look again: something was planned, or something that others wait for is over."""
        self._asleep.clear()
        self._woken.set()

    async def done(self) -> None:
        """Wait until nothing is due, and nothing under way."""
        await self._asleep.wait()
        await self._background.done()

    @property
    def busy(self) -> bool:
        return self._background.busy or not self._asleep.is_set()

    async def close(self) -> None:
        """End; what is under way has a little time to come to its end."""
        await self._background.stop(grace=self._grace)

    async def run(self) -> None:
        """Work for as long as the engine runs."""
        while True:
            self._woken.clear()
            self._asleep.clear()
            try:
                due = await self._begin()
            except StoreBroken as error:
                log.error("tasks wait until the store is mended: %s", error)
                self._background.broken, due = error, None
            except PalaverError as error:  # the store's: a full disk may have room again
                log.error("tasks wait: %s", error)
                due = self._now() + timedelta(seconds=GLANCE)
            if not self._woken.is_set():
                self._asleep.set()
            await self._until(due)

    async def _begin(self) -> datetime | None:
        """Begin all that is due; when the next one is."""
        while True:
            due = await self._tasks.next_due(platforms=self._platforms)
            if due is None or due > self._now():
                return due
            for task in await self._tasks.take(self._now(), platforms=self._platforms):
                self._asleep.clear()
                self._background.begin(self._do(task))

    async def _until(self, due: datetime | None) -> None:
        if due is None:
            await self._woken.wait()
            return
        while not self._woken.is_set() and (left := (due - self._now()).total_seconds()) > 0:
            await wait_for_event(self._woken, min(left, GLANCE), sleep=self._sleep)

    async def _do(self, task: Task) -> None:
        """One task, begun already, to its end."""
        try:
            ended, replies = graph.finish(task), self._outgoing(task, await self._carried_out(task))
        except CallerMustAct as error:
            ended, replies = self._failed(task, error, permanent=True), []
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            ended, replies = self._failed(task, PalaverError("it was cancelled from within")), []
        except Exception as error:  # noqa: BLE001 (whatever a handler raises; it is tried again)
            ended, replies = self._failed(task, error), []
        await self._end(task, ended, replies)
        self.wake()

    async def _end(self, task: Task, ended: Task, replies: Sequence[OutboxItem]) -> None:
        """Keep how a task has ended; if what it says cannot be kept, it has failed."""
        try:
            await retry_forever(lambda: self._tasks.end(ended, replies=replies), sleep=self._sleep)
            self._sent(replies)
        except InvalidValue as error:
            if not replies:  # it was forgotten meanwhile
                log.info("%s", error)
                return
            await self._end(task, self._failed(task, error, permanent=True), ())

    async def _carried_out(self, task: Task) -> Sequence[Reply]:
        work = self._works.get(task.kind)
        if work is None:
            raise CallerMustAct(f"nothing here runs tasks of the kind {task.kind!r}")
        with foreign_code(task.kind):
            return await work.run(task) or ()

    def _outgoing(self, task: Task, said: Sequence[Reply]) -> Sequence[OutboxItem]:
        if not isinstance(said, list | tuple) or not all(isinstance(reply, Reply) for reply in said):
            raise InvalidValue(f"what runs {task.kind!r} gives a list of replies or nothing, not {said!r}")
        if unknown := {reply.place.platform for reply in said} - set(self._platforms):
            raise InvalidValue(f"there is no platform {', '.join(sorted(unknown))} to send to")
        replies = [
            OutboxItem(
                id=f"{task.id}-{number}",
                reply=reply,
                made_at=self._now(),
                task=task.id,
                kind="task",
                author=self._me(reply.place),
            )
            for number, reply in enumerate(said)
        ]
        return split_replies(replies, self._platforms)

    def _failed(self, task: Task, error: Exception, *, permanent: bool = False) -> Task:
        why = redact_keys(str(error) if isinstance(error, PalaverError) else f"{type(error).__name__}: {error}")
        pause = timedelta(seconds=seconds_to_wait(getattr(error, "retry_after", None)) or 0.0)  # anybody's error has it
        failed = graph.fail(task, now=self._now(), why=why, permanent=permanent, pause=pause, retry=self._retry)
        log.warning("task %s (%s), %s: %s", task.id, task.kind, failed.status, error_text(error))
        return failed

"""Place workers: answer the messages that wait in each place, one run at a time.

A run is stored with its first prompt before the model is called, and every step after it. So a worker finds each run
that a crash, a full disk or a stop left open, and resumes it from its journal: model calls and tools whose results are
stored are not repeated. A run is resumed at most `Behavior.max_resumes` times, then it ends with an error notice. If a
message of a batch is edited or deleted before its run is stored, the prompt is built again. If that happens later, the
run is withdrawn, and its messages wait for a new one.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from tertulia.backoff import backoff
from tertulia.context.budget import group_reports
from tertulia.engine.admission import Admission
from tertulia.engine.background import FIRST_RETRY, LONGEST_RETRY, BackgroundTasks, Slot, is_cancelled, log_text
from tertulia.engine.batches import Batch
from tertulia.engine.checks import AuthorRate, Check, NotAnswered
from tertulia.engine.debounce import Debounce
from tertulia.engine.memory import Memory
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.run_completion import Answer, RunCompletion
from tertulia.engine.run_executor import Begun, RunExecutor
from tertulia.engine.shared import Shared
from tertulia.engine.speaker import Speaker, Speakers
from tertulia.engine.store_protocols import PromptOutdated
from tertulia.errors import StoreBroken, StoreTrouble, TertuliaError, reason_of
from tertulia.events import Recalled
from tertulia.messages import Message, Place, PlaceKey
from tertulia.run.journal import Journal, Run
from tertulia.turns import Turn

log = logging.getLogger(__name__)

FORMER_ANSWER = 30.0  # seconds that an agent waits until the answer of the one before it is sent
MAX_REBUILDS = 3  # of a prompt while messages are edited; then only what is deleted or forgotten outdates it
STOPPED, AGENT_REMOVED = "stopped by a request", "its agent was removed"
CANCELLED = "cancelled by the callee, not by shutdown"
GAVE_UP = "gave up after {times} resumes"


class WorkerParts(Struct, frozen=True, kw_only=True, eq=False):
    """What the workers of all places share."""

    shared: Shared
    speakers: Speakers
    memory: Memory | None
    admission: Admission
    rate: AuthorRate
    checks: tuple[Check, ...]  # around each answer, the outermost first
    executor: RunExecutor
    completion: RunCompletion
    sender: OutboxSender
    slots: asyncio.Semaphore  # for `Behavior.max_runs` runs
    resumed: set[str] = field(default_factory=set)  # ids of the runs that this process has resumed


class PlaceWorker:
    """Answers the messages that wait in one place, one run at a time."""

    def __init__(self, place: Place, parts: WorkerParts, *, runs: Sequence[Run] | None = ()) -> None:
        self.place = place
        self.keys = [place.key]  # of the place and of its former ids, the newest last
        self.answering: str | None = None  # the name of the agent that answers now
        self.answered: Message | None = None  # the target of the batch in work, also before its run is stored
        self._parts = parts
        self._shared, self._store = parts.shared, parts.shared.store
        self._debounce = Debounce(place, parts.shared, parts.admission, parts.rate, parts.speakers)
        self._open_runs = None if runs is None else list(runs)  # runs to resume; None: read them from the store
        self._is_stopping = False  # the current run is to end without an answer
        self._current_run: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Read again what waits: a message came in, or was edited or deleted."""
        self._debounce.changed.set()

    def move(self, place: Place) -> None:
        """Continue in the place that this one has migrated to."""
        self.place = place
        self.keys.append(place.key)
        self._debounce.move(place)

    def stop(self) -> None:
        """End the current run, or the one that was running when the store failed."""
        self._is_stopping = self._current_run is not None or self._open_runs is None
        if self._current_run is not None:
            self._current_run.cancel()

    async def run(self) -> None:
        """Answer until no message waits. Retry with backoff on `StoreTrouble`, except on `StoreBroken`."""
        failures = 0
        while True:
            self._debounce.changed.clear()
            try:
                if self._open_runs is None:
                    self._open_runs = [run for run in await self._store.runs.open() if run.place.key in self.keys]
                if not await self._run_once() and not self._debounce.changed.is_set():
                    return
                failures = 0
            except StoreBroken:
                raise
            except StoreTrouble as trouble:
                self._open_runs = None
                failures += 1
                pause = backoff(failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
                log.error("%s; retried in %g s", trouble, pause)
                await self._shared.sleep(pause)

    async def _run_once(self) -> bool:
        """Resume a run, or answer a batch; return whether more may wait."""
        if self._open_runs:
            await self._run_stoppable(self.resume(self._open_runs.pop(0)))
            return True
        self._is_stopping = False
        batch = await self._debounce.next_batch()
        if batch is None:
            return False
        self.answered = batch.target
        await self._run_stoppable(self._answer_in_turn(batch))
        may_wait = bool(batch.meant) or len(batch.snapshot.waiting) > len(batch.messages)
        return self._open_runs is None or may_wait or not self._parts.speakers.has(batch.agent)

    async def _answer_in_turn(self, batch: Batch) -> None:
        """Answer a batch; an agent that answers after another sees what that one has said, if it comes in time."""
        current: Batch | None = batch
        if batch.follows:
            await self._parts.sender.delivered(self.place, within=FORMER_ANSWER)
            current = await self._debounce.refresh(batch)  # it may have been sent after what waits was read
        if current is not None:
            await self.answer(current)

    async def _run_stoppable(self, work: Awaitable[None]) -> None:
        """Run *work*, which `stop` may cancel."""
        self._current_run = asyncio.ensure_future(work)
        try:
            await self._current_run
        except asyncio.CancelledError:
            if not self._is_stopping or is_cancelled():
                raise
            self._open_runs = None  # its end may not have been stored
        except NotAnswered:
            pass  # its author was told why
        except PromptOutdated as error:
            log.info("a run is withdrawn: %s", error, extra={"place": self.place})
            self.wake()  # its messages wait again
            await self._parts.completion.close_drafts()
        finally:
            self._current_run = self.answered = self.answering = None

    async def answer(self, batch: Batch) -> None:
        """Answer a batch of messages with one run."""
        parts, output = self._parts, None
        if not parts.speakers.has(batch.agent):
            return  # it was removed since: what is undecided is decided again
        speaker = parts.speakers.named(batch.agent)
        self.answering = speaker.agent.name
        async with AsyncExitStack() as around:
            for check in parts.checks:
                batch = await around.enter_async_context(check.around(batch, speaker))
            run = speaker.new_run(batch.messages, batch.target, batch.decided("answered"))
            async with self._ending_failed_run(run, batch.target), Slot(parts.slots) as slot:
                begun = await self._begin(run, batch, speaker, slot)
                output = await self._execute(begun, speaker, slot)
            if output:
                await parts.completion.complete(*output)

    async def resume(self, run: Run) -> None:
        """Resume a run that has begun and not ended; mostly of an earlier process."""
        parts, completion, output = self._parts, self._parts.completion, None
        journal = await self._store.runs.journal(run.id)
        if journal is None:  # withdrawn, or removed with its place
            return
        target = await self._store.log.get(run.place, run.target)
        if target is None or (target.deleted and not target.author.id):  # its author was forgotten
            await completion.complete_silently(run, why="its message was removed")
            return
        if self._is_stopping:
            await completion.complete_silently(run, why=STOPPED)
            return
        if run.id not in parts.resumed:  # count one resume for each process, however often the store fails
            if run.resumed >= self._shared.behavior.max_resumes:
                await completion.complete_with_error(run, target, TertuliaError(GAVE_UP.format(times=run.resumed)))
                return
            run = replace(run, resumed=run.resumed + 1)
            await self._store.runs.resume(run)
            parts.resumed.add(run.id)
            log.info("run resumed", extra={"place": run.place, "run_id": run.id})
        if not parts.speakers.has(run.agent):
            await completion.complete_silently(run, why=AGENT_REMOVED)
            return
        speaker = parts.speakers.named(run.agent)
        self.answering = speaker.agent.name
        await parts.rate.count_resumed(target)
        dynamic = speaker.prompts.resumed_layer(run, target, speaker.models, self._store.place_settings.beginning)
        begun = Begun(replace(journal, run=run), target, dynamic)
        async with parts.rate.uncounted_unless_stored(target):
            async with self._ending_failed_run(run, target), Slot(parts.slots) as slot:
                output = await self._execute(begun, speaker, slot)
            if output:
                await completion.complete(*output)

    async def _begin(self, run: Run, batch: Batch, speaker: Speaker, slot: Slot) -> Begun:
        """Gather the context of a batch, build the prompt and store the run.

        Read the batch again where it may have changed since; raise `NotAnswered` where no message of it is left. A
        place is answered also while its messages are edited on and on: then like an edit after the run began.
        """
        parts, store = self._parts, self._store
        current = await self._debounce.refresh(batch) if slot.waited else batch
        rebuilds = 0
        while current is not None:
            gathered = await speaker.prompts.gather_context(current, speaker.models, while_waiting=slot.release)
            context = await gathered.latest(gathered.context.now)
            prompt = speaker.prompts.build(context, speaker.toolbox.specs, speaker.settings)
            prompt = parts.executor.expired_files.without(prompt)
            if parts.memory:
                parts.memory.add_recalled(context)
                if texts := context.recollections:
                    recalled = Recalled(place=self.place, message_id=current.target.id, texts=texts)
                    self._shared.events.publish(recalled)
            begun = replace(run, target=current.target.id, taken=current.all_ids, horizon=current.snapshot.count)
            begun = replace(begun, decisions=current.decided("answered"), meant=current.meant)
            try:
                await store.runs.begin(
                    begun,
                    prompt,
                    at=self._shared.now(),
                    cancels=self._shared.behavior.policy,
                    changes=current.snapshot.changes,
                    edits_matter=rebuilds < MAX_REBUILDS,
                    left_out=group_reports(context.left_out),
                    recalled=context.recalled,
                )
            except PromptOutdated:
                current, rebuilds = await self._debounce.refresh(current), rebuilds + 1
                continue
            journal = Journal(run=begun, prompt=prompt)
            return Begun(journal, current.target, speaker.prompts.dynamic_layer(gathered))
        raise NotAnswered

    async def _execute(self, begun: Begun, speaker: Speaker, slot: Slot) -> Answer:
        """Execute a run from the end of its journal."""
        joins = self if self._shared.behavior.during_run == "next_step" else None
        return await self._parts.executor.execute(begun, speaker, slot, joins=joins)

    @asynccontextmanager
    async def _ending_failed_run(self, run: Run, target: Message) -> AsyncIterator[None]:
        """End a run that fails with an error notice, and one that is stopped without any."""
        completion, began = self._parts.completion, asyncio.get_running_loop().time()

        def worked_run() -> Run:
            return replace(run, seconds=run.seconds + asyncio.get_running_loop().time() - began)

        try:
            yield
        except (StoreTrouble, PromptOutdated, NotAnswered):
            raise
        except asyncio.CancelledError:
            if self._is_stopping:
                why = STOPPED if self._parts.speakers.has(run.agent) else AGENT_REMOVED
                await completion.complete_silently(worked_run(), why=why)
            elif not is_cancelled():  # raised by a model or a platform
                await completion.complete_with_error(worked_run(), target, TertuliaError(CANCELLED))
                return
            raise
        except TertuliaError as error:
            await completion.complete_with_error(worked_run(), target, error)
        except Exception as error:  # noqa: BLE001 (of a model, a tool or a platform)
            log.error("run %s: %s", run.id, log_text(error))
            await completion.complete_with_error(worked_run(), target, TertuliaError(reason_of(error)))

    async def join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """Take new messages that are to be answered into a run: the model sees them in its next step."""
        parts = self._parts
        waiting = await self._store.inbox.waiting(self.place)
        found = await parts.admission.joining(waiting, self._shared.now(), since=run.horizon, agent=run.agent)
        if not found:
            return run, ()
        joined = {message.id: replace(decision, reason="joined") for message, decision in found}
        run = replace(run, taken=(*run.taken, *joined), decisions={**run.decisions, **joined})
        speaker = parts.speakers.named(run.agent)
        return run, await speaker.prompts.render_turns([message for message, _ in found], speaker.models)


class PlaceWorkers:
    """A worker for each place where messages wait. Memory learns from a place once its worker has ended."""

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts
        self._aliases = parts.shared.aliases
        self._workers: dict[PlaceKey, PlaceWorker] = {}
        self._broken: set[PlaceKey] = set()  # where `StoreBroken` ended the worker, and runs may be open
        self.tasks = BackgroundTasks()

    def wake(self, place: Place, *, runs: Sequence[Run] = ()) -> None:
        """Start or wake the worker of a place, which resumes *runs* first."""
        key = (place := self._aliases.current(place)).key
        if key not in self._workers:
            worker = self._workers[key] = PlaceWorker(place, self._parts, runs=None if key in self._broken else runs)
            self._broken.discard(key)
            self.tasks.start(self._work(worker))
        self._workers[key].wake()

    def move(self, old: Place, new: Place) -> None:
        """Let the worker of *old* continue in *new*, so that there is one run at a time."""
        self._aliases.move(old, new)
        worker = self._workers.get(old.key)
        if worker is not None and new.key not in self._workers:
            self._workers[new.key] = worker
            worker.move(new)

    async def listen(self) -> None:
        """Wake the worker of each place in which an agent has said something that others may answer, for ever."""
        heard = self._parts.sender.heard
        while True:
            self.wake(await heard.get())
            heard.task_done()

    def wake_if_active(self, place: Place) -> None:
        """Wake the worker of a place, if there is one: a message was edited or deleted."""
        if worker := self._workers.get(self._aliases.current(place).key):
            worker.wake()

    def stop(self, place: Place) -> None:
        """Stop the run of a place, also one that began before the place migrated. It ends without an answer."""
        place = self._aliases.current(place)
        for one in (place, *self._aliases.former_places(place)):
            self._parts.shared.store.stop_requests.request(one)

    def stop_agent(self, name: str) -> None:
        """Stop the runs of an agent that was removed. They end without an answer."""
        for worker in self._workers.values():
            if worker.answering == name:
                worker.stop()

    def answered(self, place: Place) -> Message | None:
        """Return the message of a place that is being answered, also while its media are fetched and described."""
        worker = self._workers.get(self._aliases.current(place).key)
        return worker.answered if worker else None

    async def _work(self, worker: PlaceWorker) -> None:
        store = self._parts.shared.store
        try:
            async with store.ownership.hold(worker.place):
                with store.stop_requests.listen(worker.place, worker.stop):
                    await worker.run()
                self._remove(worker)  # before the place is released, so that a new message starts another worker
        except StoreBroken:
            self._broken.update(worker.keys)
            raise
        finally:
            self._remove(worker)
        if self._parts.memory:
            self._parts.memory.wake(worker.place)

    def _remove(self, worker: PlaceWorker) -> None:
        for key in worker.keys:
            if self._workers.get(key) is worker:
                del self._workers[key]

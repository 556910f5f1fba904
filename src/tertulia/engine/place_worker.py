"""Place workers: answer the messages that wait in each place, one run at a time.

A run is stored with its first prompt before the model is called, and every step after it. So a worker finds each run
that a crash, a full disk or a stop left open, and resumes it from its journal: model calls and tools whose results are
stored are not repeated. A run is resumed at most `Behavior.max_resumes` times, then it ends with an error notice. If a
message of a batch is edited or deleted before its run is stored, the prompt is built again. If that happens later, the
run is withdrawn, and its messages wait for a new one.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tertulia.backoff import backoff
from tertulia.context.budget import group_reports
from tertulia.decisions import Decision
from tertulia.engine.admission import Admission
from tertulia.engine.background import FIRST_RETRY, LONGEST_RETRY, BackgroundTasks, Sleep, Slot, is_cancelled, log_text
from tertulia.engine.batches import Batch
from tertulia.engine.behavior import Behavior
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.debounce import Debounce
from tertulia.engine.event_stream import EventStream
from tertulia.engine.memory import Memory
from tertulia.engine.places import PlaceAliases
from tertulia.engine.prompt_builder import PromptBuilder
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.run_completion import Answer, RunCompletion
from tertulia.engine.run_executor import RunExecutor, new_run
from tertulia.engine.spend_caps import SpendTracker
from tertulia.engine.store_protocols import PromptOutdated, StoreProtocol
from tertulia.errors import StoreBroken, StoreTrouble, TertuliaError, reason_of
from tertulia.events import Recalled
from tertulia.memory.values import Fact
from tertulia.messages import Message, Place, PlaceKey
from tertulia.models.base import Model
from tertulia.run.dynamic_layer import DynamicLayer
from tertulia.run.journal import Journal, Run
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Settings, Turn

log = logging.getLogger(__name__)

MAX_REBUILDS = 3  # of a prompt while messages are edited; then only what is deleted or forgotten outdates it
STOPPED, SPENT = "stopped by a request", "a spend cap is reached"
CANCELLED = "cancelled by the callee, not by shutdown"
RATE_LIMITED = "the rate limit of the author is reached"
GAVE_UP = "gave up after {times} resumes"


class RunSetup(Protocol):
    """What new runs use: an `Engine`, whose attributes may be set between runs."""

    models: tuple[Model, ...]
    toolbox: Toolbox
    settings: Settings
    memory: Memory | None


class WorkerParts(Struct, frozen=True, kw_only=True):
    """Parts that the workers of all places share."""

    store: StoreProtocol
    setup: RunSetup
    behavior: Behavior
    admission: Admission
    rate_limiter: RateLimiter
    confirmations: Confirmations
    spend_tracker: SpendTracker
    prompt_builder: PromptBuilder
    executor: RunExecutor
    completion: RunCompletion
    events: EventStream
    slots: asyncio.Semaphore  # for `Behavior.max_runs` runs
    resumed: set[str]  # ids of the runs that this process has resumed
    now: Callable[[], datetime]
    sleep: Sleep


class PlaceWorker:
    """Answers the messages that wait in one place, one run at a time."""

    def __init__(self, place: Place, parts: WorkerParts, *, runs: Sequence[Run] | None = ()) -> None:
        self.place = place
        self.keys = [place.key]  # of the place and of its former ids, the newest last
        self.answered: Message | None = None  # the target of the batch in work, also before its run is stored
        self._parts = parts
        self._debounce = Debounce(
            place,
            parts.admission,
            parts.store.inbox,
            parts.behavior,
            now=parts.now,
            sleep=parts.sleep,
        )
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
                    self._open_runs = list(await self.read_open_runs())
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
                await self._parts.sleep(pause)

    async def _run_once(self) -> bool:
        """Resume a run, or answer a batch; return whether more may wait."""
        if self._open_runs:
            await self._run_stoppable(self.resume(self._open_runs.pop(0)))
            return True
        self._is_stopping = False
        batch = await self._debounce.next_batch(rate_limited=self.send_limit_notice, on_waiting=self.cancel_old_plans)
        if batch is None:
            return False
        self.answered = batch.target
        await self._run_stoppable(self.answer(batch))
        return self._open_runs is None or len(batch.snapshot.waiting) > len(batch.messages)

    async def _run_stoppable(self, work: Awaitable[None]) -> None:
        """Run *work*, which `stop` may cancel."""
        self._current_run = asyncio.ensure_future(work)
        try:
            await self._current_run
        except asyncio.CancelledError:
            if not self._is_stopping or is_cancelled():
                raise
            self._open_runs = None  # its end may not have been stored
        finally:
            self._current_run = self.answered = None

    async def answer(self, batch: Batch) -> None:
        """Answer a batch of messages with one run."""
        if facts := await self._parts.confirmations.find_facts(batch.messages[0]):
            await self._forget(facts, batch)
            return
        if not await self._admit(batch):
            return
        run = self._new_run(batch.messages, batch.target, batch.decided("answered"))
        is_waiting = self._parts.slots.locked()

        async def execute(slot: Slot) -> Answer | None:
            current = await self._debounce.refresh(batch) if is_waiting else batch
            if begun := await self._begin(run, current, slot):
                return await self._execute(*begun, slot)
            await self._parts.rate_limiter.uncount_answer(batch.target)  # every message was deleted meanwhile
            return None

        await self._run_in_slot(run, batch.target, execute)

    async def resume(self, run: Run) -> None:
        """Resume a run that has begun and not ended; mostly of an earlier process."""
        parts, completion = self._parts, self._parts.completion
        journal = await parts.store.runs.journal(run.id)
        if journal is None:  # withdrawn, or removed with its place
            return
        target = await parts.store.log.get(run.place, run.target)
        if target is None or (target.deleted and not target.author.id):  # its author was forgotten
            await completion.complete_silently(run, why="its message was removed")
            return
        if self._is_stopping:
            await completion.complete_silently(run, why=STOPPED)
            return
        if run.id not in parts.resumed:  # count one resume for each process, however often the store fails
            if run.resumed >= parts.behavior.max_resumes:
                await completion.complete_with_error(run, target, TertuliaError(GAVE_UP.format(times=run.resumed)))
                return
            run = replace(run, resumed=run.resumed + 1)
            await parts.store.runs.resume(run)
            parts.resumed.add(run.id)
            log.info("run resumed", extra={"place": run.place, "run_id": run.id})
        await parts.rate_limiter.count_answer(target)
        dynamic = parts.prompt_builder.resumed_layer(
            run, target, parts.setup.models, parts.store.place_settings.beginning
        )
        begun = replace(journal, run=run)
        await self._run_in_slot(run, target, lambda slot: self._execute(begun, target, dynamic, slot))

    async def _run_in_slot(
        self, run: Run, target: Message, execute: Callable[[Slot], Awaitable[Answer | None]]
    ) -> None:
        """Execute a run in a slot, then store its answer; give it back to the rate limit where that fails."""
        answer = None
        try:
            async with self._ending_failed_run(run, target), Slot(self._parts.slots) as slot:
                answer = await execute(slot)
            if answer:
                await self._parts.completion.complete(*answer)
        except (StoreTrouble, PromptOutdated) as error:
            await self._parts.rate_limiter.uncount_answer(target)
            if isinstance(error, StoreTrouble):
                raise  # the run is retried
            log.info("run %s withdrawn: %s", run.id, error)
            self.wake()  # its messages wait again
            await self._parts.completion.close_drafts()

    async def _begin(
        self, run: Run, batch: Batch | None, slot: Slot
    ) -> tuple[Journal, Message, DynamicLayer | None] | None:
        """Gather the context of a batch, build the prompt and store the run; return its journal, target and state.

        Read the batch again where a message was edited or deleted since. None where no message of it is left. A place
        is answered also while its messages are edited on and on: then like an edit that comes after the run began.
        """
        parts, setup = self._parts, self._parts.setup
        rebuilds = 0
        while batch is not None:
            gathered = await parts.prompt_builder.gather_context(batch, setup.models, while_waiting=slot.release)
            context = await gathered.latest(gathered.context.now)
            prompt = parts.prompt_builder.build(context, setup.toolbox.specs, setup.settings)
            prompt = parts.executor.expired_files.without(prompt)
            if setup.memory:
                setup.memory.add_recalled(context)
                if texts := context.recollections:
                    parts.events.publish(Recalled(place=self.place, message_id=batch.target.id, texts=texts))
            begun = replace(run, target=batch.target.id, taken=batch.all_ids, horizon=batch.snapshot.count)
            begun = replace(begun, decisions=batch.decided("answered"))
            try:
                await parts.store.runs.begin(
                    begun,
                    prompt,
                    at=parts.now(),
                    cancels=parts.behavior.policy,
                    changes=batch.snapshot.changes,
                    edits_matter=rebuilds < MAX_REBUILDS,
                    left_out=group_reports(context.left_out),
                    recalled=context.recalled,
                )
            except PromptOutdated:
                batch, rebuilds = await self._debounce.refresh(batch), rebuilds + 1
                continue
            return Journal(run=begun, prompt=prompt), batch.target, parts.prompt_builder.dynamic_layer(gathered)
        return None

    async def _execute(self, journal: Journal, target: Message, dynamic: DynamicLayer | None, slot: Slot) -> Answer:
        """Execute a run from the end of its journal."""
        setup = self._parts.setup
        join = self.join if self._parts.behavior.during_run == "next_step" else None
        return await self._parts.executor.execute(
            journal, target, models=setup.models, toolbox=setup.toolbox, slot=slot, join=join, dynamic=dynamic
        )

    @asynccontextmanager
    async def _ending_failed_run(self, run: Run, target: Message) -> AsyncIterator[None]:
        """End a run that fails with an error notice, and one that is stopped without any."""
        completion, began = self._parts.completion, asyncio.get_running_loop().time()

        def worked_run() -> Run:
            return replace(run, seconds=run.seconds + asyncio.get_running_loop().time() - began)

        try:
            yield
        except (StoreTrouble, PromptOutdated):
            raise
        except asyncio.CancelledError:
            if self._is_stopping:
                await completion.complete_silently(worked_run(), why=STOPPED)
            elif not is_cancelled():  # raised by a model or a platform
                await completion.complete_with_error(worked_run(), target, TertuliaError(CANCELLED))
                return
            raise
        except TertuliaError as error:
            await completion.complete_with_error(worked_run(), target, error)
        except Exception as error:  # noqa: BLE001 (of a model, a tool or a platform)
            log.error("run %s: %s", run.id, log_text(error))
            await completion.complete_with_error(worked_run(), target, TertuliaError(reason_of(error)))

    async def _forget(self, facts: Sequence[Fact], batch: Batch) -> None:
        """Forget the facts that the first message of a batch confirms, and answer the other messages."""
        first = batch.messages[0]
        confirmation = self._new_run([first], first, batch.decided("answered"))
        await self._parts.completion.complete_with_forgetting(confirmation, first, facts)
        if others := batch.subset(batch.messages[1:]):  # in a group they may not be addressed to us by themselves
            await self._parts.store.facts.forget([fact.id for fact in facts], at=self._parts.now())  # before they are
            await self.answer(others)

    async def _admit(self, batch: Batch) -> bool:
        """Return whether a batch may be answered: neither the rate limit nor a spend cap is reached."""
        parts, target = self._parts, batch.target
        if not await parts.rate_limiter.count_answer(target):  # used up in other places meanwhile
            decisions = batch.decided("rate limit")
            await self.send_limit_notice(target, decisions[target.id])
            await parts.store.inbox.skip(self.place, decisions, at=parts.now())
            return False
        if not await parts.spend_tracker.is_reached(self.place, target.author):
            return True
        await parts.rate_limiter.uncount_answer(target)
        if await parts.spend_tracker.has_notice(target):  # today
            await parts.store.inbox.skip(self.place, batch.decided("spend cap"), at=parts.now())
        else:
            run = self._new_run(batch.messages, target, batch.decided("spend cap"))
            await parts.completion.complete_with_notice(run, target, lambda lines: lines.spent, why=SPENT)
            await parts.spend_tracker.add_notice(target)
        return False

    async def send_limit_notice(self, message: Message, decision: Decision) -> None:
        """Send an author the notice that the rate limit is reached, once until they are answered again."""
        log.info("message %s is over the rate limit", message.id, extra={"place": message.place})
        if not await self._parts.rate_limiter.claim_notice(message):
            return
        completion, run = self._parts.completion, self._new_run([message], message, {message.id: decision})
        try:  # in one transaction, so that a crash does not lead to an answer as well
            await completion.complete_with_notice(run, message, lambda lines: lines.too_many, why=RATE_LIMITED)
        except StoreTrouble:
            await self._parts.rate_limiter.release_notice(message)
            raise

    async def join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """Take new messages that are to be answered into a run: the model sees them in its next step."""
        parts = self._parts
        waiting = await parts.store.inbox.waiting(self.place)
        for_us = await parts.admission.complete_bursts(waiting, parts.now(), since=run.horizon)
        found = [one for one in for_us if not await parts.confirmations.find_facts(one[0])]
        if not found:
            return run, ()
        joined = {message.id: replace(decision, reason="joined") for message, decision in found}
        run = replace(run, taken=(*run.taken, *joined), decisions={**run.decisions, **joined})
        return run, await parts.prompt_builder.render_turns([message for message, _ in found], parts.setup.models)

    async def cancel_old_plans(self) -> None:
        """Cancel tasks of older plans: a new message is to be answered."""
        await self._parts.store.tasks.cancel_superseded(self.place, self._parts.behavior.policy)

    async def read_open_runs(self) -> Sequence[Run]:
        """Return the runs of the place that have begun and not ended."""
        return [run for run in await self._parts.store.runs.open() if run.place.key in self.keys]

    def _new_run(self, messages: Sequence[Message], target: Message, decisions: Mapping[str, Decision]) -> Run:
        model, profile = self._parts.setup.models[0].name, self._parts.prompt_builder.profile.name
        run = new_run(messages, target, at=self._parts.now(), model=model, profile=profile)
        return replace(run, decisions=decisions)


class PlaceWorkers:
    """A worker for each place where messages wait. *on_idle* is called with each worker once it has ended."""

    def __init__(
        self, parts: WorkerParts, *, aliases: PlaceAliases, on_idle: Callable[[PlaceWorker], Awaitable[None]]
    ) -> None:
        self._parts = parts
        self._aliases = aliases
        self._on_idle = on_idle
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

    def wake_if_active(self, place: Place) -> None:
        """Wake the worker of a place, if there is one: a message was edited or deleted."""
        if worker := self._workers.get(self._aliases.current(place).key):
            worker.wake()

    def answered(self, place: Place) -> Message | None:
        """Return the message of a place that is being answered, also while its media are fetched and described."""
        worker = self._workers.get(self._aliases.current(place).key)
        return worker.answered if worker else None

    async def _work(self, worker: PlaceWorker) -> None:
        store = self._parts.store
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
        await self._on_idle(worker)

    def _remove(self, worker: PlaceWorker) -> None:
        for key in worker.keys:
            if self._workers.get(key) is worker:
                del self._workers[key]

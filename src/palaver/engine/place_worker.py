"""Place workers: what waits in a place becomes batches, each batch a run, and each run comes to its end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from palaver.backoff import backoff
from palaver.engine.admission import Admission
from palaver.engine.background import FIRST_RETRY, LONGEST_RETRY, BackgroundTasks, Sleep, Slot, error_text, is_cancelled
from palaver.engine.batches import Batch
from palaver.engine.behavior import TOO_MANY, Behavior
from palaver.engine.confirmation import Confirmations
from palaver.engine.debounce import Debounce
from palaver.engine.event_stream import EventStream
from palaver.engine.memory import Memory
from palaver.engine.place_aliases import PlaceAliases
from palaver.engine.prompt_builder import PromptBuilder
from palaver.engine.rate_limit import RateLimiter
from palaver.engine.run_completion import Answer, RunCompletion
from palaver.engine.run_executor import RunExecutor, new_run
from palaver.engine.spend_caps import SPENT, SpendTracker
from palaver.engine.store_protocols import PromptOutdated, StoreProtocol
from palaver.errors import PalaverError, StoreBroken, StoreTrouble
from palaver.events import Recalled
from palaver.memory.facts import Fact
from palaver.messages import Message, Place, PlaceKey
from palaver.models.base import Model
from palaver.redaction import redact_keys
from palaver.run.journal import Journal, Run
from palaver.toolbox.toolbox import Toolbox
from palaver.turns import Settings, Turn

log = logging.getLogger(__name__)

STOPPED = "somebody stopped it"
GIVEN_UP = "it was taken up again {times} times and never came to an end"


class RunSetup(Protocol):
    """What runs are made with at the moment: an `Engine`, whose fields may be set between runs."""

    models: tuple[Model, ...]  # the first is asked; each other where the one before it does not answer
    toolbox: Toolbox
    settings: Settings
    memory: Memory | None


class WorkerParts(Struct, frozen=True, kw_only=True):
    """What the workers of all places share."""

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
    slots: asyncio.Semaphore  # of the runs that work at once
    resumed: set[str]  # runs that this process has resumed
    now: Callable[[], datetime]
    sleep: Sleep


class PlaceWorker:
    """Answers what waits in one place, one run at a time."""

    def __init__(self, place: Place, parts: WorkerParts, *, runs: Sequence[Run] | None = ()) -> None:
        self.place = place
        self.keys = [place.key]  # those that the place had since the worker began, the newest last
        self._parts = parts
        self._debounce = Debounce(
            place,
            parts.admission,
            parts.rate_limiter,
            parts.store.inbox,
            parts.behavior,
            rate_limited=self.tell_limit,
            waiting=self.call_off,
            now=parts.now,
            sleep=parts.sleep,
        )
        self._unfinished = None if runs is None else list(runs)  # runs to be resumed; None: they must be read
        self._is_stopping = False  # somebody wants the run that is under way to end without an answer
        self._under_way: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Look again: something came in, or was edited or deleted."""
        self._debounce.changed.set()

    def move(self, place: Place) -> None:
        """Go on in the place that this one has become."""
        self.place = place
        self.keys.append(place.key)
        self._debounce.move(place)

    def stop(self) -> None:
        """End the run that is under way, or was when the store failed."""
        self._is_stopping = self._under_way is not None or self._unfinished is None
        if self._under_way is not None:
            self._under_way.cancel()

    async def work(self) -> None:
        """Answer until nothing waits. Raise `StoreBroken`; retry with backoff where the store has other trouble."""
        failures = 0
        while True:
            self._debounce.changed.clear()
            try:
                if self._unfinished is None:
                    self._unfinished = list(await self.unfinished())
                if not await self._work_once() and not self._debounce.changed.is_set():
                    return
                failures = 0
            except StoreBroken:
                raise
            except StoreTrouble as trouble:
                self._unfinished = None
                failures += 1
                pause = backoff(failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
                log.error("%s; tried again in %g s", trouble, pause)
                await self._parts.sleep(pause)

    async def _work_once(self) -> bool:
        """Resume a run, or answer a batch; whether more may wait, also if nothing has come in since."""
        if self._unfinished:
            await self._do(self.resume(self._unfinished.pop(0)))
            return True
        self._is_stopping = False
        batch = await self._debounce.next_batch()
        if batch is None:
            return False
        await self._do(self.answer(batch))
        return self._unfinished is None or len(batch.snapshot.waiting) > len(batch.messages)

    async def _do(self, work: Awaitable[None]) -> None:
        """One run, which somebody may stop."""
        self._under_way = asyncio.ensure_future(work)
        try:
            await self._under_way
        except asyncio.CancelledError:
            if not self._is_stopping or is_cancelled():
                raise
            self._unfinished = None  # its end may not have been stored
        finally:
            self._under_way = None

    async def answer(self, batch: Batch) -> None:
        """Answer a batch of messages with one run."""
        if facts := await self._parts.confirmations.of(batch.messages[0]):
            await self._forget(facts, batch)
            return
        if not await self._admit(batch):
            return
        run, answer = self._new_run(batch.messages, batch.target), None
        async with self._giving_back(run, batch.target):
            is_waiting = self._parts.slots.locked()
            async with self._excusing(run, batch.target), Slot(self._parts.slots) as slot:
                current = await self._debounce.refreshed(batch) if is_waiting else batch
                if begun := await self._begin(run, current, slot):
                    answer = await self._answered(*begun, slot)
                else:  # all of it was deleted meanwhile
                    await self._parts.rate_limiter.give_back(batch.target)
            if answer:
                await self._parts.completion.with_words(*answer)

    async def resume(self, run: Run) -> None:
        """Resume a run that was begun and not ended, mostly by an earlier process."""
        parts, completion = self._parts, self._parts.completion
        journal = await parts.store.runs.journal(run.id)
        if journal is None:  # withdrawn, or forgotten with its place
            return
        target = await parts.store.log.get(run.place, run.target)
        if target is None or (target.deleted and not target.author.id):  # forgotten meanwhile
            await completion.with_nothing(run, why="its message is gone")
            return
        if self._is_stopping:
            await completion.with_nothing(run, why=STOPPED)
            return
        if run.id not in parts.resumed:  # a full disk may have it resumed more than once in one life
            if run.resumed >= parts.behavior.resumes:
                await completion.with_excuse(run, target, PalaverError(GIVEN_UP.format(times=run.resumed)))
                return
            run = replace(run, resumed=run.resumed + 1)
            await parts.store.runs.resume(run)
            parts.resumed.add(run.id)
        await parts.rate_limiter.take(target)
        answer = None
        async with self._giving_back(run, target):
            async with self._excusing(run, target), Slot(parts.slots) as slot:
                answer = await self._answered(replace(journal, run=run), target, slot)
            if answer:
                await completion.with_words(*answer)

    async def _begin(self, run: Run, batch: Batch | None, slot: Slot) -> tuple[Journal, Message] | None:
        """Gather the context of a batch, build the prompt and persist the run; which message it answers.

        What was edited or deleted since the batch was read makes it outdated: it is read again. None where nothing of
        it is left.
        """
        parts, setup = self._parts, self._parts.setup
        while batch is not None:
            await parts.prompt_builder.describe_media(batch, waiting=slot.given_back)
            context = await parts.prompt_builder.context(batch, model=setup.models[0].name)
            prompt = parts.prompt_builder.prompt(context, setup.toolbox.specs, setup.settings)
            prompt = parts.executor.expired_files.without(prompt)
            if setup.memory:
                setup.memory.add_recalled(context)
                if texts := context.recollections:
                    parts.events.publish(Recalled(place=self.place, message_id=batch.target.id, texts=texts))
            begun = replace(run, target=batch.target.id, taken=batch.all_ids, horizon=batch.snapshot.count)
            try:
                await parts.store.runs.begin(
                    begun,
                    prompt,
                    at=parts.now(),
                    calls_off=parts.behavior.policy,
                    changes=batch.snapshot.changes,
                    left_out=context.left_out,
                )
            except PromptOutdated:
                batch = await self._debounce.refreshed(batch)
                continue
            return Journal(run=begun, prompt=prompt), batch.target
        return None

    async def _answered(self, journal: Journal, target: Message, slot: Slot) -> Answer:
        """Run the loop from where the journal ends."""
        setup = self._parts.setup
        join = self.join if self._parts.behavior.during == "next step" else None
        return await self._parts.executor.answer(
            journal, target, models=setup.models, toolbox=setup.toolbox, slot=slot, join=join
        )

    @asynccontextmanager
    async def _giving_back(self, run: Run, target: Message) -> AsyncIterator[None]:
        """Count an answer only if it could be stored: give it back to the rate limit where the run is tried again."""
        try:
            yield
        except StoreTrouble:
            await self._parts.rate_limiter.give_back(target)
            raise
        except PromptOutdated as error:
            await self._parts.rate_limiter.give_back(target)
            log.info("run %s is withdrawn: %s", run.id, error)
            self.wake()  # its messages wait again
            await self._parts.completion.end_drafts()

    @asynccontextmanager
    async def _excusing(self, run: Run, target: Message) -> AsyncIterator[None]:
        """End a run that fails with an honest line, one that is stopped without any."""
        completion = self._parts.completion
        try:
            yield
        except (StoreTrouble, PromptOutdated):
            raise
        except asyncio.CancelledError:
            if self._is_stopping:
                await completion.with_nothing(run, why=STOPPED)
            elif not is_cancelled():  # a model's or a platform's own, and not meant for us
                await completion.with_excuse(run, target, PalaverError("it was cancelled from within"))
                return
            raise
        except PalaverError as error:
            log.warning("run %s: %s", run.id, error)
            await completion.with_excuse(run, target, error)
        except Exception as error:  # noqa: BLE001 (a model's, a tool's or a platform's)
            log.error("run %s: %s", run.id, error_text(error))
            why = redact_keys(f"{type(error).__name__}: {error}")
            await completion.with_excuse(run, target, PalaverError(why))

    async def _forget(self, facts: Sequence[Fact], batch: Batch) -> None:
        """Forget what the first message of a batch confirms, and answer the others."""
        first = batch.messages[0]
        await self._parts.completion.with_forgetting(self._new_run([first], first), first, facts)
        if others := batch.only(batch.messages[1:]):  # in a group nothing else says that they are for us
            ids = [fact.id for fact in facts]
            await self._parts.store.facts.forget(ids, at=self._parts.now())  # not only by its task
            await self.answer(others)

    async def _admit(self, batch: Batch) -> bool:
        """Whether a batch may be answered: no rate limit and no cap on spending is reached."""
        parts, target = self._parts, batch.target
        if not await parts.rate_limiter.take(target):  # other places were quicker
            await self.tell_limit(target)
            await parts.store.inbox.pass_over(self.place, batch.ids)
            return False
        if not await parts.spend_tracker.is_reached(self.place, target.author):
            return True
        await parts.rate_limiter.give_back(target)
        if await parts.spend_tracker.has_notice(target):  # today
            await parts.store.inbox.pass_over(self.place, batch.ids)
        else:
            run = self._new_run(batch.messages, target)
            await parts.completion.with_notice(run, target, SPENT, why="a cap on what may be spent is reached")
            await parts.spend_tracker.add_notice(target)
        return False

    async def tell_limit(self, message: Message) -> None:
        """Tell an author that the rate limit is reached: once, until it is not."""
        rate_limiter = self._parts.rate_limiter
        if not await rate_limiter.warn(message):
            return
        run = self._new_run([message], message)
        try:  # in one go with the line, so that it is not answered as well after a crash
            await self._parts.completion.with_notice(run, message, TOO_MANY, why="too many messages of one author")
        except StoreTrouble:
            await rate_limiter.unwarn(message)
            raise

    async def join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """Take what came in meanwhile and is for us into a run: its next step sees it already."""
        parts = self._parts
        waiting = await parts.store.inbox.waiting(self.place)
        for_us = await parts.admission.complete_bursts(waiting, parts.now(), since=run.horizon)
        found = [message for message in for_us if not await parts.confirmations.of(message)]
        if not found:
            return run, ()
        taken = run.taken + tuple(message.id for message in found)
        return replace(run, taken=taken), await parts.prompt_builder.turns_of(found)

    async def call_off(self) -> None:
        """Call off what an older plan has not begun: a message is to be answered."""
        await self._parts.store.tasks.call_off(self.place, self._parts.behavior.policy)

    async def unfinished(self) -> Sequence[Run]:
        """The runs of the place that were begun and not ended."""
        return [run for run in await self._parts.store.runs.open() if run.place.key in self.keys]

    def _new_run(self, messages: Sequence[Message], target: Message) -> Run:
        model, profile = self._parts.setup.models[0].name, self._parts.prompt_builder.profile.name
        return new_run(messages, target, at=self._parts.now(), model=model, profile=profile)


class PlaceWorkers:
    """A worker for each place where something waits. *left* is called with a place where nothing waits any more."""

    def __init__(self, parts: WorkerParts, *, moved: PlaceAliases, left: Callable[[Place], Awaitable[None]]) -> None:
        self._parts = parts
        self._moved = moved
        self._left = left
        self._workers: dict[PlaceKey, PlaceWorker] = {}
        self._broken: set[PlaceKey] = set()  # where a damaged store ended the work, and runs may be open
        self.tasks = BackgroundTasks()

    def wake(self, place: Place, *, runs: Sequence[Run] = ()) -> None:
        """Look what waits in a place, and resume *runs* first."""
        place = self._moved.current(place)
        key = place.key
        if key not in self._workers:
            worker = self._workers[key] = PlaceWorker(place, self._parts, runs=None if key in self._broken else runs)
            self._broken.discard(key)
            self.tasks.begin(self._work(worker))
        self._workers[key].wake()

    def move(self, old: Place, new: Place) -> None:
        """Let whoever works in *old* go on in *new*: there is still one run at a time."""
        self._moved.move(old, new)
        worker = self._workers.get(old.key)
        if worker is not None and new.key not in self._workers:
            self._workers[new.key] = worker
            worker.move(new)

    def changed(self, place: Place) -> None:
        """Look again where somebody works: a message was edited or deleted."""
        if worker := self._workers.get(self._moved.current(place).key):
            worker.wake()

    async def _work(self, worker: PlaceWorker) -> None:
        store = self._parts.store
        try:
            async with store.ownership.hold(worker.place):
                with store.stop_requests.listen(worker.place, worker.stop):
                    await worker.work()
                self._remove(worker)  # before the place is released: a message that comes now gets another worker
        except StoreBroken:
            self._broken.update(worker.keys)
            raise
        finally:
            self._remove(worker)
        await self._left(worker.place)

    def _remove(self, worker: PlaceWorker) -> None:
        for key in worker.keys:
            if self._workers.get(key) is worker:
                del self._workers[key]

"""The runs of all places: a batch of messages becomes a run; a run ends, or is resumed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec.structs import replace

from palaver.agent.toolbox import Toolbox
from palaver.context.reading import find_message
from palaver.conversation.answerer import Answerer, new_run
from palaver.conversation.bursts import Batch
from palaver.conversation.conduct import TOO_MANY, Conduct
from palaver.conversation.confirmation import Confirmations
from palaver.conversation.crew import is_cancelled
from palaver.conversation.desk import Desk
from palaver.conversation.ending import Ending, Endings, stop_line
from palaver.conversation.event_stream import EventStream
from palaver.conversation.journal import Kept, Outdated, Outgoing
from palaver.conversation.judging import Judge
from palaver.conversation.memory import Memory
from palaver.conversation.prompting import Prompter
from palaver.conversation.slots import Slot
from palaver.conversation.spending import SPENT, Spending
from palaver.errors import PalaverError, StoreTrouble
from palaver.events import Recalled
from palaver.messages import Message, Place
from palaver.models.base import Model
from palaver.platform import Platform
from palaver.run.journal import Journal, Run
from palaver.turns import Settings, Turn

log = logging.getLogger(__name__)

STOPPED = "somebody stopped it"
GIVEN_UP = "it was taken up again {times} times and never came to an end"

Answering = Awaitable[tuple[Run, Ending, Message] | None]  # what a run comes to, and which message it answers


class RunSetup(Protocol):
    """What runs are made with at the moment: an `Engine`, whose fields may be set between runs."""

    models: tuple[Model, ...]  # the first is asked; each other where the one before it does not answer
    toolbox: Toolbox
    settings: Settings
    memory: Memory | None


class PlaceRuns:
    """Answers batches of messages, one run each. Every `Desk` hands its batches to it."""

    def __init__(
        self,
        store: Kept,
        setup: RunSetup,
        conduct: Conduct,
        *,
        platforms: Mapping[str, Platform],
        judge: Judge,
        confirmations: Confirmations,
        spending: Spending,
        prompter: Prompter,
        answerer: Answerer,
        endings: Endings,
        events: EventStream,
        desk_of: Callable[[Place], Desk | None],
        sent: Callable[[Iterable[Outgoing]], None],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._setup = setup
        self._conduct = conduct
        self._platforms = platforms
        self._judge = judge
        self._confirmations = confirmations
        self._spending = spending
        self._prompter = prompter
        self._answerer = answerer
        self._endings = endings
        self._events = events
        self._desk_of = desk_of  # the desk of a place, while it is attended
        self._sent = sent
        self._now = now
        self._free = asyncio.Semaphore(conduct.at_once)
        self._resumed_here: set[str] = set()  # runs, by this process

    async def answer(self, batch: Batch) -> None:
        """Answer messages of one author that belong together."""
        first, target = batch.messages[0], batch.target
        if facts := await self._confirmations.of(first):
            await self._endings.with_forgetting(self._new_run([first], first), first, facts)
            if others := batch.only(batch.messages[1:]):  # in a group nothing else says that they are for us
                await self._store.facts.forget([fact.id for fact in facts], at=self._now())  # not only by its task
                await self.answer(others)
            return
        if not await self._judge.admits(target):  # other places were quicker
            await self.too_many(target)
            await self._store.inbox.pass_over(target.place, batch.ids)
            return
        if await self._spending.is_reached(target):
            await self._spent(batch)
            return
        run = self._new_run(batch.messages, target)
        await self._conclude(run, target, self._run(run, batch))

    async def resume(self, run: Run) -> None:
        """Take up a run that was begun and not ended, mostly by an earlier process."""
        journal = await self._store.runs.journal(run.id)
        if journal is None:  # withdrawn, or forgotten with its place
            return
        target = await find_message(self._store.log, run.place, run.target)
        if target is None or (target.deleted and not target.author.id):  # forgotten meanwhile
            await self._endings.with_nothing(run, why="its message is gone")
            return
        if self._is_stopped(run.place):
            await self._endings.with_nothing(run, why=STOPPED)
            return
        if run.id not in self._resumed_here:  # a full disk may have it taken up more than once in one life
            if run.resumed >= self._conduct.resumes:
                await self._endings.with_excuse(run, target, PalaverError(GIVEN_UP.format(times=run.resumed)))
                return
            run = replace(run, resumed=run.resumed + 1)
            await self._store.runs.resume(run)
            self._resumed_here.add(run.id)
        await self._judge.admits(target)
        await self._conclude(run, target, self._resumed(replace(journal, run=run), target))

    async def unfinished(self, place: Place) -> Sequence[Run]:
        return [run for run in await self._store.runs.open() if run.place.key == place.key]

    async def too_many(self, message: Message) -> None:
        """Tell an author that this was more than is answered: once, until it is answered again."""
        if not await self._judge.tells(message):
            return
        run = self._new_run([message], message)
        try:  # in one go with the line, so that it is not answered as well after a crash
            await self._endings.with_notice(run, message, TOO_MANY, why="too many messages of one author")
        except StoreTrouble:
            await self._judge.untell(message)
            raise

    async def call_off(self, place: Place) -> None:
        await self._store.tasks.call_off(place, self._conduct.policy)

    async def end_drafts(self) -> None:
        """Edit the drafts whose runs are gone or have ended without them: no answer comes in their place."""
        if not any(platform.capabilities.drafts for platform in self._platforms.values()):
            return
        for draft in await self._store.outbox.abandoned_drafts():
            if draft.reply.place.platform in self._platforms:
                line = stop_line(draft, self._now())
                await self._store.outbox.put(line)
                self._sent([line])

    async def join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """What came in meanwhile and is for us, to be seen by the next step already; what the prompt shows waits."""
        waiting = await self._store.inbox.waiting(run.place)
        for_us = await self._judge.bursts(waiting, self._now(), since=run.horizon)
        found = [message for message in for_us if not await self._confirmations.of(message)]
        if not found:
            return run, ()
        taken = run.taken + tuple(message.id for message in found)
        return replace(run, taken=taken), await self._prompter.turns_of(found)

    async def _spent(self, batch: Batch) -> None:
        """Leave messages unanswered because a cap is reached; the author is told once a day."""
        target = batch.target
        await self._judge.take_back(target)
        if self._spending.tells(target):
            run = self._new_run(batch.messages, target)
            await self._endings.with_notice(run, target, SPENT, why="a cap on what may be spent is reached")
        else:
            await self._store.inbox.pass_over(target.place, batch.ids)

    def _new_run(self, messages: Sequence[Message], target: Message) -> Run:
        return new_run(
            messages, target, at=self._now(), model=self._setup.models[0].name, profile=self._prompter.profile.name
        )

    async def _run(self, run: Run, batch: Batch) -> tuple[Run, Ending, Message] | None:
        """From the batch to what comes of it; None where everything was deleted before the model was asked."""
        busy = self._free.locked()
        async with Slot(self._free) as slot:
            current = await self._refreshed(batch) if busy else batch
            while current is not None:
                context = await self._prompter.context(current, model=self._setup.models[0].name)
                prompt = self._answerer.gone.without(
                    self._prompter.prompt(context, self._setup.toolbox.specs, self._setup.settings)
                )
                if self._setup.memory:
                    self._setup.memory.told(context)
                    if texts := context.recollections:
                        self._events.publish(
                            Recalled(place=current.target.place, message_id=current.target.id, texts=texts)
                        )
                begun = replace(run, target=current.target.id, taken=current.all_ids, horizon=current.snapshot.count)
                try:
                    await self._store.runs.begin(
                        begun, prompt, at=self._now(), calls_off=self._conduct.policy, changes=current.snapshot.changes
                    )
                except Outdated:
                    current = await self._refreshed(current)
                    continue
                return await self._loop(Journal(run=begun, prompt=prompt), current.target, slot)
        return None

    async def _resumed(self, journal: Journal, target: Message) -> tuple[Run, Ending, Message]:
        async with Slot(self._free) as slot:
            return await self._loop(journal, target, slot)

    async def _loop(self, journal: Journal, target: Message, slot: Slot) -> tuple[Run, Ending, Message]:
        return await self._answerer.answer(
            journal, target, models=self._setup.models, toolbox=self._setup.toolbox, slot=slot
        )

    async def _conclude(self, run: Run, target: Message, answering: Answering) -> None:
        """End a run; what could not be kept is taken up again, and counts then. What is withdrawn waits again."""
        try:
            await self._end(run, target, answering)
        except StoreTrouble:
            await self._judge.take_back(target)
            raise
        except Outdated as error:
            await self._judge.take_back(target)
            log.info("run %s is withdrawn: %s", run.id, error)
            await self.end_drafts()

    async def _end(self, run: Run, target: Message, answering: Answering) -> None:
        """End a run with what comes of it: replies and tasks, or an honest line."""
        try:
            found = await answering
            if found is None:
                await self._judge.take_back(target)
                return
            run, ending, target = found
        except (StoreTrouble, Outdated):
            raise
        except asyncio.CancelledError:
            if self._is_stopped(run.place):
                await self._endings.with_nothing(run, why=STOPPED)
            elif not is_cancelled():  # a model's or a platform's own, and not meant for us
                await self._endings.with_excuse(run, target, PalaverError("it was cancelled from within"))
                return
            raise
        except PalaverError as error:
            log.warning("run %s: %s", run.id, error)
            await self._endings.with_excuse(run, target, error)
        except Exception as error:
            log.exception("run %s", run.id)
            await self._endings.with_excuse(run, target, PalaverError(f"{type(error).__name__}: {error}"))
        else:
            await self._endings.with_words(run, ending, target)

    async def _refreshed(self, batch: Batch) -> Batch | None:
        desk = self._desk_of(batch.target.place)
        return None if desk is None else await desk.refreshed(batch)

    def _is_stopped(self, place: Place) -> bool:
        desk = self._desk_of(place)
        return desk is not None and desk.stopping

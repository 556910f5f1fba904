"""The engine: what people say goes in and is kept; what the model says to it comes out, once, whatever happens."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self, assert_never

from msgspec.structs import replace

from palaver.agent.toolbox import Function, Tool, Toolbox
from palaver.config import Config
from palaver.context.budget import Budget
from palaver.context.memory import Remembered
from palaver.context.reading import find_message
from palaver.context.sources import AnySource
from palaver.context.values import Persona
from palaver.conversation.answer_preview import AnswerPreviews
from palaver.conversation.answerer import Answerer, models_in, new_run
from palaver.conversation.bursts import Batch
from palaver.conversation.commands import Commands, no_memory
from palaver.conversation.conduct import TOO_MANY, Conduct, require_right_to_clear
from palaver.conversation.confirmation import Confirmations
from palaver.conversation.crew import Crew, Sleep, is_cancelled
from palaver.conversation.deliveries import deliveries_of
from palaver.conversation.describing import Describe, Describer
from palaver.conversation.desk import Desk
from palaver.conversation.duties import Duties
from palaver.conversation.ending import Ending, Endings, stop_line
from palaver.conversation.event_stream import EventStream
from palaver.conversation.hearing import Heard
from palaver.conversation.inbox import PlatformInbox
from palaver.conversation.journal import Kept, Outdated, Outgoing
from palaver.conversation.judging import Judge
from palaver.conversation.memory import Memory
from palaver.conversation.platform_runner import run_platforms, stop_signals
from palaver.conversation.prompting import Prompter
from palaver.conversation.selves import Selves
from palaver.conversation.sending import Courier
from palaver.conversation.slots import Slot
from palaver.conversation.spending import SPENT, Spending
from palaver.conversation.working import Work, Worker, block_lines, kinds_with
from palaver.errors import InvalidValue, PalaverError, StoreBroken, StoreTrouble, seconds_to_wait
from palaver.events import Event, Recalled, RunFailed
from palaver.messages import Author, Message, Place, PlaceKey, Reply
from palaver.models.base import Model
from palaver.platform import (
    Change,
    Commanded,
    Deleted,
    Edited,
    Inbox,
    PlaceLeft,
    PlaceMigrated,
    Platform,
    Reacted,
    Received,
    Stopped,
)
from palaver.prompt.profiles import Build, Profile, profile_of
from palaver.run.journal import Journal, Run
from palaver.tasks.values import Task, utc
from palaver.turns import Settings, ToolSpec, Turn

log = logging.getLogger(__name__)

STOPPED = "somebody stopped it"
GIVEN_UP = "it was taken up again {times} times and never came to an end"

Answering = Awaitable[tuple[Run, Ending, Message] | None]  # what a run comes to, and which message it answers


class Engine:
    """`async with Engine(store, model, [platform]) as engine:` and then `await engine.receive(message)`.

    Whatever an earlier process left undone is done first.
    """

    def __init__(
        self,
        store: Kept,
        model: Model | Sequence[Model],
        platforms: Iterable[Platform],
        *,
        persona: Persona | None = None,
        tools: Toolbox | Iterable[Function | Tool | ToolSpec] = (),
        profile: str | Profile | Build | None = None,
        sources: Iterable[AnySource] = (),
        budget: Budget | None = None,
        settings: Settings | None = None,
        config: Config | None = None,
        conduct: Conduct | None = None,
        zone: str = "UTC",
        memory: Memory | None = None,
        works: Mapping[str, Work] | None = None,
        describe: Describe | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        config, conduct = config or Config(), conduct or Conduct()
        self.models = models_in(model)  # the first is asked; each other where the one before it does not answer
        self.toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self.settings = settings or Settings()
        self.memory = memory if config.memory else None  # None: nothing is recalled, and nothing learned
        self._store = store
        self._platforms = {platform.name: platform for platform in platforms}
        self._conduct = conduct
        self._now = now
        self._sleep = sleep
        self._selves = Selves(persona or Persona(), self._platforms)
        self._duties = Duties(
            store.standing, store.facts, store.log, conduct, now=now, administers=self._selves.administers
        )
        self._spending = Spending(store.usage, conduct.caps, now=now)
        self._spending.require_prices(self.models, conduct.prices)
        self._judge = Judge(store.log, self._duties, self._selves, conduct, store.rate_limits)
        registered = works or {}
        self._kinds = kinds_with(registered, may=conduct.model_may)
        self._prompter = Prompter(
            Heard(store.log, store.standing.blocked),
            self.memory.knowledge if self.memory else Remembered(),
            self._duties,
            self._selves,
            Describer(store.descriptions, describe, now=now),
            profile=profile_of(config.profile if profile is None else profile, config),
            config=config,
            zone=zone,
            now=now,
            budget=budget or Budget(),
            extra=tuple(sources),
            task_blocks=block_lines(registered, self._kinds),
        )
        self._moved: dict[PlaceKey, Place] = {}  # places that go on as another one, by their old keys
        self._courier = Courier(
            store.outbox, self._platforms, now=now, doubtful=conduct.doubtful, sleep=sleep, moved=self._moved
        )
        self._worker = Worker(
            store.tasks,
            {**self._duties.works, **registered},
            platforms=self._platforms,
            me=lambda place: self._selves.author_on(place.platform),
            sent=self._courier.take,
            now=now,
            retry=conduct.retry,
            sleep=sleep,
        )
        self._confirmations = Confirmations(store.proposals, self._selves, conduct, now=now)
        self._events = EventStream(store.events)
        self._endings = Endings(
            store.runs,
            store.proposals,
            store.log,
            self._duties,
            self._selves,
            conduct,
            platforms=self._platforms,
            outbox=store.outbox,
            sent=self._courier.take,
            planned=self._worker.wake,
            now=now,
            failed=self._failed,
        )
        self._answerer = Answerer(
            store.runs,
            self._endings,
            kinds=self._kinds,
            now=now,
            tool_ended=self._worker.wake,  # it may have planned something
            conduct=conduct,
            join=self._join if conduct.during == "next step" else None,
            events=self._events,
            delimiter=self._duties.delimiter,
            previews=AnswerPreviews(
                self._platforms,
                store.outbox,
                kinds=self._kinds,
                is_idle=self._courier.is_idle,
                now=now,
                sleep=sleep,
            ),
            sleep=sleep,
        )
        self._commands = Commands(
            store,
            self._duties,
            self._selves,
            platforms=self._platforms,
            zone=zone,
            learned=self.memory.done if self.memory else no_memory,
            stop=self.stop,
            sent=self._courier.take,
            planned=self._worker.wake,
            now=now,
            sleep=sleep,
        )
        self._desks: dict[PlaceKey, Desk] = {}
        self._broken: dict[PlaceKey, Desk] = {}  # ended by a damaged store; attended again with the next message
        self._taken_up: set[str] = set()  # runs, by this process
        self._free = asyncio.Semaphore(conduct.at_once)
        self._crew = Crew()
        self._working: asyncio.Task[None] | None = None

    @property
    def persona(self) -> Persona:
        """Who the agent is; may be set between runs."""
        return self._selves.persona

    @persona.setter
    def persona(self, persona: Persona) -> None:
        self._selves.persona = persona

    async def start(self) -> None:
        """Do what an earlier process left undone, and wait for more."""
        utc(self._now())  # a clock without a zone is refused before anything is kept
        for platform in self._platforms.values():
            await platform.open()
        self._events.start()
        self._selves.require_accounts()
        self._moved.update(await self._store.updates.moved())
        await self._worker.recover()
        await self._courier.recover()
        await self._end_drafts()
        opened: dict[PlaceKey, list[Run]] = {}
        for run in await self._store.runs.open():
            opened.setdefault(run.place.key, []).append(run)
        for place in [*(runs[0].place for runs in opened.values()), *await self._store.inbox.places()]:
            if place.platform in self._platforms:
                self._desk(place, runs=opened.get(place.key, ()))
        self._working = asyncio.create_task(self._worker.run())
        self._commands.wake()
        if self.memory:
            await self.memory.start()

    async def close(self) -> None:
        """Let go of everything; what is under way is taken up by the next who starts."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])
            self._working = None
        await self._commands.close()
        await self._crew.stop()
        await self._worker.close()  # what it says in its last moments is still sent
        await self._courier.close()
        if self.memory:
            await self.memory.close()
        self._events.close()

    def events(
        self, *, place: Place | None = None, run: str | None = None, after: str | None = None
    ) -> AsyncIterator[Event]:
        """Events as they happen, of a place or a run if one is given; with *after*, all since that cursor first."""
        return self._events.read(place=place, run_id=run, after=after)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(self) -> None:
        """Run platforms, workers and memory until SIGTERM or Ctrl-C, or until every platform has ended by itself."""
        async with self, stop_signals() as stopped:
            inboxes = {platform: self.inbox(name) for name, platform in self._platforms.items()}
            await run_platforms(inboxes, until=stopped, sleep=self._sleep)

    def inbox(self, platform: str) -> Inbox:
        """The inbox that a platform applies to what happens on it."""
        return PlatformInbox(
            platform,
            self._store.updates,
            self._selves,
            keep=self._conduct.keep_updates,
            applied=self._applied,
            now=self._now,
        )

    async def say(self, place: Place, text: str) -> str:
        """Say something that no message asked for; the id of its delivery. It is stored when this returns."""
        self._require(place)
        said = Outgoing(
            id=secrets.token_hex(10),
            reply=Reply(place=self._selves.placed(place), text=text),
            made_at=self._now(),
            kind="notice",
            author=self._selves.author_on(place.platform),
        )
        deliveries = deliveries_of([said], self._platforms)
        await self._store.outbox.put(*deliveries)
        self._courier.take(deliveries)
        return said.id

    async def receive(self, message: Message) -> bool:
        """Keep a message, and answer it in time; whether it is new. It is kept for good when this returns."""
        self._require(message.place)
        keeping = asyncio.ensure_future(self._store.inbox.receive(self._selves.attributed(message), at=self._now()))
        keeping.add_done_callback(lambda kept: self._kept(message.place, kept))  # also if nobody waits any more
        return await asyncio.shield(keeping)

    async def edit(self, message: Message) -> bool:
        """Keep what a message says now; whether there is such a message."""
        self._require(message.place)
        known = await self._store.inbox.edit(self._selves.attributed(message), at=self._now())
        self._changed(message.place)
        return known

    async def delete(self, place: Place, message_id: str) -> bool:
        """Keep that a message was deleted; whether there is such a message."""
        self._require(place)
        known = await self._store.inbox.delete(place, message_id, at=self._now())
        self._changed(place)
        return known

    def stop(self, place: Place) -> None:
        """End the run that is under way in a place, without an answer."""
        self._store.stop_requests.request(place)

    async def clear(self, place: Place, *, asked_by: Author | None = None) -> None:
        """Let the conversation of a place begin anew: what was said is in no later prompt, and stays in the store.

        Where a person asks for it, `NotAllowed` in a group unless they own or administer it.
        """
        if asked_by is not None:
            await require_right_to_clear(place, asked_by, self._selves.administers)
        await self._duties.clear(place, await self._store.log.count(place))

    async def schedule(self, tasks: Sequence[Task]) -> None:
        """Keep work for later, and do it when it is due."""
        await self._store.tasks.add(tasks)
        self._worker.wake()

    async def settled(self) -> None:
        """Wait until all that can be done now is done. Raise `StoreBroken` if the store's file is damaged."""
        parts = (self._crew, self._commands, self._worker, self._courier)
        while True:
            for part in parts:
                await part.done()
            if not any(part.busy for part in parts):
                return

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
        if run.id not in self._taken_up:  # a full disk may have it taken up more than once in one life
            if run.resumed >= self._conduct.resumes:
                await self._endings.with_excuse(run, target, PalaverError(GIVEN_UP.format(times=run.resumed)))
                return
            run = replace(run, resumed=run.resumed + 1)
            await self._store.runs.resume(run)
            self._taken_up.add(run.id)
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

    async def _spent(self, batch: Batch) -> None:
        """Leave messages unanswered because a cap is reached; the author is told once a day."""
        target = batch.target
        await self._judge.take_back(target)
        if self._spending.tells(target):
            run = self._new_run(batch.messages, target)
            await self._endings.with_notice(run, target, SPENT, why="a cap on what may be spent is reached")
        else:
            await self._store.inbox.pass_over(target.place, batch.ids)

    async def call_off(self, place: Place) -> None:
        await self._store.tasks.call_off(place, self._conduct.policy)

    def _new_run(self, messages: Sequence[Message], target: Message) -> Run:
        return new_run(messages, target, at=self._now(), model=self.models[0].name, profile=self._prompter.profile.name)

    async def _run(self, run: Run, batch: Batch) -> tuple[Run, Ending, Message] | None:
        """From the batch to what comes of it; None where everything was deleted before the model was asked."""
        busy = self._free.locked()
        async with Slot(self._free) as slot:
            current = await self._desks[run.place.key].refreshed(batch) if busy else batch
            while current is not None:
                context = await self._prompter.context(current, model=self.models[0].name)
                prompt = self._answerer.gone.without(self._prompter.prompt(context, self.toolbox.specs, self.settings))
                if self.memory:
                    self.memory.told(context)
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
                    current = await self._desks[run.place.key].refreshed(current)
                    continue
                return await self._loop(Journal(run=begun, prompt=prompt), current.target, slot)
        return None

    async def _resumed(self, journal: Journal, target: Message) -> tuple[Run, Ending, Message]:
        async with Slot(self._free) as slot:
            return await self._loop(journal, target, slot)

    async def _loop(self, journal: Journal, target: Message, slot: Slot) -> tuple[Run, Ending, Message]:
        return await self._answerer.answer(journal, target, models=self.models, toolbox=self.toolbox, slot=slot)

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
            await self._end_drafts()

    async def _end_drafts(self) -> None:
        """Edit the drafts whose runs are gone or have ended without them: no answer comes in their place."""
        if not any(platform.capabilities.drafts for platform in self._platforms.values()):
            return
        for draft in await self._store.outbox.abandoned_drafts():
            if self._selves.knows(draft.reply.place.platform):
                line = stop_line(draft, self._now())
                await self._store.outbox.put(line)
                self._courier.take([line])

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

    async def _join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """What came in meanwhile and is for us, to be seen by the next step already; what the prompt shows waits."""
        waiting = await self._store.inbox.waiting(run.place)
        for_us = await self._judge.bursts(waiting, self._now(), since=run.horizon)
        found = [message for message in for_us if not await self._confirmations.of(message)]
        if not found:
            return run, ()
        taken = run.taken + tuple(message.id for message in found)
        return replace(run, taken=taken), await self._prompter.turns_of(found)

    def _failed(self, run: Run, error: PalaverError) -> None:
        wait = seconds_to_wait(getattr(error, "retry_after", None))
        why, kind = str(error), type(error).__name__
        self._events.publish(RunFailed(place=run.place, run_id=run.id, error=kind, why=why, retry_after=wait))

    def _require(self, place: Place) -> None:
        if self._working is None:
            raise InvalidValue("the engine is not started: `async with Engine(…) as engine:` does it")
        if place.platform not in self._platforms:
            there = ", ".join(self._platforms) or "none"
            raise InvalidValue(f"the engine has no platform {place.platform!r}; there are: {there}")

    def _desk(self, place: Place, runs: Sequence[Run] = ()) -> Desk:
        """The desk of a place, which is attended from now on."""
        key = place.key
        if key not in self._desks:
            left = self._broken.pop(key, None)
            desk = self._desks[key] = left or Desk(
                place, self, self._judge, self._store.inbox, self._conduct, now=self._now, sleep=self._sleep, runs=runs
            )
            self._crew.begin(self._attend(key, desk))
        return self._desks[key]

    async def _attend(self, key: PlaceKey, desk: Desk) -> None:
        try:
            async with self._store.ownership.hold(desk.place):
                with self._store.stop_requests.listen(desk.place, desk.stop):
                    await desk.attend()
                del self._desks[key]  # before the place is released: a message that comes now gets a desk of its own
        except StoreBroken:
            self._broken[key] = desk
            raise
        finally:
            if self._desks.get(key) is desk:
                del self._desks[key]
        if self.memory:
            self.memory.heard(desk.place)
        await self._courier.look()

    def _applied(self, changes: Sequence[Change]) -> None:
        """Act on changes that are stored."""
        if self._working is None:
            return
        for change in changes:
            match change:
                case Received(message=message):
                    self._desk(message.place).heard()
                case Edited(message=message):
                    self._changed(message.place)
                case Deleted(place=place):
                    self._changed(place)
                case PlaceMigrated(old=old, new=new):
                    self._moved[old.key] = new
                    self._duties.put_away()
                case PlaceLeft(place=place) | Stopped(place=place):
                    self.stop(place)
                case Commanded():
                    self._commands.wake()
                case Reacted():
                    pass
                case _:
                    assert_never(change)

    def _changed(self, place: Place) -> None:
        if desk := self._desks.get(place.key):
            desk.heard()
        if self.memory:
            self.memory.heard(place)

    def _kept(self, place: Place, kept: "asyncio.Future[bool]") -> None:
        """A message is there to be answered; also if it is not new: who delivered it before may have given up."""
        if not kept.cancelled() and kept.exception() is None and self._working is not None:
            self._desk(place).heard()

    def _is_stopped(self, place: Place) -> bool:
        desk = self._desks.get(place.key)
        return desk is not None and desk.stopping

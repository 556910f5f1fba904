"""The engine: what people say goes in and is kept; what the model says to it comes out, once, whatever happens."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self

from msgspec.structs import replace

from palaver.agent.toolbox import Function, Tool, Toolbox
from palaver.config import Config
from palaver.context import sources
from palaver.context.gathering import gather
from palaver.context.memory import Remembered
from palaver.context.reading import Log
from palaver.context.values import Context, Persona
from palaver.context.zones import zone_named
from palaver.conversation.conduct import FAILED, NOTHING_TO_SAY, TOO_MANY, Conduct
from palaver.conversation.crew import Crew, Sleep, is_cancelled
from palaver.conversation.describing import Describe, Describer
from palaver.conversation.desk import Desk
from palaver.conversation.duties import Duties
from palaver.conversation.journal import Journal, Kept, Outgoing, Run
from palaver.conversation.memory import Memory
from palaver.conversation.pace import Pace
from palaver.conversation.platform import Platform
from palaver.conversation.prompting import Knowledge, profile_named, prompt_for, sources_for
from palaver.conversation.running import Answered, Runner, Watch, rungs_of
from palaver.conversation.sending import Courier
from palaver.conversation.since import Since
from palaver.conversation.speaking import Spoken, objection, spoken
from palaver.conversation.triggers import Triggers, Verdict
from palaver.conversation.working import Work, Worker
from palaver.errors import InvalidValue, PalaverError, StoreTrouble
from palaver.messages import Author, Message, Place, Reply
from palaver.models.base import Model, Response
from palaver.prompt.layers import spoken_style
from palaver.prompt.render import turns_of_one
from palaver.tasks.kinds import KINDS
from palaver.tasks.values import Task
from palaver.turns import Prompt, Settings, ToolSpec, Turn

log = logging.getLogger(__name__)

STOPPED = "somebody stopped it"
GIVEN_UP = "it was taken up again {times} times and never came to an end"

Key = tuple[str, str, str | None]


class Engine:
    """`async with Engine(store, model, [platform]) as engine:` and then `await engine.receive(message)`.

    Whatever an earlier process left undone is done first.
    """

    def __init__(
        self,
        store: Kept,
        model: Model,
        platforms: Iterable[Platform],
        *,
        persona: Persona | None = None,
        tools: Toolbox | Iterable[Function | Tool | ToolSpec] = (),
        profile: str | Callable[[Context], Prompt] | None = None,
        settings: Settings | None = None,
        config: Config | None = None,
        conduct: Conduct | None = None,
        zone: str = "UTC",
        memory: Memory | None = None,
        works: Mapping[str, Work] | None = None,
        describe: Describe | None = None,
        watch: Watch | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.model = model
        self.persona = persona or Persona()
        self.toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self.settings = settings or Settings()
        self._store = store
        self._platforms = {platform.name: platform for platform in platforms}
        self._config = config or Config()
        self._profile = self._config.profile if profile is None else profile
        self._conduct = conduct or Conduct()
        zone_named(zone)
        self._zone = zone
        self.memory = memory if self._config.memory else None  # None: nothing is recalled, and nothing learned
        self._knowledge: Knowledge = self.memory.knowledge if self.memory else Remembered()
        self._watch = watch
        self._now = now
        self._sleep = sleep
        self._describer = Describer(store.descriptions, describe, now=now)
        self._duties = Duties(store.standing, store.facts, now=now)
        self._works = {**self._duties.works, **(works or {})}
        self._kinds = {**KINDS, **{kind: work.read for kind, work in (works or {}).items()}}
        self._pace = Pace(self._conduct.limit)
        self._crew = Crew()
        self._desks: dict[Key, Desk] = {}
        self._room = asyncio.Semaphore(self._conduct.at_once)
        self._courier = Courier(store.outbox, self._platforms, now=now, doubtful=self._conduct.doubtful, sleep=sleep)
        self._worker = Worker(
            store.tasks,
            self._works,
            platforms=tuple(self._platforms),
            me=lambda place: self._me(place.platform),
            sent=self._courier.take,
            now=now,
            retry=self._conduct.retry,
            sleep=sleep,
        )
        self._working: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Do what an earlier process left undone, and wait for more."""
        await self._duties.load()
        await self._worker.recover()
        await self._courier.recover()
        opened: dict[Key, list[Run]] = {}
        for run in await self._store.runs.open():
            opened.setdefault(_key(run.place), []).append(run)
        for place in [*(runs[0].place for runs in opened.values()), *await self._store.inbox.places()]:
            if place.platform in self._platforms:
                self._desk(place, runs=opened.get(_key(place), ()))
        self._working = asyncio.create_task(self._worker.run())
        if self.memory:
            await self.memory.start()

    async def close(self) -> None:
        """Let go of everything; what is under way is taken up by the next who starts."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])
            self._working = None
        await self._crew.stop()
        await self._worker.close()  # what it says in its last moments is still sent
        await self._courier.close()
        if self.memory:
            await self.memory.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def receive(self, message: Message) -> bool:
        """Keep a message, and answer it in time; whether it is new. It is kept for good when this returns."""
        self._require(message.place)
        keeping = asyncio.ensure_future(self._store.inbox.receive(message, at=self._now()))
        keeping.add_done_callback(lambda kept: self._kept(message.place, kept))  # also if nobody waits any more
        return await asyncio.shield(keeping)

    async def edit(self, message: Message) -> bool:
        """Keep what a message says now; whether there is such a message."""
        self._require(message.place)
        known = await self._store.inbox.edit(message, at=self._now())
        self._changed(message.place, message.id)
        return known

    async def delete(self, place: Place, message_id: str) -> bool:
        """Keep that a message was deleted; whether there is such a message."""
        self._require(place)
        known = await self._store.inbox.delete(place, message_id, at=self._now())
        self._changed(place, message_id)
        return known

    def stop(self, place: Place) -> None:
        """End the run that is under way in a place, without an answer."""
        if desk := self._desks.get(_key(place)):
            desk.stop()

    async def clear(self, place: Place) -> None:
        """Let the conversation of a place begin anew; nothing is removed from the store."""
        await self._duties.clear(place, await self._store.log.count(place))

    async def schedule(self, tasks: Sequence[Task]) -> None:
        """Keep work for later, and do it when it is due."""
        await self._store.tasks.add(tasks)
        self._worker.wake()

    async def settled(self) -> None:
        """Wait until all that can be done now is done."""
        while self._crew.busy or self._worker.busy or self._courier.busy:
            await self._crew.done()
            await self._worker.done()
            await self._courier.done()

    async def answer(self, messages: Sequence[Message], target: Message) -> None:
        """Answer messages of one author that belong together; *target* is the one that is replied to."""
        author = _author(target)
        if self._pace.is_full(author, time.monotonic()):  # other places were quicker
            await self.too_many(target)
            await self._store.inbox.pass_over(target.place, [message.id for message in messages])
            return
        self._pace.answered(author, time.monotonic())
        run = self._new_run(messages, target)
        try:
            await self._conclude(run, target, self._run(run, messages, target))
        except StoreTrouble:
            self._pace.take_back(author)
            raise

    async def resume(self, run: Run) -> None:
        """Take up a run that an earlier process began."""
        journal = await self._store.runs.journal(run.id)
        target = await self._message(run.place, run.target)
        if journal is None or target is None or not target.author.id:  # forgotten meanwhile
            await self._end(replace(run, status="failed", why="its message is gone"))
            return
        if run.resumed >= self._conduct.resumes:
            await self._fail(run, target, PalaverError(GIVEN_UP.format(times=run.resumed)))
            return
        run = replace(run, resumed=run.resumed + 1)
        await self._store.runs.resume(run)
        await self._conclude(run, target, self._resumed(replace(journal, run=run)))

    async def unfinished(self, place: Place) -> Sequence[Run]:
        return [run for run in await self._store.runs.open() if _key(run.place) == _key(place)]

    async def judge(self, message: Message) -> Verdict:
        """What to do with a message."""
        author = message.author
        before: Sequence[Message] = ()
        if author.persona is not None:
            number = await self._store.log.number(message) or 0
            before = await self._store.log.read(message.place, number - self._conduct.agents_in_a_row, number)
        answered = self._pace.ago(_author(message), time.monotonic())
        try:
            return self._triggers(message.place.platform).judge(message, before, answered)
        except Exception:
            log.exception("the rule failed on message %s; it is not answered", message.id)
            return "not addressed"

    async def too_many(self, message: Message) -> None:
        """Tell an author that this was more than is answered: once, until it is answered again."""
        if self._pace.tell(_author(message)):
            run = replace(self._new_run([message], message), status="failed", why="too many messages of one author")
            try:  # in one go with the line, so that it is not answered as well after a crash
                await self._end(run, Spoken(replies=(self._line(run, message, TOO_MANY),)))
            except StoreTrouble:
                self._pace.take_back(_author(message))
                raise

    async def call_off(self, place: Place) -> None:
        await self._store.tasks.call_off(place, self._conduct.policy)

    def _new_run(self, messages: Sequence[Message], target: Message) -> Run:
        return Run(
            id=secrets.token_hex(10),
            place=target.place,
            target=target.id,
            taken=tuple(message.id for message in messages),
            began_at=self._now(),
            horizon=0,
            model=self.model.name,
            profile=self._profile if isinstance(self._profile, str) else "",
        )

    async def _run(self, run: Run, messages: Sequence[Message], target: Message) -> tuple[Answered, Message] | None:
        """From the target to what the model says to it; None where everything was deleted before it was asked."""
        desk = self._desks.get(_key(run.place))
        async with self._room:
            while True:
                changes = desk.changes if desk else 0
                if desk and changes != desk.read_at:
                    messages, target = await self._now_waiting(messages, target)
                if not messages:
                    return None
                context = await gather(target, await self._sources(target.place), self._now())
                if desk is None or desk.changes == changes:
                    break
                desk.read_at = -1
            if self.memory:
                self.memory.told(context)
            prompt = prompt_for(context, self._laid_out(), tools=self.toolbox.specs, settings=self.settings)
            begun = replace(
                run,
                target=target.id,
                taken=tuple(message.id for message in messages),
                horizon=await self._store.log.count(target.place),
            )
            return await self._runner().run(begun, prompt), target

    async def _now_waiting(self, messages: Sequence[Message], target: Message) -> tuple[Sequence[Message], Message]:
        """The messages as they stand now, without those that were deleted."""
        found = {one.message.id: one.message for one in await self._store.inbox.waiting(target.place)}
        left = [found[message.id] for message in messages if message.id in found]
        return left, found.get(target.id, left[-1] if left else target)

    async def _resumed(self, journal: Journal) -> tuple[Answered, Message] | None:
        target = await self._message(journal.run.place, journal.run.target)
        if target is None:
            return None
        async with self._room:
            return await self._runner().resume(journal), target

    async def _conclude(self, run: Run, target: Message, answering: Awaitable[tuple[Answered, Message] | None]) -> None:
        """End a run with what comes of it: replies and tasks, or an honest line."""
        try:
            found = await answering
            if found is None:
                return
            answered, target = found
            said = await self._spoken(answered, target)
        except StoreTrouble:
            raise  # the run stays open, and is taken up again
        except asyncio.CancelledError:
            if self._is_stopped(run.place):
                await self._end(replace(run, status="failed", why=STOPPED))
            elif not is_cancelled():  # a model's or a platform's own, and not meant for us
                await self._fail(run, target, PalaverError("it was cancelled from within"))
                return
            raise
        except PalaverError as error:
            log.warning("run %s: %s", run.id, error)
            await self._fail(run, target, error)
        except Exception as error:
            log.exception("run %s", run.id)
            await self._fail(run, target, PalaverError(f"{type(error).__name__}: {error}"))
        else:
            await self._end(replace(answered.run, status="done"), said)

    async def _spoken(self, answered: Answered, target: Message) -> Spoken:
        said = spoken(
            answered.turns,
            answered.run,
            target,
            me=self._my(target),
            now=self._now(),
            delimiter=await self._duties.delimiter(target.place),
            kinds=self._kinds,
        )
        if said.replies or said.tasks or said.silent:
            return said
        return replace(said, replies=(self._line(answered.run, target, NOTHING_TO_SAY),))

    async def _fail(self, run: Run, target: Message, error: PalaverError) -> None:
        try:
            words = self._conduct.excuse(error)
        except Exception:
            log.exception("there is no excuse for %s", error)
            words = FAILED
        line = self._line(run, target, words)
        await self._end(replace(run, status="failed", why=str(error)[:1000]), Spoken(replies=(line,)))

    async def _as_kept(self, run: Run) -> Run:
        """The run with what it has come to since it was begun: messages it took on, rungs it climbed."""
        journal = await self._store.runs.journal(run.id)
        if journal is None:  # what was shown before stays as it was shown
            return replace(run, horizon=await self._store.log.count(run.place))
        return replace(run, taken=journal.run.taken, horizon=journal.run.horizon, rungs=rungs_of(journal))

    async def _end(self, run: Run, said: Spoken | None = None) -> None:
        ending = asyncio.ensure_future(self._ended(run, said or Spoken()))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait([ending])  # what is being kept cannot be taken back any more, and has to go out
            if (trouble := ending.exception()) and self._is_stopped(run.place):
                raise trouble from None  # the run is still open
            raise

    async def _ended(self, run: Run, said: Spoken) -> None:
        if run.status == "failed":
            run = await self._as_kept(run)
        await self._store.runs.end(replace(run, ended_at=self._now()), replies=said.replies, tasks=said.tasks)
        self._courier.take(said.replies)
        if said.tasks:
            self._worker.wake()

    async def _join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """What came in meanwhile and is for us, to be seen by the next step already."""
        found = [
            one.message
            for one in await self._store.inbox.waiting(run.place)
            if await self.judge(one.message) == "answer"
        ]
        if not found:
            return run, ()
        scene = await gather(found[0], [await self._scene(run.place)], self._now())
        turns = [turn for message in found for turn in turns_of_one(message, scene, spoken_style(scene))]
        return replace(run, taken=run.taken + tuple(message.id for message in found)), tuple(turns)

    def _runner(self) -> Runner:
        return Runner(
            runs=self._store.runs,
            model=self.model,
            toolbox=self.toolbox,
            now=self._now,
            sleep=self._sleep,
            calls_off=self._conduct.policy,
            watch=self._watch,
            join=self._join if self._conduct.during == "next step" else None,
            objection=self._objection,
            worked=self._worker.wake,  # a tool may have planned something
        )

    def _objection(self, response: Response) -> str | None:
        return objection(response, kinds=self._kinds)

    async def _sources(self, place: Place) -> list[sources.Source]:
        name = self._profile if isinstance(self._profile, str) else ""
        beginning = await self._duties.beginning(place)
        said: Log = Since(self._store.log, beginning) if beginning else self._store.log
        drawn = sources_for(name, messages=said, remembered=self._knowledge, config=self._config)
        return [await self._scene(place), *drawn, self._describer.described]

    async def _scene(self, place: Place) -> sources.Source:
        delimiter = await self._duties.delimiter(place)
        return sources.scene(persona=self._named(place.platform), zone=self._zone, delimiter=delimiter)

    def _laid_out(self) -> Callable[[Context], Prompt]:
        return profile_named(self._profile, self._config) if isinstance(self._profile, str) else self._profile

    async def _message(self, place: Place, message_id: str) -> Message | None:
        asked = Message(id=message_id, place=place, author=Author(id="", name=""))
        number = await self._store.log.number(asked)
        return None if number is None else (await self._store.log.read(place, number, number + 1))[0]

    def _line(self, run: Run, target: Message, text: str) -> Outgoing:
        """A reply of our own words."""
        reply = Reply(place=target.place, text=text, reply_to=_beside(target))
        return Outgoing(id=f"{run.id}-0", reply=reply, made_at=self._now(), run=run.id, author=self._my(target))

    def _named(self, platform: str) -> Persona:
        """The persona under the name by which the agent's own messages are known."""
        return replace(self.persona, name=self.persona.name or self._platforms[platform].me.name)

    def _me(self, platform: str) -> Author:
        return replace(self._platforms[platform].me, persona=self._named(platform).name)

    def _my(self, message: Message) -> Author:
        return self._me(message.place.platform)

    def _triggers(self, platform: str) -> Triggers:
        conduct = self._conduct
        return Triggers(
            me=self._me(platform),
            names=conduct.names,
            rule=conduct.rule,
            blocked=self._duties.blocked(platform),
            agents_in_a_row=conduct.agents_in_a_row,
            limit=conduct.limit,
        )

    def _require(self, place: Place) -> None:
        if self._working is None:
            raise InvalidValue("the engine is not started: `async with Engine(…) as engine:` does it")
        if place.platform not in self._platforms:
            there = ", ".join(self._platforms) or "none"
            raise InvalidValue(f"the engine has no platform {place.platform!r}; there are: {there}")

    def _desk(self, place: Place, runs: Sequence[Run] = ()) -> Desk:
        """The desk of a place, which is attended from now on."""
        key = _key(place)
        if key not in self._desks:
            desk = Desk(place, self, self._store.inbox, self._conduct, now=self._now, sleep=self._sleep, runs=runs)
            self._desks[key] = desk
            self._crew.begin(self._attend(key, desk))
        return self._desks[key]

    async def _attend(self, key: Key, desk: Desk) -> None:
        try:
            await desk.attend()
        finally:
            del self._desks[key]
        if self.memory:
            self.memory.heard(desk.place)
        await self._courier.look()

    def _changed(self, place: Place, message_id: str) -> None:
        if desk := self._desks.get(_key(place)):
            desk.changed()
        if self.memory:
            self.memory.changed(place, message_id)

    def _kept(self, place: Place, kept: "asyncio.Future[bool]") -> None:
        """A message is there to be answered; also if it is not new: who delivered it before may have given up."""
        if not kept.cancelled() and kept.exception() is None and self._working is not None:
            self._desk(place).heard()

    def _is_stopped(self, place: Place) -> bool:
        desk = self._desks.get(_key(place))
        return desk is not None and desk.stopping


def _key(place: Place) -> Key:
    return place.platform, place.id, place.thread


def _author(message: Message) -> tuple[str, str]:
    return message.place.platform, message.author.id


def _beside(message: Message) -> str | None:
    """What a reply refers to: in a group the message, in a direct chat nothing."""
    return None if message.place.kind == "direct" else message.id

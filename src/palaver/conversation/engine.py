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
from palaver.conversation.conduct import NOTHING_TO_SAY, TOO_MANY, Conduct
from palaver.conversation.crew import Crew, Sleep
from palaver.conversation.describing import Describe, Describer
from palaver.conversation.desk import Desk
from palaver.conversation.duties import Duties
from palaver.conversation.journal import Kept, Outgoing, Run
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
        self._zone = zone
        self.memory = memory  # None: nothing is recalled, and nothing learned
        self._knowledge: Knowledge = memory.knowledge if memory else Remembered()
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
        await self._crew.stop()
        await asyncio.gather(self._worker.close(), self._courier.close())
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
        new = await self._store.inbox.receive(message, at=self._now())
        self._desk(message.place).heard()  # also if it is not new: who delivered it before may have given up half-way
        return new

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

    async def answer(self, messages: Sequence[Message]) -> None:
        """Answer messages of one author, which belong together; the last of them is the target."""
        target = messages[-1]
        self._pace.answered(_author(target), time.monotonic())
        run = Run(
            id=secrets.token_hex(10),
            place=target.place,
            target=target.id,
            taken=tuple(message.id for message in messages),
            began_at=self._now(),
            horizon=0,
            model=self.model.name,
            profile=self._profile if isinstance(self._profile, str) else "",
        )
        async with self._room:
            await self._conclude(run, target, self._run(run, target))

    async def resume(self, run: Run) -> None:
        """Take up a run that an earlier process began."""
        journal = await self._store.runs.journal(run.id)
        target = await self._message(run.place, run.target)
        if journal is None or target is None:  # forgotten meanwhile
            await self._end(replace(run, status="failed", why="its message is gone"))
            return
        if run.resumed >= self._conduct.resumes:
            await self._fail(run, target, PalaverError(GIVEN_UP.format(times=run.resumed)))
            return
        run = replace(run, resumed=run.resumed + 1)
        await self._store.runs.resume(run)
        async with self._room:
            await self._conclude(run, target, self._runner(target).resume(replace(journal, run=run)))

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
            run = Run(
                id=secrets.token_hex(10),
                place=message.place,
                target=message.id,
                taken=(message.id,),  # in one go with the line, so that it is not answered as well after a crash
                began_at=self._now(),
                horizon=0,
                status="failed",
                why="too many messages of one author",
            )
            await self._end(run, Spoken(replies=(self._line(run, message, TOO_MANY),)))

    async def _run(self, run: Run, target: Message) -> Answered:
        """From the target to what the model says to it."""
        context = await gather(target, await self._sources(target.place), self._now())
        if self.memory:
            self.memory.told(context)
        prompt = prompt_for(context, self._laid_out(), tools=self.toolbox.specs, settings=self.settings)
        begun = replace(run, horizon=await self._store.log.count(target.place))
        return await self._runner(target).run(begun, prompt)

    async def _conclude(self, run: Run, target: Message, answering: Awaitable[Answered]) -> None:
        """End a run with what comes of it: replies and tasks, or an honest line."""
        try:
            answered = await answering
            said = await self._spoken(answered, target)
        except StoreTrouble:
            raise  # the run stays open, and is taken up again
        except asyncio.CancelledError:
            if self._is_stopped(run.place):
                await self._end(replace(run, status="failed", why=STOPPED))
            raise
        except PalaverError as error:
            log.warning("run %s: %s", run.id, error)
            await self._fail(run, target, error)
        except Exception as error:
            log.exception("run %s", run.id)
            await self._fail(run, target, PalaverError(f"{type(error).__name__}: {error}"))
        else:
            await self._end(replace(answered.run, status="done"), said)
            if len(answered.turns) > 1:
                self._worker.wake()  # a tool may have planned something

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
        line = self._line(run, target, self._conduct.excuse(error))
        await self._end(replace(run, status="failed", why=str(error)[:1000]), Spoken(replies=(line,)))

    async def _as_kept(self, run: Run) -> Run:
        """The run with what it has come to since it was begun: messages it took on, rungs it climbed."""
        journal = await self._store.runs.journal(run.id)
        if journal is None:
            return run
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

    def _runner(self, target: Message) -> Runner:
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

    def _changed(self, place: Place, message_id: str) -> None:
        if desk := self._desks.get(_key(place)):
            desk.heard()
        if self.memory:
            self.memory.changed(place, message_id)

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

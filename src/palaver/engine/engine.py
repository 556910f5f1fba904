"""The engine: what people say goes in and is kept; what the model says to it comes out, once, whatever happens."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self, assert_never

from palaver.config import Config
from palaver.context.budget import Budget
from palaver.context.sources import AnySource
from palaver.context.values import Persona
from palaver.engine.background import Sleep, foreign_code
from palaver.engine.behavior import Behavior, require_right_to_clear
from palaver.engine.commands import no_memory
from palaver.engine.delimiters import DelimiterCache
from palaver.engine.event_stream import EventStream
from palaver.engine.identity import Identity, platforms_by_name
from palaver.engine.inbox import PlatformInbox
from palaver.engine.media_descriptions import Describe, models_of
from palaver.engine.memory import Memory
from palaver.engine.outbox_sender import OutboxSender, split_replies
from palaver.engine.place_aliases import PlaceAliases
from palaver.engine.place_worker import PlaceWorkers
from palaver.engine.platform_runner import run_platforms, stop_signals
from palaver.engine.rate_limit import RateLimiter
from palaver.engine.run_executor import models_in
from palaver.engine.spend_caps import SpendTracker
from palaver.engine.store_protocols import OutboxItem, StoreProtocol
from palaver.engine.task_worker import TaskHandler, kinds_with
from palaver.engine.wiring import EngineParts
from palaver.errors import InvalidValue, PalaverError, seconds_to_wait
from palaver.events import Event, MemoryBehind, RunFailed
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
    type_fault,
)
from palaver.profiles import Build, Profile, profile_of
from palaver.run.journal import Run
from palaver.tasks.task import Task
from palaver.timezones import utc
from palaver.toolbox.toolbox import Function, Tool, Toolbox
from palaver.turns import Settings, ToolSpec


class Engine:
    """`await Engine(store, model, [platform]).run()` runs a bot until it is stopped.

    `async with Engine(…) as engine:` runs all but the platforms; messages are then given by `engine.receive(message)`.
    Whatever an earlier process left undone is done first.
    """

    def __init__(
        self,
        store: StoreProtocol,
        models: Model | Sequence[Model],
        platforms: Iterable[Platform],
        *,
        persona: Persona | None = None,
        tools: Toolbox | Iterable[Function | Tool | ToolSpec] = (),
        profile: str | Profile | Build | None = None,
        sources: Iterable[AnySource] = (),
        budget: Budget | None = None,
        settings: Settings | None = None,
        config: Config | None = None,
        behavior: Behavior | None = None,
        zone: str = "UTC",
        memory: Memory | None = None,
        task_handlers: Mapping[str, TaskHandler] | None = None,
        describe: Describe | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        config, behavior, task_handlers = config or Config(), behavior or Behavior(), task_handlers or {}
        self.models = models_in(models)  # the first is asked; each other where the one before it does not answer
        self.toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self.settings = settings or Settings()
        self.memory = memory if config.memory else None  # None: nothing is recalled, and nothing learned
        self._store = store
        self._platforms = platforms_by_name(platforms)
        self._behavior = behavior
        self._now = now
        self._sleep = sleep
        self._events = EventStream(store.events)
        self._identity = Identity(persona or Persona(), self._platforms)
        self._moved = PlaceAliases()
        self._delimiters = DelimiterCache(store.place_settings)
        self._outbox_sender = OutboxSender(
            store.outbox, self._platforms, now=now, doubtful=behavior.doubtful, sleep=sleep, moved=self._moved
        )
        spend_tracker = SpendTracker(store.usage, behavior.caps, prices=behavior.prices, now=now)
        spend_tracker.require_prices([*self.models, *models_of(describe)])
        if self.memory:
            self.memory.charge(spend_tracker)
        parts = EngineParts(
            store=store,
            platforms=self._platforms,
            behavior=behavior,
            identity=self._identity,
            delimiters=self._delimiters,
            rate_limiter=RateLimiter(store.rate_limits, behavior.limit),
            outbox_sender=self._outbox_sender,
            events=self._events,
            spend_tracker=spend_tracker,
            now=now,
            sleep=sleep,
        )
        self._worker = parts.task_worker(task_handlers)
        self._completion = parts.completion(planned=self._worker.wake, failed=self._failed)
        kinds = kinds_with(task_handlers, may=behavior.model_may)
        prompt_builder = parts.prompt_builder(
            profile_of(config.profile if profile is None else profile, config),
            memory=self.memory,
            describe=describe,
            config=config,
            zone=zone,
            budget=budget or Budget(),
            sources=sources,
            task_handlers=task_handlers,
            kinds=kinds,
        )
        self._commands = parts.commands(
            zone, learned=self.memory.done if self.memory else no_memory, stop=self.stop, planned=self._worker.wake
        )
        executor = parts.executor(self._completion, kinds=kinds, tool_ended=self._worker.wake)  # it may have planned
        workers = parts.worker_parts(self, prompt_builder, executor, self._completion)
        self._places = PlaceWorkers(workers, moved=self._moved, left=self._left)
        self._working: asyncio.Task[None] | None = None

    @property
    def persona(self) -> Persona:
        """Who the agent is; may be set between runs."""
        return self._identity.persona

    @persona.setter
    def persona(self, persona: Persona) -> None:
        self._identity.persona = persona

    async def start(self) -> None:
        """Do what an earlier process left undone, and wait for more."""
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> None:
        utc(self._now())  # a clock without a zone is refused before anything is kept
        for platform in self._platforms.values():
            with foreign_code(platform.name):
                await platform.open()
        self._events.start()
        self._identity.require_accounts()
        self._moved.learn(await self._store.updates.migrated_places())
        await self._worker.recover()
        await self._outbox_sender.recover()
        await self._completion.end_drafts()
        opened: dict[PlaceKey, list[Run]] = {}
        for run in await self._store.runs.open():
            opened.setdefault(run.place.key, []).append(run)
        for place in [*(runs[0].place for runs in opened.values()), *await self._store.inbox.places()]:
            if place.platform in self._platforms:
                self._places.wake(place, runs=opened.get(place.key, ()))
        self._working = asyncio.create_task(self._worker.run())
        self._commands.wake()
        if self.memory:
            self.memory.on_behind(lambda missing: self._events.publish(MemoryBehind(messages=missing)))
            await self.memory.start()

    async def close(self) -> None:
        """Let go of everything; what is under way is taken up by the next who starts."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])
            self._working = None
        await self._commands.close()
        await self._places.tasks.stop()
        await self._worker.close()  # what it says in its last moments is still sent
        await self._outbox_sender.close()
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
        """Return the inbox through which a platform tells the engine what happens on it."""
        return PlatformInbox(
            platform,
            self._store.updates,
            self._identity,
            keep=self._behavior.keep_updates,
            applied=self._applied,
            now=self._now,
            sleep=self._sleep,
        )

    async def say(self, place: Place, text: str) -> str:
        """Say something that no message asked for; the id of its delivery. It is stored when this returns."""
        self._require(place)
        reply = Reply(place=self._identity.placed(place), text=text)
        _require_types(reply, Reply)
        if not text.strip():
            raise InvalidValue("there is nothing to say: the text is empty")
        said = OutboxItem(
            id=secrets.token_hex(10),
            reply=reply,
            made_at=self._now(),
            kind="notice",
            author=self._identity.author_on(place.platform),
        )
        deliveries = split_replies([said], self._platforms)
        await self._store.outbox.put(*deliveries)
        self._outbox_sender.take(deliveries)
        return said.id

    async def receive(self, message: Message) -> bool:
        """Keep a message, and answer it in time; whether it is new. It is kept for good when this returns."""
        _require_types(message, Message)
        self._require(message.place)
        keeping = asyncio.ensure_future(self._store.inbox.receive(self._identity.attributed(message), at=self._now()))
        keeping.add_done_callback(lambda kept: self._kept(message.place, kept))  # also if nobody waits any more
        return await asyncio.shield(keeping)

    async def edit(self, message: Message) -> bool:
        """Keep what a message says now; whether there is such a message."""
        _require_types(message, Message)
        self._require(message.place)
        known = await self._store.inbox.edit(self._identity.attributed(message), at=self._now())
        self._changed(message.place)
        return known

    async def delete(self, place: Place, message_id: str) -> bool:
        """Keep that a message was deleted; whether there is such a message."""
        self._require(place)
        known = await self._store.inbox.delete(place, message_id, at=self._now())
        self._changed(place)
        return known

    def stop(self, place: Place) -> None:
        """End the run that is under way in a place, without an answer. It may have begun before the place moved."""
        place = self._moved.current(place)
        for one in (place, *self._moved.former(place)):
            self._store.stop_requests.request(one)

    async def clear(self, place: Place, *, asked_by: Author | None = None) -> None:
        """Let the conversation of a place begin anew: what was said is in no later prompt, and stays in the store.

        Where a person asks for it, `NotAllowed` in a group unless they own or administer it.
        """
        if asked_by is not None:
            await require_right_to_clear(place, asked_by, self._identity.administers)
        await self._store.place_settings.clear(place, await self._store.log.count(place), at=self._now())

    async def schedule(self, tasks: Sequence[Task]) -> None:
        """Keep work for later, and do it when it is due."""
        await self._store.tasks.add(tasks)
        self._worker.wake()

    async def settled(self) -> None:
        """Wait until all that can be done now is done. Raise `StoreBroken` if the store's file is damaged."""
        parts = (self._places.tasks, self._commands, self._worker, self._outbox_sender)
        while True:
            for part in parts:
                await part.done()
            if not any(part.busy for part in parts):
                return

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

    async def _left(self, place: Place) -> None:
        """Nothing waits in a place any more: memory may learn from it, and what could not be sent is tried again."""
        if self.memory:
            self.memory.wake(place)
        await self._outbox_sender.look()

    def _applied(self, changes: Sequence[Change]) -> None:
        """Act on changes that are stored."""
        if self._working is None:
            return
        for change in changes:
            match change:
                case Received(message=message):
                    self._places.wake(message.place)
                case Edited(message=message):
                    self._changed(message.place)
                case Deleted(place=place):
                    self._changed(place)
                case PlaceMigrated(old=old, new=new):
                    self._delimiters.clear()
                    self._places.move(old, new)
                case PlaceLeft(place=place):
                    self.stop(place)
                case Stopped(place=place, author=author):
                    if author is None:
                        self.stop(place)
                    else:
                        self._commands.stop_for(self._moved.current(place), author)
                case Commanded():
                    self._commands.wake()
                case Reacted():
                    pass
                case _:
                    assert_never(change)

    def _changed(self, place: Place) -> None:
        self._places.changed(place)
        if self.memory:
            self.memory.wake(place)

    def _kept(self, place: Place, kept: "asyncio.Future[bool]") -> None:
        """A message is there to be answered; also if it is not new: who delivered it before may have given up."""
        if not kept.cancelled() and kept.exception() is None and self._working is not None:
            self._places.wake(place)


def _require_types(value: object, kind: type) -> None:
    """Raise `InvalidValue` where a field has another type than it says: what is stored so cannot be read again."""
    if fault := type_fault(value, kind):
        raise InvalidValue(fault)

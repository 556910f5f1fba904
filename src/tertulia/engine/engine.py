"""The engine: stores incoming messages, answers them with a model, and sends the replies, each once."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Self, assert_never

from tertulia.context.gather import ContextOptions
from tertulia.context.media_budget import request_limits
from tertulia.context.values import Persona
from tertulia.engine.background import BackgroundTasks, EngineClock, RealClock
from tertulia.engine.behavior import Behavior, require_right_to_clear
from tertulia.engine.describers import Describe, models_of_describer
from tertulia.engine.engine_parts import make_parts
from tertulia.engine.health import Health
from tertulia.engine.limits import CurrentLimits, Limits
from tertulia.engine.memory import Memory
from tertulia.engine.order_worker import make_order
from tertulia.engine.orders import Order, OrderKind
from tertulia.engine.place_worker import PlaceWorker, PlaceWorkers
from tertulia.engine.platform_runner import (
    PlatformInbox,
    announce_commands,
    close_platform,
    open_platform,
    run_platforms,
    runs_before,
    stop_signals,
)
from tertulia.engine.replay.past_runs import REPLAYED, runs_to_replay
from tertulia.engine.replay.replayer import Replayer
from tertulia.engine.replay.values import ChangedBot, ReplayedRun, SentAgain
from tertulia.engine.run_executor import as_models
from tertulia.engine.store_protocols import OutboxItem, StoreProtocol
from tertulia.engine.task_worker import TaskHandler
from tertulia.engine.view import MOST, View, ViewUpdate
from tertulia.engine.view_reader import ViewReader, view_updates
from tertulia.errors import InvalidValue, TertuliaError, reason_of, seconds_to_wait
from tertulia.events import Event, MemoryBehind, RunFailed
from tertulia.media.values import MediaOptions
from tertulia.messages import Author, Message, Place, PlaceKey, Reply
from tertulia.models.base import Model
from tertulia.models.gemini.cache_values import CachesPrompts
from tertulia.platform import (
    Change,
    Commanded,
    Deleted,
    Edited,
    Inbox,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Platform,
    Reacted,
    Received,
    Stopped,
)
from tertulia.profiles import Build, Profile, profile_of
from tertulia.run.journal import Run
from tertulia.tasks.task import Task
from tertulia.timezones import utc
from tertulia.toolbox.toolbox import Function, Tool, Toolbox
from tertulia.turns import Settings, ToolSpec
from tertulia.type_checks import require_options, type_fault

log = logging.getLogger(__name__)


class Engine:
    """`await Engine(store, model, [platform]).run()` runs a bot until it is stopped.

    `async with Engine(…) as engine:` runs all but the platforms; `engine.receive(message)` gives it messages.
    Runs, replies and tasks that an earlier process left are resumed first.
    """

    def __init__(
        self,
        store: StoreProtocol,
        models: Model | Sequence[Model],
        platforms: Iterable[Platform],
        *,
        persona: Persona | None = None,
        tools: Toolbox | Iterable[Function | Tool | ToolSpec] = (),
        profile: str | Profile | Build = "layered",
        context: ContextOptions | None = None,
        settings: Settings | None = None,
        behavior: Behavior | None = None,
        limits: Limits | None = None,
        zone: str = "UTC",
        memory: Memory | None = None,
        task_handlers: Mapping[str, TaskHandler] | None = None,
        describe: Describe | None = None,
        transcribe: Describe | None = None,
        media: MediaOptions | None = None,
        clock: EngineClock | None = None,
    ) -> None:
        require_options(
            "an engine",
            *((persona, Persona), (context, ContextOptions), (settings, Settings), (behavior, Behavior)),
            *((limits, Limits), (memory, Memory), (media, MediaOptions)),
        )
        behavior, context = behavior or Behavior(), context or ContextOptions()
        self.models = as_models(models)  # the first is called; each other is a fallback for the one before
        self.toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self.settings = settings or Settings()
        self.memory = memory  # None: nothing is recalled or learned
        self._parts = parts = make_parts(
            store,
            platforms,
            behavior,
            CurrentLimits(limits),
            media=media or MediaOptions(),
            persona=persona,
            task_handlers=task_handlers,
            clock=clock or RealClock(),
        )
        self._describe = describe
        self._context, self._zone = context, zone
        parts.spend_tracker.require_prices(self._models_in_use())
        for model in self._models_in_use():
            if isinstance(model, CachesPrompts):
                model.remember_in(store.model_caches)
        if self.memory:
            self.memory.charge(parts.spend_tracker)
        self._task_worker = parts.task_worker()
        self._completion = parts.completion(planned=self._task_worker.wake, failed=self._publish_failure)
        self._descriptions = parts.describer(describe, transcribe, memory=memory)
        prompt_builder = parts.prompt_builder(
            profile_of(profile, context), self._descriptions, memory=self.memory, options=context, zone=zone
        )
        self._commands = parts.commands(
            zone,
            memory=self.memory,
            stop=self.stop,
            answered=lambda place: self._places.answered(place),
            planned=self._task_worker.wake,
        )
        self._executor = executor = parts.executor(
            self._completion,
            tool_ended=self._task_worker.wake,  # a tool may have added a task
            media_limits=request_limits(context.budget),
        )
        workers = parts.worker_parts(self, prompt_builder, executor, self._completion)
        self._places = PlaceWorkers(workers, aliases=parts.aliases, on_idle=self._on_place_idle)
        self._orders = parts.order_worker(
            stop=self._stop_before,
            woken=lambda place: self._places.wake(place),
            planned=self._task_worker.wake,
        )
        self._task_loop: asyncio.Task[None] | None = None
        self._background = BackgroundTasks()
        self._applying = BackgroundTasks()  # updates, from their transaction until they are acted on

    @property
    def persona(self) -> Persona:
        """The persona of the agent. May be set at any time; a run that has begun keeps its prompt.

        A text that differs from the one before ends what an owner set by `/persona`.
        """
        return self._parts.identity.persona

    @persona.setter
    def persona(self, persona: Persona) -> None:
        _require_types(persona, Persona)
        self._parts.owner_settings.configure(persona=persona)

    @property
    def limits(self) -> Limits:
        """The limits of the agent. May be set at any time; those that `Engine` would refuse raise `InvalidValue`."""
        return self._parts.limits.value

    @limits.setter
    def limits(self, limits: Limits) -> None:
        _require_types(limits, Limits)
        self._parts.spend_tracker.require_prices(self._models_in_use(), limits)
        self._parts.owner_settings.configure(limits=limits)

    def _models_in_use(self) -> list[Model]:
        return [*self.models, *models_of_describer(self._describe), *(self.memory.models if self.memory else ())]

    async def start(self) -> None:
        """Open the platforms, resume what an earlier process left, and start the workers."""
        try:
            utc(self._parts.now())  # a naive clock is refused before anything is stored
            for platform in self._parts.platforms.values():
                await open_platform(platform)
            self._parts.events.start()
            self._parts.identity.require_accounts()
            await self._parts.owner_settings.load()
            self._parts.aliases.add(await self._parts.store.updates.migrated_places())
            await self._task_worker.recover()
            await self._parts.outbox_sender.recover()
            await self._completion.close_drafts()
            opened: dict[PlaceKey, list[Run]] = {}
            for run in await self._parts.store.runs.open():
                opened.setdefault(run.place.key, []).append(run)
            for place in [*(runs[0].place for runs in opened.values()), *await self._parts.store.inbox.places()]:
                if place.platform in self._parts.platforms and self._parts.allowed_places.allows(place):
                    self._places.wake(place, runs=opened.get(place.key, ()))
            self._task_loop = asyncio.create_task(self._task_worker.run())
            self._commands.wake()
            self._background.start(self._orders.run())
            self._background.start(self._parts.retention().run())
            self._background.start(self._parts.handle_removal(self._models_in_use()).run())
            for platform in self._parts.platforms.values():
                self._background.start(announce_commands(platform, self._parts.behavior, self._parts.identity))
            if self.memory:
                self.memory.on_behind(lambda missing: self._parts.events.publish(MemoryBehind(messages=missing)))
                await self.memory.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop all workers. The next start resumes what they leave."""
        if self._task_loop is not None:
            self._task_loop.cancel()
            await asyncio.wait([self._task_loop])
            self._task_loop = None
        await self._background.stop()
        await self._commands.close()
        await self._parts.owner_settings.close()
        await self._places.tasks.stop()
        await self._descriptions.worker.close()
        await asyncio.gather(self._parts.fetcher.close(), self._parts.attachments.close())
        await self._task_worker.close()  # before the sender, which sends its last replies
        await self._parts.outbox_sender.close()
        if self.memory:
            await self.memory.close()
        for platform in self._parts.platforms.values():
            await close_platform(platform)
        await self._parts.decoder.close()
        self._parts.events.close()

    def events(
        self, *, place: Place | None = None, run: str | None = None, after: str | None = None
    ) -> AsyncIterator[Event]:
        """Yield events as they happen, of a place or a run if given; with *after*, all since that cursor first."""
        for given, kind in ((place, Place), (run, str), (after, str)):
            if given is not None:
                _require_types(given, kind)
        return self._parts.events.read(place=place, run_id=run, after=after)

    def view(self, place: Place, *, after: View | None = None, most: int = MOST) -> AsyncIterator[ViewUpdate]:
        """Yield the conversation of a place as it stands, then with each event; *after* a view, only with each event.

        A view has the newest *most* messages, runs, deliveries and facts, and the text that streams.
        """
        _require_types(place, Place)
        place = self._parts.aliases.current(place)
        reader = ViewReader(self._parts.store, place, most=most)
        return view_updates(reader, lambda cursor: self._parts.events.read(place=place, after=cursor), after=after)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(self) -> None:
        """Run platforms, workers and memory until SIGTERM or Ctrl-C, or until every platform has ended by itself."""
        async with stop_signals() as stopped:
            if not await runs_before(stopped, self.start()):
                return
            try:
                inboxes = {platform: self.inbox(name) for name, platform in self._parts.platforms.items()}
                await run_platforms(inboxes, until=stopped, sleep=self._parts.sleep, now=self._parts.now)
            finally:
                await self.close()

    @property
    def store(self) -> StoreProtocol:
        """The store of the engine."""
        return self._parts.store

    @property
    def platforms(self) -> Mapping[str, Platform]:
        """The platforms by their names."""
        return self._parts.platforms

    @property
    def health(self) -> Health:
        """What this process knows of its models and platforms."""
        retries = self._executor.retries
        return Health(
            models={model.name: retries.get(model.name) for model in self._models_in_use()},
            platforms={name: platform.trouble for name, platform in self.platforms.items()},
        )

    def inbox(self, platform: str) -> Inbox:
        """Return the inbox of the platform of that name."""
        self._require_platform(platform)
        return PlatformInbox(
            platform,
            self._parts.store.updates,
            self._parts.identity,
            allowed=self._parts.allowed_places,
            keep=self._parts.behavior.keep_updates,
            applied=self._act_on,
            tasks=self._applying,
            now=self._parts.now,
            sleep=self._parts.sleep,
        )

    async def say(self, place: Place, text: str) -> str:
        """Send a text that answers no message; return the id of its delivery. It is stored when this returns.

        Its kind is `notice`. It becomes part of the conversation, unlike the answer to a command.
        """
        self._require_running(place)
        reply = Reply(place=self._parts.identity.with_service(place), text=text)
        _require_types(reply, Reply)
        if not text.strip():
            raise InvalidValue("the text to say is empty")
        item = OutboxItem(
            id=secrets.token_hex(10),
            reply=reply,
            made_at=self._parts.now(),
            kind="notice",
            author=self._parts.identity.author_on(place.platform),
        )
        deliveries = await self._parts.long_replies.split([item])
        await self._parts.store.outbox.put(*deliveries)
        self._parts.outbox_sender.enqueue(deliveries)
        return item.id

    async def receive(self, message: Message) -> bool:
        """Store a message, to be answered; return whether it is new. It is stored when this returns."""
        _require_types(message, Message)
        self._require_running(message.place)
        attributed = self._parts.identity.attribute(message)
        if not self._parts.allowed_places.allows(attributed.place, attributed.author):
            return False
        storing = asyncio.ensure_future(self._parts.store.inbox.receive(attributed, at=self._parts.now()))
        storing.add_done_callback(
            lambda stored: self._on_received(message.place, stored)
        )  # also where the caller is cancelled
        return await asyncio.shield(storing)

    async def edit(self, message: Message) -> bool:
        """Store the new content of a message; return whether it exists."""
        _require_types(message, Message)
        self._require_running(message.place)
        exists = await self._parts.store.inbox.edit(self._parts.identity.attribute(message), at=self._parts.now())
        self._on_edited(message.place)
        return exists

    async def delete(self, place: Place, message_id: str) -> bool:
        """Store that a message was deleted; return whether it exists."""
        self._require_running(place)
        exists = await self._parts.store.inbox.delete(place, message_id, at=self._parts.now())
        self._on_message_change(place)
        return exists

    def stop(self, place: Place) -> None:
        """Stop the run of a place, also one that began before the place migrated. It ends without an answer."""
        _require_types(place, Place)
        place = self._parts.aliases.current(place)
        for one in (place, *self._parts.aliases.former_places(place)):
            self._parts.store.stop_requests.request(one)

    async def _stop_before(self, place: Place, moment: datetime) -> None:
        """Stop the answer that was under way in a place at a moment, and drop what waits to be sent of it."""
        if not await self._commands.stop_answers(self._parts.aliases.current(place), before=moment):
            raise InvalidValue("nothing is being answered there")

    async def give_order(
        self, kind: OrderKind, subject: str = "", *, who: str, place: Place | None = None, service: str = ""
    ) -> Order:
        """Store an order, as the page does, and carry it out; return it as it ended: done, or refused with the reason.

        *subject* is the id of what it is about; a message is named by its *place* too, a person by the *service*.
        """
        order = make_order(kind, subject, who=who, at=self._parts.now(), place=place, service=service)
        _require_types(order, Order)
        return await self._orders.give(order)

    async def retry_run(self, run_id: str) -> None:
        """Let the messages of a failed run be answered once more; raise `InvalidValue` where that cannot be."""
        await self._ordered("retry run", run_id)

    async def hide_message(self, place: Place, message_id: str) -> None:
        """Hide a message, and what was learned from it alone, from all that models are shown from now on."""
        await self._ordered("hide message", message_id, place=place)

    async def hide_episode(self, episode_id: str) -> None:
        """Hide an episode from all that models are shown from now on."""
        await self._ordered("hide episode", episode_id)

    async def _ordered(self, kind: OrderKind, subject: str, *, place: Place | None = None) -> None:
        ended = await self.give_order(kind, subject, who="the program", place=place)
        if ended.status == "refused":
            raise InvalidValue(ended.why)

    async def replay(
        self,
        place: Place,
        *,
        models: Model | Sequence[Model] | None = None,
        persona: Persona | None = None,
        profile: str | Profile | Build | None = None,
        runs: int = REPLAYED,
    ) -> AsyncIterator[ReplayedRun]:
        """Yield the last *runs* of a place as they were, and as they would be with what is given instead.

        Nothing is sent, no tool runs, and nothing is stored but what it has cost. Raise `SpendCapReached` at a cap.
        """
        _require_types(place, Place)
        bot = ChangedBot(
            models=as_models(models) if models else self.models,
            persona=persona,
            profile=None if profile is None else profile_of(profile, self._context),
        )
        run_ids = await runs_to_replay(self.store, self._parts.aliases.current(place), most=runs)
        async with aclosing(self.replayer()) as replayer:
            async for one in replayer.replay_runs(run_ids, bot):
                yield one

    async def send_past_request(
        self, run_id: str, step: int, *, model: Model | None = None, profile: str | Profile | Build | None = None
    ) -> SentAgain:
        """Send a past request to a model, and return its response; its tools do not run, and the log stays as it is."""
        chosen = None if profile is None else profile_of(profile, self._context)
        async with aclosing(self.replayer()) as replayer:
            return await replayer.send(run_id, step, model or self.models[0], profile=chosen)

    def replayer(self) -> Replayer:
        """Return what replays runs of the store with the options of this engine; close it at the end."""
        return self._parts.replayer(self._context, self._zone)

    async def clear(self, place: Place, *, asked_by: Author | None = None) -> None:
        """Start the conversation of a place over: earlier messages stay in the store but enter no prompt.

        With *asked_by*, raise `NotAllowed` in a group unless that person owns or administers it.
        """
        _require_types(place, Place)
        if asked_by is not None:
            _require_types(asked_by, Author)
            await require_right_to_clear(place, asked_by, self._parts.identity.is_administrator)
        await self._parts.store.place_settings.clear(
            place, await self._parts.store.log.count(place), at=self._parts.now()
        )

    async def schedule(self, tasks: Sequence[Task]) -> None:
        """Store tasks, which run when they are due."""
        _require_types(tasks, Sequence)
        for task in tasks:
            _require_types(task, Task)
        await self._parts.store.tasks.add(tasks)
        self._task_worker.wake()

    async def settled(self, *, learned: bool = True) -> None:
        """Wait until no message, command, task or reply is left to process, and memory has learned from all of them.

        With `learned=False` neither memory nor descriptions of media are waited for. Raise `StoreBroken` for a damaged
        file.
        """
        memory = self.memory if learned else None
        described = (self._descriptions.worker,) if learned else ()
        workers = (self._places.tasks, self._commands, self._task_worker, self._parts.outbox_sender)
        parts = (self._applying, *workers, *described)
        while True:
            for part in parts:
                await part.done()
            if memory:
                await memory.done()
            if not any(part.busy for part in parts) and not (memory and memory.busy):
                return

    def _publish_failure(self, run: Run, error: TertuliaError) -> None:
        wait = seconds_to_wait(getattr(error, "retry_after", None))
        why, kind = reason_of(error), type(error).__name__
        if not self._parts.events.has_readers:
            log.warning("run %s failed: %s", run.id, why)
        self._parts.events.publish(RunFailed(place=run.place, run_id=run.id, error=kind, why=why, retry_after=wait))

    def _require_running(self, place: Place) -> None:
        if self._task_loop is None:
            raise InvalidValue("the engine is not started: use `async with Engine(…) as engine:`")
        if not isinstance(place, Place):
            _require_types(place, Place)
        self._require_platform(place.platform)

    def _require_platform(self, name: str) -> None:
        if not isinstance(name, str) or name not in self._parts.platforms:
            there = ", ".join(self._parts.platforms) or "none"
            given = repr(name) if isinstance(name, str) else f"{type(name).__name__}: give its name"
            raise InvalidValue(f"the engine has no platform {given}; there are: {there}")

    async def _on_place_idle(self, worker: PlaceWorker) -> None:
        """Let memory learn from a place whose worker has ended."""
        if self.memory:
            self.memory.wake(worker.place)

    def _act_on(self, changes: Sequence[Change]) -> None:
        """Act on changes that are stored."""
        if self._task_loop is None:
            return
        for change in changes:
            match change:
                case Received(message=message):
                    self._places.wake(message.place)
                case Edited(message=message):
                    self._on_edited(message.place)
                case Deleted(place=place):
                    self._on_message_change(place)
                case PlaceMigrated(old=old, new=new):
                    self._parts.delimiters.clear()
                    self._places.move(old, new)
                case PlaceLeft(place=place):
                    self.stop(place)
                case Stopped(place=place, author=author):
                    self._commands.stop_for(self._parts.aliases.current(place), author)
                case Commanded():
                    self._commands.wake()
                case Reacted() | PlaceJoined():
                    pass
                case _:
                    assert_never(change)

    def _on_edited(self, place: Place) -> None:
        """Wake the place's worker: a message that names us since its edit waits."""
        self._places.wake(place)
        self._on_message_change(place)

    def _on_message_change(self, place: Place) -> None:
        self._places.wake_if_active(place)
        if self.memory:
            self.memory.wake(place)

    def _on_received(self, place: Place, stored: "asyncio.Future[bool]") -> None:
        """Wake the place's worker, also for a duplicate: an earlier `receive` may have been cancelled."""
        if not stored.cancelled() and stored.exception() is None and self._task_loop is not None:
            self._places.wake(place)


def _require_types(value: object, kind: Any) -> None:
    """Raise `InvalidValue` where a field has the wrong type: it could be stored, but not read again."""
    if fault := type_fault(value, kind):
        raise InvalidValue(fault)

"""The engine: stores incoming messages, answers them with a model, and sends the replies, each once."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Self

from tertulia.context.gather import ContextOptions
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.background import BackgroundTasks, EngineClock
from tertulia.engine.behavior import Behavior, require_right_to_clear
from tertulia.engine.describers import Describe
from tertulia.engine.door import PlatformInbox
from tertulia.engine.engine_parts import EngineOptions, EngineParts
from tertulia.engine.health import Health
from tertulia.engine.limits import Limits
from tertulia.engine.memory import Memory
from tertulia.engine.order_worker import make_order
from tertulia.engine.orders import Order, OrderKind
from tertulia.engine.platform_runner import (
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
from tertulia.engine.shared import make_shared
from tertulia.engine.speaker import RunDefaults
from tertulia.engine.store_protocols import OutboxItem, StoreProtocol
from tertulia.engine.task_worker import TaskHandler
from tertulia.engine.view import MOST, View, ViewUpdate
from tertulia.engine.view_reader import ViewReader, view_updates
from tertulia.errors import InvalidValue
from tertulia.events import Event, MemoryBehind
from tertulia.media.values import MediaOptions
from tertulia.messages import Author, Message, Place, PlaceKey, Reply
from tertulia.models.base import Model
from tertulia.models.gemini.cache_values import CachesPrompts
from tertulia.platform import Inbox, Platform
from tertulia.profiles import Build, Profile, profile_of
from tertulia.run.journal import Run
from tertulia.tasks.task import Task
from tertulia.timezones import utc
from tertulia.toolbox.toolbox import Function, Tool, Toolbox
from tertulia.turns import Settings, ToolSpec
from tertulia.type_checks import require_options, type_fault


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
        agents: Sequence[Agent] | Cast = (),
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
        shared = make_shared(
            store, platforms, persona=persona, agents=agents, behavior=behavior, limits=limits, zone=zone, clock=clock
        )
        self._parts = parts = EngineParts(
            shared,
            EngineOptions(
                defaults=RunDefaults(
                    as_models(models),
                    tools if isinstance(tools, Toolbox) else Toolbox(tools),
                    settings or Settings(),
                ),
                profile=profile,
                context=context or ContextOptions(),
                media=media or MediaOptions(),
                memory=memory,
                task_handlers=task_handlers or {},
                describe=describe,
                transcribe=transcribe,
            ),
        )
        self._shared = shared
        parts.require_prices()
        for model in parts.models_in_use:
            if isinstance(model, CachesPrompts):
                model.remember_in(store.model_caches)
        self._background = BackgroundTasks()

    @property
    def models(self) -> tuple[Model, ...]:
        """The model that is called, and its fallbacks. May be set at any time, as `toolbox` and `settings`."""
        return self._parts.speakers.defaults.models

    @models.setter
    def models(self, models: tuple[Model, ...]) -> None:
        self._parts.speakers.defaults.models = models

    @property
    def toolbox(self) -> Toolbox:
        return self._parts.speakers.defaults.toolbox

    @toolbox.setter
    def toolbox(self, toolbox: Toolbox) -> None:
        self._parts.speakers.defaults.toolbox = toolbox

    @property
    def settings(self) -> Settings:
        return self._parts.speakers.defaults.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._parts.speakers.defaults.settings = settings

    @property
    def memory(self) -> Memory | None:
        """What is recalled and learned; None: nothing."""
        return self._parts.options.memory

    @property
    def persona(self) -> Persona:
        """The persona of the agent. May be set at any time; a run that has begun keeps its prompt.

        A text that differs from the one before ends what an owner set by `/persona`.
        """
        return self._shared.identity.persona

    @persona.setter
    def persona(self, persona: Persona) -> None:
        _require_types(persona, Persona)
        self._parts.owner_settings.configure(persona=persona)

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The agents, with those that owners added."""
        return self.cast.agents

    @property
    def cast(self) -> Cast:
        """The agents, and which of them is the default one."""
        return self._shared.identity.cast

    async def set_agents(self, agents: Sequence[Agent] | Cast) -> None:
        """Set the agents while the engine runs. One that is gone says no more, and its tasks are cancelled."""
        cast = agents if isinstance(agents, Cast) else Cast(agents=tuple(agents))
        self._parts.require_prices(cast=cast)
        await self._parts.cast_changes.configure(cast)
        self._parts.owner_settings.configure(persona=cast.default.persona)

    @property
    def limits(self) -> Limits:
        """The limits of the agent. May be set at any time; those that `Engine` would refuse raise `InvalidValue`."""
        return self._shared.limits.value

    @limits.setter
    def limits(self, limits: Limits) -> None:
        _require_types(limits, Limits)
        self._parts.require_prices(limits)
        self._parts.owner_settings.configure(limits=limits)

    async def start(self) -> None:
        """Open the platforms, resume what an earlier process left, and start the workers."""
        parts, shared, store = self._parts, self._shared, self._shared.store
        try:
            utc(shared.now())  # a naive clock is refused before anything is stored
            for platform in shared.platforms.values():
                await open_platform(platform)
            shared.events.start()
            shared.identity.require_accounts()
            await parts.cast_changes.load()
            await parts.owner_settings.load()
            shared.aliases.add(await store.updates.migrated_places())
            await parts.tasks.recover()
            await parts.sender.recover()
            await parts.completion.close_drafts()
            opened: dict[PlaceKey, list[Run]] = {}
            for run in await store.runs.open():
                opened.setdefault(run.place.key, []).append(run)
            for place in [*(runs[0].place for runs in opened.values()), *await store.inbox.places()]:
                if place.platform in shared.platforms and shared.allowed_places.allows(place):
                    parts.workers.wake(place, runs=opened.get(place.key, ()))
            parts.tasks.start()
            parts.commands.wake()
            for work in (parts.orders, parts.retention, parts.handle_removal()):
                self._background.start(work.run())
            self._background.start(parts.workers.listen())
            for platform in shared.platforms.values():
                self._background.start(announce_commands(platform, shared))
            if self.memory:
                self.memory.on_behind(lambda missing: shared.events.publish(MemoryBehind(messages=missing)))
                await self.memory.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop all workers. The next start resumes what they leave."""
        parts = self._parts
        await parts.tasks.stop()
        await self._background.stop()
        await parts.commands.close()
        await parts.owner_settings.close()
        await parts.workers.tasks.stop()
        await parts.describer.worker.close()
        await asyncio.gather(parts.fetcher.close(), parts.attachments.close())
        await parts.tasks.close()  # before the sender, which sends its last replies
        await parts.sender.close()
        if self.memory:
            await self.memory.close()
        for platform in self._shared.platforms.values():
            await close_platform(platform)
        await parts.decoder.close()
        self._shared.events.close()

    def events(
        self, *, place: Place | None = None, run: str | None = None, after: str | None = None
    ) -> AsyncIterator[Event]:
        """Yield events as they happen, of a place or a run if given; with *after*, all since that cursor first."""
        for given, kind in ((place, Place), (run, str), (after, str)):
            if given is not None:
                _require_types(given, kind)
        return self._shared.events.read(place=place, run_id=run, after=after)

    def view(self, place: Place, *, after: View | None = None, most: int = MOST) -> AsyncIterator[ViewUpdate]:
        """Yield the conversation of a place as it stands, then with each event; *after* a view, only with each event.

        A view has the newest *most* messages, runs, deliveries and facts, and the text that streams.
        """
        _require_types(place, Place)
        place = self._shared.aliases.current(place)
        reader = ViewReader(self._shared.store, place, most=most)
        return view_updates(reader, lambda cursor: self._shared.events.read(place=place, after=cursor), after=after)

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
                inboxes = {platform: self.inbox(name) for name, platform in self._shared.platforms.items()}
                await run_platforms(inboxes, until=stopped, sleep=self._shared.sleep, now=self._shared.now)
            finally:
                await self.close()

    @property
    def store(self) -> StoreProtocol:
        """The store of the engine."""
        return self._shared.store

    @property
    def platforms(self) -> Mapping[str, Platform]:
        """The platforms by their names."""
        return self._shared.platforms

    @property
    def health(self) -> Health:
        """What this process knows of its models and platforms."""
        retries = self._parts.executor.retries
        return Health(
            models={model.name: retries.get(model.name) for model in self._parts.models_in_use},
            platforms={name: platform.trouble for name, platform in self.platforms.items()},
        )

    def inbox(self, platform: str) -> Inbox:
        """Return the inbox of the platform of that name."""
        self._require_platform(platform)
        return PlatformInbox(platform, self._parts.door, self._shared)

    async def say(self, place: Place, text: str, *, agent: str = "") -> str:
        """Send a text that answers no message; return the id of its delivery. It is stored when this returns.

        It is said by the agent of that name, by default by the one whose account it is.

        Its kind is `notice`. It becomes part of the conversation, unlike the answer to a command.
        """
        self._require_running(place)
        identity = self._shared.identity
        reply = Reply(place=identity.with_service(place), text=text)
        if agent and identity.cast.get(agent) is None:
            raise InvalidValue(f"no agent is named {agent!r}")
        agent = identity.stored(agent) if agent else identity.account_agent(place.platform)
        _require_types(reply, Reply)
        if not text.strip():
            raise InvalidValue("the text to say is empty")
        item = OutboxItem(
            id=secrets.token_hex(10),
            reply=reply,
            made_at=self._shared.now(),
            kind="notice",
            author=identity.author_in(place, agent),
            agent=agent,
            waits=not identity.cast.is_single,
        )
        deliveries = await self._parts.long_replies.split([item])
        await self._shared.store.outbox.put(*deliveries)
        self._parts.sender.enqueue(deliveries)
        return item.id

    async def receive(self, message: Message) -> bool:
        """Store a message, to be answered; return whether it is new. It is stored when this returns."""
        _require_types(message, Message)
        self._require_running(message.place)
        return await self._parts.door.receive(message)

    async def edit(self, message: Message) -> bool:
        """Store the new content of a message; return whether it exists."""
        _require_types(message, Message)
        self._require_running(message.place)
        return await self._parts.door.edit(message)

    async def delete(self, place: Place, message_id: str) -> bool:
        """Store that a message was deleted; return whether it exists."""
        self._require_running(place)
        return await self._parts.door.delete(place, message_id)

    def stop(self, place: Place) -> None:
        """Stop the run of a place, also one that began before the place migrated. It ends without an answer."""
        _require_types(place, Place)
        self._parts.workers.stop(place)

    async def give_order(
        self, kind: OrderKind, subject: str = "", *, who: str, place: Place | None = None, service: str = ""
    ) -> Order:
        """Store an order, as the page does, and carry it out; return it as it ended: done, or refused with the reason.

        *subject* is the id of what it is about; a message is named by its *place* too, a person by the *service*.
        """
        order = make_order(kind, subject, who=who, at=self._shared.now(), place=place, service=service)
        _require_types(order, Order)
        return await self._parts.orders.give(order)

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
            profile=None if profile is None else profile_of(profile, self._parts.options.context),
        )
        run_ids = await runs_to_replay(self.store, self._shared.aliases.current(place), most=runs)
        async with aclosing(self.replayer()) as replayer:
            async for one in replayer.replay_runs(run_ids, bot):
                yield one

    async def send_past_request(
        self, run_id: str, step: int, *, model: Model | None = None, profile: str | Profile | Build | None = None
    ) -> SentAgain:
        """Send a past request to a model, and return its response; its tools do not run, and the log stays as it is."""
        chosen = None if profile is None else profile_of(profile, self._parts.options.context)
        async with aclosing(self.replayer()) as replayer:
            return await replayer.send(run_id, step, model or self.models[0], profile=chosen)

    def replayer(self) -> Replayer:
        """Return what replays runs of the store with the options of this engine; close it at the end."""
        options = self._parts.options
        return Replayer(self._shared, self._parts.spending, options.context, options.task_handlers)

    async def clear(self, place: Place, *, asked_by: Author | None = None) -> None:
        """Start the conversation of a place over: earlier messages stay in the store but enter no prompt.

        With *asked_by*, raise `NotAllowed` in a group unless that person owns or administers it.
        """
        _require_types(place, Place)
        if asked_by is not None:
            _require_types(asked_by, Author)
            await require_right_to_clear(place, asked_by, self._shared.identity.is_administrator)
        await self._shared.store.place_settings.clear(
            place, await self._shared.store.log.count(place), at=self._shared.now()
        )

    async def schedule(self, tasks: Sequence[Task]) -> None:
        """Store tasks, which run when they are due."""
        _require_types(tasks, Sequence)
        for task in tasks:
            _require_types(task, Task)
        await self._shared.store.tasks.add(tasks)
        self._parts.tasks.wake()

    async def settled(self, *, learned: bool = True) -> None:
        """Wait until no message, command, task or reply is left to process, and memory has learned from all of them.

        With `learned=False` neither memory nor descriptions of media are waited for. Raise `StoreBroken` for a damaged
        file.
        """
        own, memory = self._parts, self.memory if learned else None
        described = (own.describer.worker,) if learned else ()
        parts = (own.door.applying, own.workers.tasks, own.commands, own.tasks, own.sender, *described)
        while True:
            for part in parts:
                await part.done()
            if memory:
                await memory.done()
            if not any(part.busy for part in parts) and not (memory and memory.busy):
                return

    def _require_running(self, place: Place) -> None:
        if not self._parts.tasks.is_started:
            raise InvalidValue("the engine is not started: use `async with Engine(…) as engine:`")
        if not isinstance(place, Place):
            _require_types(place, Place)
        self._require_platform(place.platform)

    def _require_platform(self, name: str) -> None:
        if not isinstance(name, str) or name not in self._shared.platforms:
            there = ", ".join(self._shared.platforms) or "none"
            given = repr(name) if isinstance(name, str) else f"{type(name).__name__}: give its name"
            raise InvalidValue(f"the engine has no platform {given}; there are: {there}")


def _require_types(value: object, kind: Any) -> None:
    """Raise `InvalidValue` where a field has the wrong type: it could be stored, but not read again."""
    if fault := type_fault(value, kind):
        raise InvalidValue(fault)

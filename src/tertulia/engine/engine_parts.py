"""Parts of an engine: how each is made of the others."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct

from tertulia.context.gather import ContextOptions, InMemoryKnowledge
from tertulia.context.values import Persona
from tertulia.engine.admission import Admission
from tertulia.engine.allowed_places import AllowedPlaces
from tertulia.engine.answer_preview import AnswerPreviews
from tertulia.engine.background import EngineClock, Sleep
from tertulia.engine.behavior import Behavior
from tertulia.engine.commands import Commands, no_memory
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.describers import Describe, MediaAccess, makers_of
from tertulia.engine.description_worker import DescriptionWorker
from tertulia.engine.event_stream import EventStream
from tertulia.engine.handle_removal import HandleRemoval
from tertulia.engine.identity import Identity, platforms_by_name
from tertulia.engine.languages.chat_language import ChatLanguage
from tertulia.engine.languages.translator import Translator
from tertulia.engine.limits import CurrentLimits
from tertulia.engine.log_views import VisibleLog
from tertulia.engine.long_replies import LongReplies
from tertulia.engine.media_descriptions import MediaDescriber
from tertulia.engine.memory import Memory
from tertulia.engine.order_worker import OrderWorker
from tertulia.engine.orders import Order, OrderKind
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.owner_commands import OwnerCommands
from tertulia.engine.owner_settings import OwnerSettings
from tertulia.engine.place_worker import RunSetup, WorkerParts
from tertulia.engine.places import DelimiterCache, PlaceAliases
from tertulia.engine.prompt_builder import PromptBuilder
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.replay.replayer import Replayer
from tertulia.engine.retention import Retention
from tertulia.engine.run_completion import RunCompletion
from tertulia.engine.run_executor import RunExecutor
from tertulia.engine.spend_caps import SpendTracker
from tertulia.engine.store_protocols import OutboxItem, StoreProtocol
from tertulia.engine.task_worker import BuiltinTasks, TaskHandler, TaskWorker, block_kinds, block_lines
from tertulia.errors import InvalidValue, TertuliaError
from tertulia.media.addresses import AddressFetcher
from tertulia.media.amounts import MediaAmount
from tertulia.media.attachments import Attachments
from tertulia.media.decoding import Decoder
from tertulia.media.fetcher import MediaFetcher
from tertulia.media.values import MediaOptions
from tertulia.messages import Message, Place
from tertulia.models.base import Model
from tertulia.platform import Platform
from tertulia.profiles import Profile
from tertulia.run.journal import Run
from tertulia.run.outcome import Kinds


def make_parts(
    store: StoreProtocol,
    platforms: Iterable[Platform],
    behavior: Behavior,
    limits: CurrentLimits,
    *,
    persona: Persona | None,
    task_handlers: Mapping[str, TaskHandler] | None,
    media: MediaOptions,
    clock: EngineClock,
) -> "EngineParts":
    """Make the shared parts of an engine."""
    named, aliases, handlers = platforms_by_name(platforms), PlaceAliases(), task_handlers or {}
    identity = Identity(persona or Persona(), named, owners=behavior.owners)
    translator = Translator(behavior, store.place_settings, store.runs, store.log)
    decoder, addresses = Decoder(), AddressFetcher(allowed=media.allowed_addresses)
    fetcher = MediaFetcher(
        store.media, named, addresses=addresses, decoder=decoder, now=clock.now, largest=media.largest
    )
    context_media = ContextMedia(fetcher)
    return EngineParts(
        store=store,
        platforms=named,
        behavior=behavior,
        limits=limits,
        identity=identity,
        owner_settings=OwnerSettings(store.owner_settings, identity, limits, now=clock.now),
        translator=translator,
        aliases=aliases,
        allowed_places=AllowedPlaces(behavior.allowed_places, identity, aliases),
        delimiters=DelimiterCache(store.place_settings.delimiter),
        rate_limiter=RateLimiter(store.rate_limits, limits, now=clock.now),
        outbox_sender=OutboxSender(
            store.outbox,
            named,
            updates=store.updates,
            now=clock.now,
            doubtful=behavior.doubtful_replies,
            sleep=clock.sleep,
            aliases=aliases,
            media=store.media,
            refusal_line=partial(_refusal_line, translator),
        ),
        events=EventStream(store.events),
        spend_tracker=SpendTracker(store.usage, limits, rooms=store.rooms, prices=behavior.prices, now=clock.now),
        task_handlers=handlers,
        kinds=block_kinds(handlers, behavior),
        decoder=decoder,
        attachments=Attachments(store.media, decoder, now=clock.now),
        fetcher=fetcher,
        context_media=context_media,
        long_replies=LongReplies(named, context_media, translator),
        media=media,
        now=clock.now,
        sleep=clock.sleep,
    )


async def _refusal_line(translator: Translator, item: OutboxItem) -> str:
    lines = await translator.lines_for_reply(item)
    return lines.refused_rest if item.part else lines.refused


class EngineParts(Struct, frozen=True, kw_only=True):
    """What several parts of one engine share. Its methods make the parts."""

    store: StoreProtocol
    platforms: Mapping[str, Platform]
    behavior: Behavior
    limits: CurrentLimits
    owner_settings: OwnerSettings
    identity: Identity
    translator: Translator
    aliases: PlaceAliases
    allowed_places: AllowedPlaces
    delimiters: DelimiterCache
    rate_limiter: RateLimiter
    outbox_sender: OutboxSender
    events: EventStream
    spend_tracker: SpendTracker
    task_handlers: Mapping[str, TaskHandler]  # the user's
    kinds: Kinds  # of task blocks that the model may use
    decoder: Decoder
    attachments: Attachments
    fetcher: MediaFetcher
    context_media: ContextMedia
    long_replies: LongReplies
    media: MediaOptions
    now: Callable[[], datetime]
    sleep: Sleep

    def task_worker(self) -> TaskWorker:
        store, identity = self.store, self.identity
        builtin = BuiltinTasks(
            store.place_settings,
            store.facts,
            store.log,
            self.behavior,
            delimiters=self.delimiters,
            is_administrator=identity.is_administrator,
            now=self.now,
        )
        return TaskWorker(
            self.store.tasks,
            {**builtin.handlers, **self.task_handlers},
            platforms=self.platforms,
            me=lambda place: self.identity.author_on(place.platform),
            sent=self.outbox_sender.enqueue,
            now=self.now,
            split=self.long_replies.split,
            end_blocks=self.store.place_settings.end_blocks,
            store_media=self.context_media.add_files_to_task_reply,
            retry=self.behavior.retry,
            sleep=self.sleep,
        )

    def completion(self, *, planned: Callable[[], None], failed: Callable[[Run, TertuliaError], None]) -> RunCompletion:
        return RunCompletion(
            self.store.runs,
            self.store.proposals,
            self.delimiters,
            self.identity,
            self.behavior,
            self.translator,
            self.context_media,
            platforms=self.platforms,
            long_replies=self.long_replies,
            outbox=self.store.outbox,
            sent=self.outbox_sender.enqueue,
            planned=planned,
            now=self.now,
            failed=failed,
        )

    def commands(
        self,
        zone: str,
        *,
        memory: Memory | None,
        stop: Callable[[Place], None],
        answered: Callable[[Place], Message | None],
        planned: Callable[[], None],
    ) -> Commands:
        owner_commands = OwnerCommands(
            self.store,
            self.identity,
            self.limits,
            settings=self.owner_settings,
            prices=self.behavior.prices,
            zone=zone,
            now=self.now,
        )
        return Commands(
            self.store,
            self.identity,
            self.translator,
            owner_commands,
            platforms=self.platforms,
            zone=zone,
            rate_limiter=self.rate_limiter,
            learned=memory.done if memory else no_memory,
            stop=stop,
            answered=answered,
            sent=self.outbox_sender.enqueue,
            planned=planned,
            now=self.now,
            sleep=self.sleep,
        )

    def _media_access(self) -> MediaAccess:
        return MediaAccess(self.store.media, fetcher=self.fetcher, attacher=self.attachments, now=self.now)

    def describer(
        self, describe: Describe | None, transcribe: Describe | None, *, memory: Memory | None
    ) -> MediaDescriber:
        known, access = self.store.descriptions, self._media_access()
        makers = makers_of(
            describe,
            transcribe,
            access,
            spend_tracker=self.spend_tracker,
            limits=self.limits,
            language=ChatLanguage(self.store.log, self.translator.language_for).language_for,
        )
        described = memory.wake if memory else lambda _: None  # memory indexes the message by it
        worker = DescriptionWorker(known, makers, limits=self.limits, now=self.now, described=described)
        return MediaDescriber(known, makers, worker, per_run=self.media.descriptions_per_run)

    def prompt_builder(
        self,
        profile: Profile,
        describer: MediaDescriber,
        *,
        memory: Memory | None,
        options: ContextOptions,
        zone: str,
    ) -> PromptBuilder:
        return PromptBuilder(
            VisibleLog(self.store.log, self.store.place_settings.blocked),
            memory.knowledge if memory else InMemoryKnowledge(),
            self.delimiters,
            self.identity,
            describer,
            self.context_media,
            profile=profile,
            options=options,
            zone=zone,
            now=self.now,
            task_blocks=block_lines(self.task_handlers, self.kinds, self.behavior),
        )

    def executor(
        self, completion: RunCompletion, *, tool_ended: Callable[[], None], media_limits: MediaAmount
    ) -> RunExecutor:
        previews = AnswerPreviews(
            self.platforms, self.store.outbox, is_idle=self.outbox_sender.is_idle, now=self.now, sleep=self.sleep
        )
        return RunExecutor(
            self.store.runs,
            completion,
            kinds=self.kinds,
            now=self.now,
            tool_ended=tool_ended,
            behavior=self.behavior,
            limits=self.limits,
            events=self.events,
            delimiter=self.delimiters.get,
            previews=previews,
            attachments=self.attachments,
            media_limits=media_limits,
            store_media=self.context_media.add_files_to_result,
            sleep=self.sleep,
        )

    def order_worker(
        self,
        *,
        stop: Callable[[Place, datetime], Awaitable[None]],
        woken: Callable[[Place], None],
        planned: Callable[[], None],
    ) -> OrderWorker:
        store = self.store

        async def stop_place(order: Order) -> None:
            if order.place is None:
                raise InvalidValue("the order names no place")
            await stop(order.place, order.at)

        async def forget_person(order: Order) -> None:
            await store.forget(platform=order.service, author_id=order.subject, at=self.now())

        async def done(order: Order) -> None:
            if order.kind == "send reply":
                waiting = await store.outbox.listed("waiting")
                self.outbox_sender.enqueue(item for item in waiting if item.id == order.subject)
            elif order.kind == "retry run" and (journal := await store.runs.journal(order.subject)):
                woken(journal.run.place)
            elif order.kind == "cancel task":
                planned()

        actions: Mapping[OrderKind, Callable[[Order], Awaitable[None]]] = {
            "stop place": stop_place,
            "forget person": forget_person,
        }
        retries = self.outbox_sender.enqueue_retries
        return OrderWorker(store.orders, actions=actions, done=done, retries=retries, now=self.now)

    def replayer(self, options: ContextOptions, zone: str) -> Replayer:
        return Replayer(
            self.store,
            self.spend_tracker,
            persona=self.identity.persona,
            context=options,
            behavior=self.behavior,
            limits=self.limits,
            zone=zone,
            handlers=self.task_handlers,
            sleep=self.sleep,
        )

    def retention(self) -> Retention:
        store = self.store
        return Retention(store.prompts, store.updates, store.media, self.behavior, options=self.media, now=self.now)

    def handle_removal(self, models: Sequence[Model]) -> HandleRemoval:
        return HandleRemoval(self.store.media, models, now=self.now, caches=self.store.model_caches)

    def worker_parts(
        self, setup: RunSetup, prompt_builder: PromptBuilder, executor: RunExecutor, completion: RunCompletion
    ) -> WorkerParts:
        store, behavior = self.store, self.behavior
        return WorkerParts(
            store=store,
            setup=setup,
            behavior=behavior,
            rate_limiter=self.rate_limiter,
            admission=Admission(
                store.log, store.inbox, store.place_settings, self.identity, behavior, self.rate_limiter
            ),
            confirmations=Confirmations(store.proposals, self.identity, behavior, now=self.now),
            spend_tracker=self.spend_tracker,
            prompt_builder=prompt_builder,
            executor=executor,
            completion=completion,
            events=self.events,
            slots=asyncio.Semaphore(behavior.max_runs),
            resumed=set(),
            now=self.now,
            sleep=self.sleep,
        )

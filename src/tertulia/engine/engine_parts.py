"""Parts of an engine, each made of those above it."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tertulia.context.gather import ContextOptions, InMemoryKnowledge
from tertulia.context.media_budget import request_limits
from tertulia.engine.admission import Admission
from tertulia.engine.agent_commands import AgentCommands
from tertulia.engine.agents.agent import Cast
from tertulia.engine.answer_preview import AnswerPreviews
from tertulia.engine.cast_changes import CastChanges
from tertulia.engine.checks import AuthorRate, Confirmed, SpendCaps
from tertulia.engine.commands import Commands
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.describers import Describe, Makers, MediaAccess, models_of_describer
from tertulia.engine.description_worker import DescriptionWorker
from tertulia.engine.door import Door
from tertulia.engine.languages.chat_language import ChatLanguage
from tertulia.engine.limits import Limits
from tertulia.engine.log_views import VisibleLog
from tertulia.engine.media_descriptions import MediaDescriber
from tertulia.engine.memory import Memory
from tertulia.engine.order_worker import OrderWorker
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.owner_commands import OwnerCommands
from tertulia.engine.owner_settings import OwnerSettings
from tertulia.engine.place_worker import PlaceWorkers, WorkerParts
from tertulia.engine.prompt_builder import PromptLayout, PromptSources
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.reply_parts import LongReplies
from tertulia.engine.retention import HandleRemoval, Retention
from tertulia.engine.run_completion import RunCompletion
from tertulia.engine.run_executor import RunExecutor
from tertulia.engine.shared import Shared
from tertulia.engine.speaker import RunDefaults, Speakers
from tertulia.engine.spend_caps import SpendTracker
from tertulia.engine.task_worker import TaskHandler, TaskWorker, block_kinds, block_lines
from tertulia.media.addresses import AddressFetcher
from tertulia.media.attachments import Attachments
from tertulia.media.decoding import Decoder
from tertulia.media.fetcher import MediaFetcher
from tertulia.media.values import MediaOptions
from tertulia.models.base import Model
from tertulia.profiles import Build, Profile, profile_of
from tertulia.run.outcome import Kinds


class EngineOptions(Struct, frozen=True, kw_only=True, eq=False):
    """What an engine was made with, beside what its parts share."""

    defaults: RunDefaults
    profile: str | Profile | Build
    context: ContextOptions
    media: MediaOptions
    memory: Memory | None
    task_handlers: Mapping[str, TaskHandler]
    describe: Describe | None
    transcribe: Describe | None


class EngineParts:
    """The parts of one engine."""

    def __init__(self, shared: Shared, options: EngineOptions) -> None:
        store, behavior, now, memory = shared.store, shared.behavior, shared.now, options.memory
        self.shared, self.options = shared, options
        self.owner_settings = OwnerSettings(shared)
        self.spending = SpendTracker(store.usage, shared.limits, rooms=store.rooms, prices=behavior.prices, now=now)
        if memory:
            memory.charge(self.spending)
        self.decoder = Decoder()
        self.attachments = Attachments(store.media, self.decoder, now=now)
        self.fetcher = MediaFetcher(
            store.media,
            shared.platforms,
            addresses=AddressFetcher(allowed=options.media.allowed_addresses),
            decoder=self.decoder,
            now=now,
            largest=options.media.largest,
        )
        media = ContextMedia(self.fetcher)
        long_replies = LongReplies(shared.platforms, media, shared.translator)
        self.sender = OutboxSender(shared)
        self.tasks = TaskWorker(shared, options.task_handlers, long_replies, self.sender)
        self.long_replies = long_replies
        self.completion = RunCompletion(shared, long_replies, self.sender, self.tasks)
        self.describer = self._describer()
        kinds = block_kinds(options.task_handlers, behavior)
        self.speakers = self._speakers(media, kinds)
        if memory:
            memory.use_agents(shared.agent_places.seen_by)
        self.executor = RunExecutor(
            shared,
            self.completion,
            AnswerPreviews(shared, self.sender),
            self.tasks,
            kinds=kinds,
            attachments=self.attachments,
            media=media,
            media_limits=request_limits(options.context.budget),
        )
        limiter = RateLimiter(store.rate_limits, shared.limits, now=now)
        self.workers = self._workers(limiter)
        self.cast_changes = CastChanges(shared, self.workers, self.sender)
        self.commands = Commands(
            shared,
            OwnerCommands(shared, self.owner_settings),
            AgentCommands(shared, self.cast_changes),
            limiter,
            self.workers,
            self.sender,
            self.tasks,
            memory,
        )
        self.orders = OrderWorker(shared, self.commands, self.workers, self.sender, self.tasks)
        self.door = Door(shared, self.workers, self.commands, self.tasks, memory)
        self.retention = Retention(store.prompts, store.updates, store.media, behavior, options=options.media, now=now)

    def _speakers(self, media: ContextMedia, kinds: Kinds) -> Speakers:
        shared, options, store = self.shared, self.options, self.shared.store
        return Speakers(
            shared,
            options.defaults,
            PromptSources(
                messages=VisibleLog(store.log, store.place_settings.blocked),
                knowledge=InMemoryKnowledge(),  # where there is no memory
                describer=self.describer,
                media=media,
            ),
            PromptLayout(
                profile=profile_of(options.profile, options.context),
                options=options.context,
                task_blocks=block_lines(options.task_handlers, kinds, shared.behavior),
            ),
            options.memory,
        )

    def _workers(self, limiter: RateLimiter) -> PlaceWorkers:
        shared, confirmations = self.shared, Confirmations(self.shared)
        rate = AuthorRate(shared, limiter, self.completion)
        return PlaceWorkers(
            WorkerParts(
                shared=shared,
                speakers=self.speakers,
                memory=self.options.memory,
                admission=Admission(shared, limiter, confirmations),
                rate=rate,
                checks=(
                    Confirmed(shared, confirmations, self.completion),
                    rate,
                    SpendCaps(shared, self.spending, self.completion),
                ),
                executor=self.executor,
                completion=self.completion,
                sender=self.sender,
                slots=asyncio.Semaphore(shared.behavior.max_runs),
            )
        )

    def _describer(self) -> MediaDescriber:
        shared, options, store = self.shared, self.options, self.shared.store
        makers = Makers(
            options.describe,
            options.transcribe,
            MediaAccess(store.media, fetcher=self.fetcher, attacher=self.attachments, now=shared.now),
            spend_tracker=self.spending,
            limits=shared.limits,
            language=ChatLanguage(store.log, shared.translator.language_for).language_for,
        )
        described = options.memory.wake if options.memory else lambda _: None  # memory indexes the message by it
        worker = DescriptionWorker(
            store.descriptions, makers, limits=shared.limits, now=shared.now, described=described
        )
        return MediaDescriber(makers, worker, per_run=options.media.descriptions_per_run)

    @property
    def models_in_use(self) -> Sequence[Model]:
        memory = self.options.memory
        return [*self.speakers.models, *models_of_describer(self.options.describe), *(memory.models if memory else ())]

    def require_prices(self, limits: Limits | None = None, cast: Cast | None = None) -> None:
        """Raise `InvalidValue` if money is capped, also by an agent, and a model that may be asked has no price."""
        self.spending.require_prices(self.models_in_use, limits)
        for agent in (cast or self.shared.identity.cast).agents:
            self.spending.require_prices(agent.models, limits)
            if agent.limits:
                self.spending.require_prices(agent.models or self.speakers.defaults.models, agent.limits)

    def handle_removal(self) -> HandleRemoval:
        store = self.shared.store
        return HandleRemoval(store.media, self.models_in_use, now=self.shared.now, caches=store.model_caches)

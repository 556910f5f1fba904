"""The parts of an engine, and how they are put together."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from palaver.config import Config
from palaver.context.budget import Budget
from palaver.context.in_memory import InMemoryKnowledge
from palaver.context.sources import AnySource
from palaver.engine.admission import Admission
from palaver.engine.answer_preview import AnswerPreviews
from palaver.engine.background import Sleep
from palaver.engine.behavior import Behavior
from palaver.engine.builtin_tasks import BuiltinTasks
from palaver.engine.commands import Commands
from palaver.engine.confirmation import Confirmations
from palaver.engine.delimiters import DelimiterCache
from palaver.engine.event_stream import EventStream
from palaver.engine.identity import Identity
from palaver.engine.log_views import VisibleLog
from palaver.engine.media_descriptions import Describe, MediaDescriber
from palaver.engine.memory import Memory
from palaver.engine.outbox_sender import OutboxSender
from palaver.engine.place_worker import RunSetup, WorkerParts
from palaver.engine.prompt_builder import PromptBuilder
from palaver.engine.rate_limit import RateLimiter
from palaver.engine.run_completion import RunCompletion
from palaver.engine.run_executor import RunExecutor
from palaver.engine.spend_caps import SpendTracker
from palaver.engine.store_protocols import StoreProtocol
from palaver.engine.task_worker import TaskHandler, TaskWorker, block_lines
from palaver.errors import PalaverError
from palaver.messages import Place
from palaver.platform import Platform
from palaver.profiles import Profile
from palaver.run.journal import Run
from palaver.run.outcome import Kinds


class EngineParts(Struct, frozen=True, kw_only=True):
    """What several parts of one engine use. Its methods make the parts."""

    store: StoreProtocol
    platforms: Mapping[str, Platform]
    behavior: Behavior
    identity: Identity
    delimiters: DelimiterCache
    rate_limiter: RateLimiter
    outbox_sender: OutboxSender
    events: EventStream
    spend_tracker: SpendTracker
    now: Callable[[], datetime]
    sleep: Sleep

    def task_worker(self, task_handlers: Mapping[str, TaskHandler]) -> TaskWorker:
        store, identity = self.store, self.identity
        builtin = BuiltinTasks(
            store.place_settings,
            store.facts,
            store.log,
            self.behavior,
            delimiters=self.delimiters,
            administers=identity.administers,
            now=self.now,
        )
        return TaskWorker(
            self.store.tasks,
            {**builtin.handlers, **task_handlers},
            platforms=self.platforms,
            me=lambda place: self.identity.author_on(place.platform),
            sent=self.outbox_sender.take,
            now=self.now,
            retry=self.behavior.retry,
            sleep=self.sleep,
        )

    def completion(self, *, planned: Callable[[], None], failed: Callable[[Run, PalaverError], None]) -> RunCompletion:
        return RunCompletion(
            self.store.runs,
            self.store.proposals,
            self.store.log,
            self.delimiters,
            self.identity,
            self.behavior,
            platforms=self.platforms,
            outbox=self.store.outbox,
            sent=self.outbox_sender.take,
            planned=planned,
            now=self.now,
            failed=failed,
        )

    def commands(
        self,
        zone: str,
        *,
        learned: Callable[[], Awaitable[None]],
        stop: Callable[[Place], None],
        planned: Callable[[], None],
    ) -> Commands:
        return Commands(
            self.store,
            self.identity,
            platforms=self.platforms,
            zone=zone,
            rate_limiter=self.rate_limiter,
            learned=learned,
            stop=stop,
            sent=self.outbox_sender.take,
            planned=planned,
            now=self.now,
            sleep=self.sleep,
        )

    def prompt_builder(
        self,
        profile: Profile,
        *,
        memory: Memory | None,
        describe: Describe | None,
        config: Config,
        zone: str,
        budget: Budget,
        sources: Iterable[AnySource],
        task_handlers: Mapping[str, TaskHandler],
        kinds: Kinds,
    ) -> PromptBuilder:
        timeout = self.behavior.call_timeout
        return PromptBuilder(
            VisibleLog(self.store.log, self.store.place_settings.blocked),
            memory.knowledge if memory else InMemoryKnowledge(),
            self.delimiters,
            self.identity,
            MediaDescriber(
                self.store.descriptions, describe, spend_tracker=self.spend_tracker, timeout=timeout, now=self.now
            ),
            profile=profile,
            config=config,
            zone=zone,
            now=self.now,
            budget=budget,
            extra=tuple(sources),
            task_blocks=block_lines(task_handlers, kinds),
        )

    def executor(self, completion: RunCompletion, *, kinds: Kinds, tool_ended: Callable[[], None]) -> RunExecutor:
        previews = AnswerPreviews(
            self.platforms, self.store.outbox, is_idle=self.outbox_sender.is_idle, now=self.now, sleep=self.sleep
        )
        return RunExecutor(
            self.store.runs,
            completion,
            kinds=kinds,
            now=self.now,
            tool_ended=tool_ended,
            behavior=self.behavior,
            events=self.events,
            delimiter=self.delimiters.get,
            previews=previews,
            sleep=self.sleep,
        )

    def worker_parts(
        self, setup: RunSetup, prompt_builder: PromptBuilder, executor: RunExecutor, completion: RunCompletion
    ) -> WorkerParts:
        store, behavior = self.store, self.behavior
        return WorkerParts(
            store=store,
            setup=setup,
            behavior=behavior,
            rate_limiter=self.rate_limiter,
            admission=Admission(store.log, store.place_settings, self.identity, behavior, self.rate_limiter),
            confirmations=Confirmations(store.proposals, self.identity, behavior, now=self.now),
            spend_tracker=self.spend_tracker,
            prompt_builder=prompt_builder,
            executor=executor,
            completion=completion,
            events=self.events,
            slots=asyncio.Semaphore(behavior.at_once),
            resumed=set(),
            now=self.now,
            sleep=self.sleep,
        )

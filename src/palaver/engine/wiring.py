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
from palaver.engine.event_stream import EventStream
from palaver.engine.identity import Identity
from palaver.engine.log_views import VisibleLog
from palaver.engine.media_descriptions import Describe, MediaDescriber
from palaver.engine.memory import Memory
from palaver.engine.outbox_sender import OutboxSender
from palaver.engine.place_worker import RunSetup, WorkerParts
from palaver.engine.prompt_builder import PromptBuilder
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
    selves: Identity
    duties: BuiltinTasks
    courier: OutboxSender
    events: EventStream
    spending: SpendTracker
    now: Callable[[], datetime]
    sleep: Sleep

    def task_worker(self, task_handlers: Mapping[str, TaskHandler]) -> TaskWorker:
        return TaskWorker(
            self.store.tasks,
            {**self.duties.task_handlers, **task_handlers},
            platforms=self.platforms,
            me=lambda place: self.selves.author_on(place.platform),
            sent=self.courier.take,
            now=self.now,
            retry=self.behavior.retry,
            sleep=self.sleep,
        )

    def endings(self, *, planned: Callable[[], None], failed: Callable[[Run, PalaverError], None]) -> RunCompletion:
        return RunCompletion(
            self.store.runs,
            self.store.proposals,
            self.store.log,
            self.duties,
            self.selves,
            self.behavior,
            platforms=self.platforms,
            outbox=self.store.outbox,
            sent=self.courier.take,
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
            self.duties,
            self.selves,
            platforms=self.platforms,
            zone=zone,
            limit=self.behavior.limit,
            learned=learned,
            stop=stop,
            sent=self.courier.take,
            planned=planned,
            now=self.now,
            sleep=self.sleep,
        )

    def prompter(
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
            self.duties,
            self.selves,
            MediaDescriber(self.store.descriptions, describe, spending=self.spending, timeout=timeout, now=self.now),
            profile=profile,
            config=config,
            zone=zone,
            now=self.now,
            budget=budget,
            extra=tuple(sources),
            task_blocks=block_lines(task_handlers, kinds),
        )

    def answerer(self, endings: RunCompletion, *, kinds: Kinds, tool_ended: Callable[[], None]) -> RunExecutor:
        previews = AnswerPreviews(
            self.platforms, self.store.outbox, is_idle=self.courier.is_idle, now=self.now, sleep=self.sleep
        )
        return RunExecutor(
            self.store.runs,
            endings,
            kinds=kinds,
            now=self.now,
            tool_ended=tool_ended,
            behavior=self.behavior,
            events=self.events,
            delimiter=self.duties.delimiter,
            previews=previews,
            sleep=self.sleep,
        )

    def worker_parts(
        self, setup: RunSetup, prompter: PromptBuilder, answerer: RunExecutor, endings: RunCompletion
    ) -> WorkerParts:
        store, behavior = self.store, self.behavior
        return WorkerParts(
            store=store,
            setup=setup,
            behavior=behavior,
            judge=Admission(store.log, self.duties, self.selves, behavior, store.rate_limits),
            confirmations=Confirmations(store.proposals, self.selves, behavior, now=self.now),
            spending=self.spending,
            prompter=prompter,
            answerer=answerer,
            endings=endings,
            events=self.events,
            slots=asyncio.Semaphore(behavior.at_once),
            resumed=set(),
            now=self.now,
            sleep=self.sleep,
        )

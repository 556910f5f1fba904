"""The parts of an engine, and how they are put together."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from palaver.config import Config
from palaver.context.budget import Budget
from palaver.context.in_memory import Remembered
from palaver.context.sources import AnySource
from palaver.engine.admission import Judge
from palaver.engine.answer_preview import AnswerPreviews
from palaver.engine.background import Sleep
from palaver.engine.behavior import Conduct
from palaver.engine.builtin_tasks import Duties
from palaver.engine.commands import Commands
from palaver.engine.confirmation import Confirmations
from palaver.engine.event_stream import EventStream
from palaver.engine.identity import Selves
from palaver.engine.log_views import Heard
from palaver.engine.media_descriptions import Describe, Describer
from palaver.engine.memory import Memory
from palaver.engine.outbox_sender import Courier
from palaver.engine.place_worker import RunSetup, WorkerParts
from palaver.engine.prompt_builder import Prompter
from palaver.engine.run_completion import Endings
from palaver.engine.run_executor import Answerer
from palaver.engine.spend_caps import Spending
from palaver.engine.store_protocols import Kept
from palaver.engine.task_worker import Work, Worker, block_lines
from palaver.errors import PalaverError
from palaver.messages import Place
from palaver.platform import Platform
from palaver.profiles import Profile
from palaver.run.journal import Run
from palaver.run.outcome import Kinds


class EngineParts(Struct, frozen=True, kw_only=True):
    """What several parts of one engine use. Its methods make the parts."""

    store: Kept
    platforms: Mapping[str, Platform]
    conduct: Conduct
    selves: Selves
    duties: Duties
    courier: Courier
    events: EventStream
    spending: Spending
    now: Callable[[], datetime]
    sleep: Sleep

    def task_worker(self, works: Mapping[str, Work]) -> Worker:
        return Worker(
            self.store.tasks,
            {**self.duties.works, **works},
            platforms=self.platforms,
            me=lambda place: self.selves.author_on(place.platform),
            sent=self.courier.take,
            now=self.now,
            retry=self.conduct.retry,
            sleep=self.sleep,
        )

    def endings(self, *, planned: Callable[[], None], failed: Callable[[Run, PalaverError], None]) -> Endings:
        return Endings(
            self.store.runs,
            self.store.proposals,
            self.store.log,
            self.duties,
            self.selves,
            self.conduct,
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
            limit=self.conduct.limit,
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
        works: Mapping[str, Work],
        kinds: Kinds,
    ) -> Prompter:
        timeout = self.conduct.call_timeout
        return Prompter(
            Heard(self.store.log, self.store.place_settings.blocked),
            memory.knowledge if memory else Remembered(),
            self.duties,
            self.selves,
            Describer(self.store.descriptions, describe, spending=self.spending, timeout=timeout, now=self.now),
            profile=profile,
            config=config,
            zone=zone,
            now=self.now,
            budget=budget,
            extra=tuple(sources),
            task_blocks=block_lines(works, kinds),
        )

    def answerer(self, endings: Endings, *, kinds: Kinds, tool_ended: Callable[[], None]) -> Answerer:
        previews = AnswerPreviews(
            self.platforms, self.store.outbox, is_idle=self.courier.is_idle, now=self.now, sleep=self.sleep
        )
        return Answerer(
            self.store.runs,
            endings,
            kinds=kinds,
            now=self.now,
            tool_ended=tool_ended,
            conduct=self.conduct,
            events=self.events,
            delimiter=self.duties.delimiter,
            previews=previews,
            sleep=self.sleep,
        )

    def worker_parts(self, setup: RunSetup, prompter: Prompter, answerer: Answerer, endings: Endings) -> WorkerParts:
        store, conduct = self.store, self.conduct
        return WorkerParts(
            store=store,
            setup=setup,
            conduct=conduct,
            judge=Judge(store.log, self.duties, self.selves, conduct, store.rate_limits),
            confirmations=Confirmations(store.proposals, self.selves, conduct, now=self.now),
            spending=self.spending,
            prompter=prompter,
            answerer=answerer,
            endings=endings,
            events=self.events,
            slots=asyncio.Semaphore(conduct.at_once),
            resumed=set(),
            now=self.now,
            sleep=self.sleep,
        )

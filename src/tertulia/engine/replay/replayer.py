"""Replayer: past runs on a changed bot, past requests to another model, in another profile, or checked.

It uses the parts of an engine: the context is gathered, laid out, and run by the same code, over a view of the past.
There is no platform to send by, tools are answered from the journal, and nothing is stored but what it has spent.
"""

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from tertulia.context.gather import ContextOptions
from tertulia.context.media_budget import request_limits
from tertulia.context.values import Persona
from tertulia.engine.agent_places import AgentPlaces
from tertulia.engine.agents.agent import cast_of_one
from tertulia.engine.background import RealClock
from tertulia.engine.batches import Batch
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.identity import Identity
from tertulia.engine.media_descriptions import StoredDescriptions
from tertulia.engine.memory.recall import MessageRecall
from tertulia.engine.places import DelimiterCache
from tertulia.engine.prompt_builder import PromptBuilder, PromptLayout, PromptSources
from tertulia.engine.rebuilt_request import rebuild_request
from tertulia.engine.replay.past import ReadMedia, past_descriptions
from tertulia.engine.replay.past_runs import MOST_CALLS, PastRun, past_run
from tertulia.engine.replay.recorded_tools import RecordedTools
from tertulia.engine.replay.rendering import RenderedModel, as_rendered, encode_for
from tertulia.engine.replay.values import (
    Answered,
    ChangedBot,
    Rendered,
    ReplayedRun,
    RequestCheck,
    SentAgain,
    spent_by,
)
from tertulia.engine.shared import Shared
from tertulia.engine.spend_caps import SpendTracker
from tertulia.engine.store_protocols import PlaceSnapshot
from tertulia.engine.task_worker import TaskHandler, block_kinds, block_lines
from tertulia.errors import InvalidValue, MediaUnavailable, PromptRemoved, SpendCapReached, TertuliaError, reason_of
from tertulia.media.addresses import AddressFetcher, Fetched
from tertulia.media.attachments import Attachments
from tertulia.media.decoding import Decoder
from tertulia.media.fetcher import MediaFetcher
from tertulia.memory.embeddings import Embedder, RemoteEmbedder, find_embedder
from tertulia.messages import Author, Place
from tertulia.models.base import Model, Response, UploadsFiles
from tertulia.models.calls import Call, priced
from tertulia.platform import Delivery, Inbox, Platform
from tertulia.profiles import Profile, profile_of
from tertulia.prompt.escape import markup
from tertulia.run.journal import FallbackStep, InMemoryJournal, Journal, Run
from tertulia.run.loop import RunLoop, RunOptions, append_turns
from tertulia.run.model_calls import ModelCalls
from tertulia.run.outcome import ParsedTexts, run_outcome
from tertulia.run.run_host import AttachesMedia, RunHost
from tertulia.turns import Prompt, Record, Settings

log = logging.getLogger(__name__)

PROFILE = "layered"  # of the conversation of a document
NO_WIRE = "its model was not asked over a wire"
CAPPED = "nothing more is replayed today: a spend cap is reached"


class _NoPlatform(Platform):
    """Our account where a run was; it neither sends nor fetches."""

    def __init__(self, place: Place, me: Author) -> None:
        self.name = place.platform
        self.me = me

    async def run(self, inbox: Inbox) -> None:
        """Apply nothing."""

    async def send(self, delivery: Delivery) -> str:
        raise InvalidValue("a replay sends nothing")


class _NoAddresses(AddressFetcher):
    async def fetch(self, url: str, *, limit: int) -> Fetched:
        raise MediaUnavailable("a replay fetches nothing", for_now=True)


class _ReplayHost(RunHost):
    """What the loop of a replayed run asks."""

    def __init__(self, attachments: AttachesMedia, texts: ParsedTexts) -> None:
        super().__init__(attachments=attachments)
        self._texts = texts

    async def correction(self, response: Response) -> str | None:
        return self._texts.correction(response)


class _CountedJournal(InMemoryJournal):
    """Counts the calls of a run for its place, outside of its journal; raises `SpendCapReached` before a next step."""

    def __init__(self, spending: SpendTracker, past: PastRun) -> None:
        self.calls: list[Call] = []
        self._spending = spending
        self._past = past

    async def ask(
        self, run: Run, step: int, prompt: Prompt, *, at: datetime, tried: FallbackStep | None = None
    ) -> None:
        await require_budget(self._spending, run.place)

    async def add_record(self, run: Run, step: int, record: Record, *, call: Call | None = None) -> None:
        if call:
            await self.add_call(run, call)

    async def add_call(self, run: Run, call: Call) -> None:
        self.calls.append(call)
        await self._spending.count(_replayed(call), self._past.charged, None)


def _replayed(call: Call) -> Call:
    """Return a call as it is counted: it belongs to no run."""
    return replace(call, purpose="replay", run=None, step=None)


async def require_budget(spending: SpendTracker, place: Place) -> None:
    """Raise `SpendCapReached` where a cap of a place, or on everything, is reached; nobody in particular asks."""
    if await spending.is_reached(place, None):
        raise SpendCapReached(CAPPED)


class Replayer:
    """Replays runs of a store, one at a time. *spending* counts what it asks, and holds it to the caps."""

    def __init__(
        self,
        shared: Shared,
        spending: SpendTracker,
        context: ContextOptions,
        handlers: Mapping[str, TaskHandler] | None = None,
    ) -> None:
        self._shared = shared
        self._spending = spending
        self._context = context
        self._handlers = handlers or {}
        self._kinds = block_kinds(self._handlers, self._shared.behavior)
        self._media = ReadMedia(shared.store.media)
        self._decoder = Decoder()
        self._attachments = Attachments(self._media, self._decoder, now=spending.now)
        self._moment = spending.now()  # of the run whose context is gathered
        self._search = MessageRecall(shared.store.index_reader, embedders=_free_embedder, now=lambda: self._moment)
        self._asked: dict[str, Model] = {}  # by their accounts, where files may be uploaded

    async def aclose(self) -> None:
        """Delete what was uploaded, and end the processes that decode."""
        await self._attachments.close()
        for handle in self._media.uploaded:
            if isinstance(model := self._asked.get(handle.account), UploadsFiles):
                with suppress(TertuliaError):
                    await model.delete_file(handle.name)
        await self._decoder.close()

    @property
    def persona(self) -> Persona:
        """The persona that the bot has now."""
        return self._shared.identity.persona

    def profile_named(self, name: str | None) -> Profile | None:
        """Return the profile of that name with the options of the bot."""
        return None if name is None else profile_of(name, self._context)

    async def past(self, run_id: str) -> PastRun:
        """Return a run of the store; raise `InvalidValue` where it cannot be replayed."""
        return await past_run(self._shared.store, run_id, search=self._search)

    async def checks(self, run_id: str) -> tuple[RequestCheck, ...]:
        """Rebuild the requests that a run sent over a wire; say of each whether it is as it was, byte for byte."""
        try:
            steps = {sent.step: sent for sent in await self._shared.store.prompts.sent_by(run_id)}
        except PromptRemoved as error:
            return (RequestCheck(run=run_id, step=0, attempt=1, is_same=False, why=str(error)),)
        calls = await self._shared.store.usage.calls(run=run_id, most=MOST_CALLS)
        sent = [one for one in calls if one.call.request and one.call.request.wire and one.call.step in steps]
        checks = []
        for one in sent:
            step, attempt = one.call.step or 0, one.call.attempt
            rebuilt = await rebuild_request(self._shared.store, steps[step], one)
            checks.append(
                RequestCheck(run=run_id, step=step, attempt=attempt, is_same=rebuilt.is_same, why=rebuilt.why)
            )
        return tuple(checks)

    async def replay_runs(self, run_ids: Iterable[str], bot: ChangedBot) -> AsyncGenerator[ReplayedRun, None]:
        """Yield each run as it was, and as it would be; of one that cannot be replayed, why."""
        for run_id in run_ids:
            try:
                past = await self.past(run_id)
            except (InvalidValue, PromptRemoved) as error:
                found = await self._shared.store.inspection.runs(ids=[run_id], most=1)
                for one in found:
                    run, why = one.run, Answered(error=str(error))
                    yield ReplayedRun(run=run.id, place=run.place, at=run.began_at, asked=(), before=why, after=why)
                continue
            yield await self.replay(past, bot)

    async def replay(self, past: PastRun, bot: ChangedBot) -> ReplayedRun:
        """Return a run as it was, and as it would be; raise `SpendCapReached` where it may not be asked."""
        await require_budget(self._spending, past.run.place)
        self._note(bot.models)
        prompt = await self.prompt(past, bot)
        profile = bot.profile.name if bot.profile else past.run.profile or PROFILE
        journal, tools = _CountedJournal(self._spending, past), RecordedTools(prompt.tools, past.journal.tools)
        texts = ParsedTexts(self._kinds)
        loop = RunLoop(
            Journal(run=replace(past.run, status="open", model=bot.models[0].name, seconds=0.0), prompt=prompt),
            _ReplayHost(self._attachments_of(past), texts),
            store=journal,
            models=bot.models,
            toolbox=tools,
            calls=ModelCalls(
                timeout=self._shared.limits.value.call_timeout, sleep=self._shared.sleep, now=self._spending.now
            ),
            options=RunOptions(prices=self._shared.behavior.prices),
        )
        after = Answered(model=bot.models[0].name, profile=profile)
        try:
            answer = await loop.run_to_end()
        except SpendCapReached:
            raise
        except TertuliaError as error:
            after = replace(after, error=reason_of(error))
        else:
            found = run_outcome(
                answer.turns,
                past.run,
                past.target,
                now=past.run.began_at,
                delimiter=past.delimiter,
                texts=texts,
                markers=loop.markers(),
            )
            after = replace(
                after,
                texts=tuple(reply.text for reply in found.replies),
                tasks=tuple(task.kind for task in found.tasks),
                model=answer.run.model or after.model,
            )
        after = replace(after, tools=tuple(tools.used), spent=spent_by(journal.calls))
        run = past.run
        return ReplayedRun(
            run=run.id, place=run.place, at=run.began_at, asked=past.asked, before=past.before, after=after
        )

    async def send(self, run_id: str, step: int, model: Model, *, profile: Profile | None = None) -> SentAgain:
        """Send a past request to a model, and return its response; tools that it calls are not run."""
        past = await self.past(run_id)
        await require_budget(self._spending, past.run.place)
        prompt, check = await self.prompt_of_step(past, step, profile, [model]), await self._check_step(run_id, step)
        self._note([model])
        sent = await self._attachments_of(past).attach(prompt, model)
        calls = ModelCalls(retries=0, timeout=self._shared.limits.value.call_timeout, now=self._spending.now)
        async with aclosing(calls.request(model, sent)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Call):
                    call = priced(_replayed(piece), self._shared.behavior.prices)
                    await self._spending.count(call, past.charged, None)
                if isinstance(piece, Response):
                    finish = " ".join(filter(None, (piece.finish.outcome, piece.finish.reason)))
                    return SentAgain(check=check, model=model.name, turn=piece.turn, finish=finish, call=call)
        raise AssertionError  # a request ends in a response, or raises

    async def render(
        self, run_id: str, step: int, model: Model | str | None = None, *, profile: Profile | None = None
    ) -> Rendered:
        """Return a past request as it would be in another profile, or for another model; the one of then by default."""
        past = await self.past(run_id)
        target = as_rendered(model) if model else await self._model_of(run_id, step)
        prompt = await self.prompt_of_step(past, step, profile, [target])
        sent = await self._attachments_of(past).attach(prompt, target)
        name = profile.name if profile else past.run.profile
        return encode_for(prompt, sent, target, profile=name, prices=self._shared.behavior.prices)

    async def _model_of(self, run_id: str, step: int) -> RenderedModel:
        """Return the model that a step asked last, with its service as it was then."""
        calls = [one.call for one in await self._shared.store.usage.calls(run=run_id, most=MOST_CALLS)]
        asked = [one for one in calls if one.step == step and one.request and one.request.wire]
        if not asked or not (request := asked[-1].request) or not request.wire:
            raise InvalidValue(f"step {step} of run {run_id} sent nothing over a wire; say for which model")
        return RenderedModel(asked[-1].model, wire=request.wire, vendor=request.vendor)

    async def _check_step(self, run_id: str, step: int) -> RequestCheck:
        checks = [one for one in await self.checks(run_id) if one.step == step]
        return checks[-1] if checks else RequestCheck(run=run_id, step=step, attempt=1, is_same=False, why=NO_WIRE)

    async def prompt_of_step(
        self, past: PastRun, step: int, profile: Profile | None, models: Sequence[Model]
    ) -> Prompt:
        """Return the prompt of a step; in another profile the first one is built anew, and the run follows it."""
        sent = await self._shared.store.prompts.sent(past.run.id, step)
        if sent is None:
            raise InvalidValue(f"run {past.run.id} sent no request in step {step}")
        if profile is None:
            return replace(sent.prompt, cached=None)
        prompt = await self.prompt(past, ChangedBot(models=tuple(models), profile=profile))
        earlier = replace(
            past.journal,
            records=tuple(one for one in past.journal.records if one[0] < step),
            tools=tuple(one for one in past.journal.tools if one.step < step),
        )
        return append_turns(prompt, *earlier.turns) if step else prompt

    async def prompt(self, past: PastRun, bot: ChangedBot) -> Prompt:
        """Return the first prompt of a run: as it was sent, or built anew of what was known then."""
        if past.sent and bot.persona is None and bot.profile is None:
            return replace(past.sent.prompt, cached=None)
        profile = bot.profile or profile_of(past.run.profile or PROFILE, self._context)
        persona = bot.persona or self.persona
        builder = self._builder(past, persona, profile)
        batch = Batch(
            messages=past.taken,
            target=past.target,
            snapshot=PlaceSnapshot(waiting=(), count=past.run.horizon, changes=0, beginning=past.beginning),
        )
        self._moment = past.run.began_at
        gathered = await builder.gather_context(batch, bot.models)
        context = await gathered.latest(past.run.began_at)
        sent = past.sent.prompt if past.sent else None
        return builder.build(context, sent.tools if sent else (), sent.settings if sent else Settings())

    def _builder(self, past: PastRun, persona: Persona, profile: Profile) -> PromptBuilder:
        def at() -> datetime:
            return past.run.began_at

        async def delimiter(_: Place) -> str:
            return past.delimiter

        me = past.me
        as_then = replace(persona, name=persona.name or me.persona or me.name)
        platform = _NoPlatform(past.run.place, me)
        identity = Identity(cast_of_one(as_then), {platform.name: platform})
        fetcher = MediaFetcher(
            self._media, {platform.name: platform}, addresses=_NoAddresses(), decoder=self._decoder, now=at
        )
        return PromptBuilder(
            PromptSources(
                messages=past.log,
                knowledge=past.knowledge,
                describer=StoredDescriptions(past_descriptions(self._shared.store.descriptions, past.run.horizon)),
                media=ContextMedia(fetcher),
            ),
            PromptLayout(
                profile=profile,
                options=self._context,
                task_blocks=block_lines(self._handlers, self._kinds, self._shared.behavior),
            ),
            replace(
                self._shared,
                identity=identity,
                agent_places=AgentPlaces(self._shared.store.agents, identity, self._shared.aliases, now=at),
                delimiters=DelimiterCache(delimiter),
                clock=RealClock(now=at),
            ),
        )

    def _attachments_of(self, past: PastRun) -> Attachments:
        return self._attachments.for_run(
            partial(markup, delimiter=past.delimiter), limits=request_limits(self._context.budget)
        )

    def _note(self, models: Sequence[Model]) -> None:
        self._spending.require_prices(models)
        self._asked |= {model.account: model for model in models if isinstance(model, UploadsFiles)}


def _free_embedder(name: str) -> Embedder | None:
    """Return an embedder that costs nothing: a page that is looked at asks no service."""
    embedder = find_embedder(name)
    return None if isinstance(embedder, RemoteEmbedder) else embedder

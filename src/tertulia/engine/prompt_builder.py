"""Prompt builder: gathers the context of a batch and lays it out by the profile."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context import sources
from tertulia.context.gather import ContextOptions, Gathered, SourceInputs, collect, split_volatile
from tertulia.context.log import Log, with_current_quotes
from tertulia.context.media_budget import count_by_files, fit_batch, fit_request, has_media, request_limits
from tertulia.context.repeated_media import show_media_once
from tertulia.context.values import Context, OwnNames
from tertulia.engine.batches import Batch
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.log_views import AgentLog, LogSlice
from tertulia.engine.media_descriptions import StoredDescriptions, Waiting, at_once
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import PlaceSnapshot
from tertulia.messages import Message, Place
from tertulia.models.base import Model, media_taken
from tertulia.profiles import Profile
from tertulia.prompt.layers import batch_turns
from tertulia.run.dynamic_layer import DynamicLayer
from tertulia.run.journal import Run
from tertulia.tasks.blocks import heading_line
from tertulia.tasks.kinds import BlockLine
from tertulia.turns import Prompt, Settings, ToolSpec, Turn

log = logging.getLogger("tertulia")

SEND = f"`{heading_line('send', None)}`"
SEND_ELSEWHERE = f"`{heading_line('send', None, 'NAME')}`: a message in another place; NAME is one of: {{names}}"


def build_prompt(
    context: Context,
    profile: Profile,
    *,
    tools: tuple[ToolSpec, ...] = (),
    settings: Settings | None = None,
) -> Prompt:
    """Return the prompt that a profile makes of a context."""
    prompt = replace(profile.build(context), tools=tools, settings=settings or Settings())
    if log.isEnabledFor(logging.DEBUG):
        history = sum(len(layer.turns) for layer in prompt.layers if layer.name == "buffered")
        sizes = {"history_length": history, "system_context_length": len(prompt.instruction)}
        used = "multi-level context" if context.levels else "the plain window"
        log.debug("Using %s for Gemini history_length=%d system_context_length=%d", used, *sizes.values(), extra=sizes)
    return prompt


class PromptSources(Struct, frozen=True, kw_only=True, eq=False):
    """What prompts are made of."""

    messages: Log  # the visible ones
    knowledge: sources.Knowledge
    describer: StoredDescriptions
    media: ContextMedia


class PromptLayout(Struct, frozen=True, kw_only=True, eq=False):
    """How prompts are laid out."""

    profile: Profile
    options: ContextOptions
    task_blocks: tuple[BlockLine, ...] = ()


class PromptBuilder:
    """Builds prompts by one profile."""

    def __init__(self, given: PromptSources, layout: PromptLayout, shared: Shared, *, agent: str = "") -> None:
        self.profile = layout.profile
        self._given = given
        self._messages, self._describer, self._media = given.messages, given.describer, given.media
        self._layout, self._options = layout, layout.options
        self._identity = shared.identity
        self._delimiters = shared.delimiters
        self._now = shared.now
        self._zone = shared.zone
        self._agent = agent
        self._places = shared.agent_places

    async def _log(self, place: Place) -> AgentLog:
        """Return the log of a place as the agent sees it."""
        names = self._identity.cast.names_of(self._identity.agent_named(self._agent))
        return AgentLog(self._messages, names, await self._places.known_to(self._agent, place))

    async def gather_context(
        self, batch: Batch, models: Sequence[Model], *, while_waiting: Waiting = at_once
    ) -> Gathered:
        """Gather the context of *batch* for *models*. Messages that came after its snapshot are not in it.

        It is inside the context manager *while_waiting* while it waits for media and for their descriptions.
        """
        target, beginning = batch.target, batch.snapshot.beginning
        messages = LogSlice(await self._log(target.place), beginning, batch.snapshot.count)
        once, volatile = self._sources(messages)
        scene = await self._scene(target.place, models)
        descriptions = partial(self._describer.add_descriptions, beginning=beginning)
        context = await collect(target, [scene, *once, descriptions], self._now(), batch=batch.all_messages)
        context = await self._describer.describe(
            context, messages, models, beginning=beginning, while_waiting=while_waiting
        )
        if has_media(context):
            context = await self._media.add_files(context, while_waiting=while_waiting)
            context = show_media_once(fit_request(context, request_limits(self._options.budget)))
        return Gathered(context=context, volatile=volatile)

    def dynamic_layer(self, gathered: Gathered) -> DynamicLayer | None:
        """Return the dynamic layer of a run that begins with this context; None if no source is volatile."""
        if not gathered.volatile:
            return None
        return DynamicLayer(gathered, self.profile.build, now=self._now, shown_at=gathered.context.now)

    def resumed_layer(
        self, run: Run, target: Message, models: Sequence[Model], beginning: Callable[[Place], Awaitable[int]]
    ) -> DynamicLayer | None:
        """Return the dynamic layer of a run that an earlier process began; its context is gathered anew if needed.

        *beginning* returns how many messages of a place came before its conversation.
        """
        if not self._sources(self._messages)[1] or run.profile != self.profile.name:
            return None

        async def gather() -> Gathered:
            log = await self._log(run.place)
            found = sorted(await log.find(run.place, run.taken), key=lambda one: one[0])
            batch = Batch(
                messages=tuple(one for number, one in found if number < run.horizon),  # later ones have joined it
                target=target,
                snapshot=PlaceSnapshot(waiting=(), count=run.horizon, changes=0, beginning=await beginning(run.place)),
            )
            return await self.gather_context(batch, models)

        return DynamicLayer(gather, self.profile.build, now=self._now)

    def _sources(self, messages: Log) -> tuple[list[sources.AnySource], tuple[sources.AnySource, ...]]:
        """Return the sources of the profile and the user's: those that are asked once, and the volatile ones."""
        inputs = SourceInputs(log=messages, memory=self._given.knowledge, options=self._options, files=self._media)
        given = [sources.stickers(self._options.stickers)] if self._options.stickers else []
        return split_volatile((*self.profile.sources(inputs), *given, *self._options.sources))

    def build(self, context: Context, tools: tuple[ToolSpec, ...], settings: Settings) -> Prompt:
        return build_prompt(context, self.profile, tools=tools, settings=settings)

    async def render_turns(self, messages: Sequence[Message], models: Sequence[Model]) -> tuple[Turn, ...]:
        """Return messages of one place as turns that continue a prompt, with their quotes and media that fit."""
        limits, log = request_limits(self._options.budget), await self._log(messages[0].place)

        async def fit(context: Context) -> Context:
            return fit_batch(context, limits, await count_by_files(context, (), self._media))[0]

        all_sources: list[sources.AnySource] = [
            await self._scene(messages[0].place, models),
            partial(with_current_quotes, log),
            fit,
            self._describer.add_descriptions,
        ]
        context = await collect(messages[-1], all_sources, self._now(), batch=messages)
        context = await self._describer.describe(context, log, models)
        context = show_media_once(fit_request(await self._media.add_files(context), limits))
        return batch_turns(context, self.profile.joined(context), (), told=())

    def _task_blocks(self, place: Place) -> tuple[BlockLine, ...]:
        """Return the lines about task blocks, with whom the agent may send to from a place."""
        offered, agent = self._layout.task_blocks, self._identity.agent_named(self._agent)
        if not agent.may_send or place.kind == "direct":
            return offered
        more = BlockLine(text=SEND_ELSEWHERE.format(names=", ".join(agent.may_send)))
        return tuple(one for line in offered for one in ((line, more) if line.text.startswith(SEND) else (line,)))

    async def _scene(self, place: Place, models: Sequence[Model]) -> sources.Source:
        delimiter, cast = await self._delimiters.get(place), self._identity.cast
        me = self._identity.account_in(place, self._agent)
        return sources.agent_settings(
            persona=self._identity.persona_on(me, self._agent),
            account=self._identity.platforms[me].me.id or None,  # in documents the persona decides
            agent=OwnNames(cast.names_of(self._identity.agent_named(self._agent)), is_only=cast.is_single),
            zone=self._zone,
            delimiter=delimiter,
            task_blocks=self._task_blocks(place),
            model=models[0].name if models else "",
            taken=media_taken(models[0]) if models else None,
        )

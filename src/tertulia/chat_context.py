"""The layers of a chat. With a context its history is gathered as messages and laid out as in an engine."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import groupby
from operator import is_
from typing import Protocol

from msgspec.structs import replace

from tertulia.context.gather import (
    ContextOptions,
    Gathered,
    InMemoryKnowledge,
    SourceInputs,
    gather,
    split_volatile,
)
from tertulia.context.log import InMemoryLog
from tertulia.context.sources import agent_settings
from tertulia.context.values import Context, Persona
from tertulia.messages import Author, Message, Place
from tertulia.models.base import Model, media_taken
from tertulia.parts import Media, Part, Text, ToolResult
from tertulia.profiles import PROFILES
from tertulia.run.dynamic_layer import DynamicLayer
from tertulia.run.stored_chat import StoredChat, UnstoredChat
from tertulia.turns import Layer, Prompt, Turn

AGENT, PERSON = Author(id="agent", name=""), Author(id="", name="")
PROFILE = PROFILES["layered"]


class ChatLayers(Protocol):
    """The layers of one exchange, whose last turn is the trigger."""

    async def build(self) -> tuple[Layer, ...]:
        """Return the layers of its first prompt."""
        ...

    async def refresh(self, prompt: Prompt) -> Prompt:
        """Return the prompt of a later step with its layers as they are now."""
        ...


class PlainLayers:
    """The instruction, the history and the trigger, turn for turn."""

    def __init__(self, system: str, turns: Sequence[Turn]) -> None:
        self._system = system
        self._turns = tuple(turns)

    async def build(self) -> tuple[Layer, ...]:
        return (
            Layer(name="static", instruction=self._system),
            Layer(name="buffered", turns=self._turns[:-1]),
            Layer(name="trigger", turns=self._turns[-1:]),
        )

    async def refresh(self, prompt: Prompt) -> Prompt:
        return prompt


class ChatContext:
    """Returns the layers of each exchange of a chat: those of a context if there are *options* for one."""

    def __init__(
        self, options: ContextOptions | None, home: StoredChat | UnstoredChat, *, now: Callable[[], datetime]
    ) -> None:
        self._options = options
        self._home = home
        self._now = now
        self._log = ChatLog(home.place)

    def layers(self, system: str, turns: Sequence[Turn], model: Model) -> ChatLayers:
        """Return the layers of an exchange: *turns* are the history and the trigger."""
        if self._options is None:
            return PlainLayers(system, turns)

        async def gather_context() -> Gathered:
            return await self._gather(system, turns, model)

        return ContextLayers(gather_context, has_state=bool(split_volatile(self._options.sources)[1]), now=self._now)

    async def _gather(self, system: str, turns: Sequence[Turn], model: Model) -> Gathered:
        options, trigger = self._options or ContextOptions(), turns[-1]
        target = Message(id=str(len(turns) - 1), place=self._home.place, author=PERSON, parts=_said(trigger))
        settings = agent_settings(
            persona=Persona(text=system),
            account=AGENT.id,
            delimiter=await self._home.delimiter(),
            model=model.name,
            taken=media_taken(model),
        )

        def as_it_is(context: Context) -> Context:
            return replace(context, turns={**context.turns, target.id: (trigger,)})

        inputs = SourceInputs(log=self._log.of(turns[:-1]), memory=InMemoryKnowledge(), options=options)
        once, volatile = split_volatile((*PROFILE.sources(inputs), *options.sources))
        return Gathered(context=await gather(target, [settings, *once, as_it_is], self._now()), volatile=volatile)


class ContextLayers:
    """The four layers of `layered`, with the sources that it has in an engine and the user's."""

    def __init__(
        self, gather_context: Callable[[], Awaitable[Gathered]], *, has_state: bool, now: Callable[[], datetime]
    ) -> None:
        self._gather = gather_context
        self._has_state = has_state  # whether a source is volatile
        self._now = now
        self._dynamic = DynamicLayer(gather_context, PROFILE.build, now=now)

    async def refresh(self, prompt: Prompt) -> Prompt:
        return await self._dynamic.refresh(prompt) if self._has_state else prompt

    async def build(self) -> tuple[Layer, ...]:
        gathered = await self._gather()
        context = await gathered.latest(gathered.context.now)
        self._dynamic = DynamicLayer(gathered, PROFILE.build, now=self._now, shown_at=context.now)
        return PROFILE.build(context).layers


class ChatLog:
    """The turns of a chat as messages: what a person said; each answer, with the turns of the model and of its tools.

    A history grows at its end, so its messages stay, and each is rendered once.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._log = InMemoryLog()
        self._turns: list[Turn] = []  # that the log has
        self._last = 0  # the number of the turn with which the last message begins

    def of(self, turns: Sequence[Turn]) -> InMemoryLog:
        """Return the log of these turns."""
        known = len(self._turns)
        if known > len(turns) or not all(map(is_, self._turns, turns)):
            self._log, self._last, known = InMemoryLog(), 0, 0
        if known < len(turns):
            self._add(turns[self._last :])  # an answer may go on
            self._turns = list(turns)
        return self._log

    def _add(self, turns: Sequence[Turn]) -> None:
        for is_answer, found in groupby(turns, _is_answer):
            group = tuple(found)
            for said in [group] if is_answer else [(turn,) for turn in group]:
                parts = tuple(part for turn in said if turn.role == "model" or not is_answer for part in _said(turn))
                author, name = AGENT if is_answer else PERSON, str(self._last)
                message = Message(id=name, place=self._place, author=author, parts=parts)
                self._log.add(message, turns=said if is_answer else ())
                self._last += len(said)
        self._last -= len(said)


def _is_answer(turn: Turn) -> bool:
    return turn.role == "model" or any(isinstance(part, ToolResult) for part in turn.parts)


def _said(turn: Turn) -> tuple[Part, ...]:
    return tuple(part for part in turn.parts if isinstance(part, Text | Media))

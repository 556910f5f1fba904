"""Speakers: the agents, with what their runs use."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from random import Random

from msgspec.structs import replace

from tertulia.decisions import Decision
from tertulia.engine.agents.agent import Agent
from tertulia.engine.memory import Memory
from tertulia.engine.prompt_builder import PromptBuilder, PromptLayout, PromptSources
from tertulia.engine.shared import Shared
from tertulia.messages import Message
from tertulia.models.base import Model
from tertulia.run.journal import Run
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Settings


class RunDefaults:
    """What an agent's runs use where it has none of its own. It may be set between runs."""

    def __init__(self, models: tuple[Model, ...], toolbox: Toolbox, settings: Settings) -> None:
        self.models = models  # the first is called; each other is a fallback for the one before
        self.toolbox = toolbox
        self.settings = settings


class Speaker:
    """Who answers. A run that has begun keeps its prompt, whatever changes here."""

    def __init__(
        self, agent: Agent, name: str, defaults: RunDefaults, prompts: PromptBuilder, *, now: Callable[[], datetime]
    ) -> None:
        self.agent = agent
        self.name = name  # under which it is stored
        self.prompts = prompts
        self._defaults = defaults
        self._now = now
        self._ids = Random()  # noqa: S311 (no secrets; to ask the system for each lets other threads take the interpreter)

    @property
    def models(self) -> tuple[Model, ...]:
        return self.agent.models or self._defaults.models

    @property
    def toolbox(self) -> Toolbox:
        return self._defaults.toolbox if self.agent.tools is None else self.agent.tools

    @property
    def settings(self) -> Settings:
        return self._defaults.settings if self.agent.settings is None else self.agent.settings

    def new_run(self, messages: Sequence[Message], target: Message, decisions: Mapping[str, Decision]) -> Run:
        """Return a run that takes *messages* and answers *target*; it has not begun."""
        at = self._now()
        return Run(
            id=f"{int(at.timestamp()) & 0xFFFFFF:06x}{self._ids.getrandbits(56):014x}",
            place=target.place,
            target=target.id,
            taken=tuple(message.id for message in messages),
            began_at=at,
            horizon=0,
            model=self.models[0].name,
            profile=self.prompts.profile.name,
            agent=decisions[target.id].agent or self.name,  # the name under which its messages wait
            decisions=decisions,
        )


class Speakers:
    """The agents of an engine as speakers, each made when it first answers, and anew when it has changed."""

    def __init__(
        self,
        shared: Shared,
        defaults: RunDefaults,
        sources: PromptSources,
        layout: PromptLayout,
        memory: Memory | None,
    ) -> None:
        self.defaults = defaults
        self._shared = shared
        self._sources = sources
        self._layout = layout
        self._memory = memory
        self._known: dict[str, Speaker] = {}

    @property
    def default(self) -> Speaker:
        return self.named("")

    def named(self, name: str) -> Speaker:
        """Return the agent that is stored under a name, or the default one where that was removed."""
        cast = self._shared.identity.cast
        agent = cast.get(name) or cast.default
        stored, known = cast.stored_name(agent), self._known.get(agent.name)
        if known is None or known.agent is not agent or known.name != stored:
            layout = replace(self._layout, profile=agent.profile) if agent.profile else self._layout
            sources = self._sources
            if self._memory:
                sources = replace(sources, knowledge=self._memory.knowledge_of(self._shared.identity.seen_by(stored)))
            prompts = PromptBuilder(sources, layout, self._shared, agent=stored)
            known = self._known[agent.name] = Speaker(agent, stored, self.defaults, prompts, now=self._shared.now)
        return known

    def has(self, name: str) -> bool:
        """Return whether an agent is stored under a name, and was not removed."""
        return not name or self._shared.identity.cast.get(name) is not None

    @property
    def models(self) -> list[Model]:
        """All models that agents may ask."""
        own = [model for agent in self._shared.identity.cast.agents for model in agent.models]
        return list(dict.fromkeys([*self.defaults.models, *own]))

"""Speaker: an agent with what its runs use."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from tertulia.decisions import Decision
from tertulia.engine.prompt_builder import PromptBuilder
from tertulia.messages import Message
from tertulia.models.base import Model
from tertulia.run.journal import Run
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Settings


class Speaker:
    """Who answers. Its models, tools and settings may be set between runs; a run that has begun keeps its prompt."""

    def __init__(
        self,
        models: tuple[Model, ...],
        toolbox: Toolbox,
        settings: Settings,
        prompts: PromptBuilder,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self.models = models  # the first is called; each other is a fallback for the one before
        self.toolbox = toolbox
        self.settings = settings
        self.prompts = prompts
        self._now = now

    def new_run(self, messages: Sequence[Message], target: Message, decisions: Mapping[str, Decision]) -> Run:
        """Return a run that takes *messages* and answers *target*; it has not begun."""
        at = self._now()
        return Run(
            id=f"{int(at.timestamp()) & 0xFFFFFF:06x}{secrets.token_hex(7)}",
            place=target.place,
            target=target.id,
            taken=tuple(message.id for message in messages),
            began_at=at,
            horizon=0,
            model=self.models[0].name,
            profile=self.prompts.profile.name,
            decisions=decisions,
        )

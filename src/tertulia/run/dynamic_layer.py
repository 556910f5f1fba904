"""The dynamic layer of a run: rebuilt before each step where a source is volatile; every other layer stays.

The prompt of a step is that of the step before, with more turns at its end. So the state that the first step shows
would be told to the model for the whole run, also after its tools have changed it. Therefore the volatile sources are
asked again, and the layer is built of what they give. A layer that would differ in its time alone stays as it is: the
request then keeps its whole prefix.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

from msgspec.structs import replace

from tertulia.context.gather import Gathered
from tertulia.context.values import Context
from tertulia.turns import Layer, Prompt

NAME = "dynamic"


class DynamicLayer:
    """Rebuilds the dynamic layer of the prompts of one run.

    *context* is that of the run, or gathers it when it is needed first, in a run that is resumed. *shown_at* is the
    time that the first prompt shows; None if it is not known.
    """

    def __init__(
        self,
        context: Gathered | Callable[[], Awaitable[Gathered]],
        build: Callable[[Context], Prompt],
        *,
        now: Callable[[], datetime],
        shown_at: datetime | None = None,
    ) -> None:
        self._context = context
        self._build = build
        self._now = now
        self._shown_at = shown_at

    async def refresh(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the dynamic layer as it is now."""
        if not isinstance(self._context, Gathered):
            self._context = await self._context()
        now = self._now()
        context = await self._context.latest(now)
        if self._shown_at is not None and context.now == now:  # no source tells another time
            same_time = self._build(replace(context, now=self._shown_at))
            if _layers(same_time) == _layers(prompt):
                return prompt
        self._shown_at = context.now
        built = self._build(context)
        layers = [layer for layer in prompt.layers if layer.name != NAME]
        at = next((number for number, layer in enumerate(built.layers) if layer.name == NAME), 0)
        layers[at:at] = _layers(built)
        return replace(prompt, layers=tuple(layers))


def _layers(prompt: Prompt) -> list[Layer]:
    return [layer for layer in prompt.layers if layer.name == NAME]

"""Metered model: counts the calls of a model outside of runs, and holds them to the spend caps."""

from collections.abc import AsyncIterator

from palaver.engine.spend_caps import SpendTracker
from palaver.errors import SpendCapReached
from palaver.messages import Author, Place
from palaver.models.base import Model, Response
from palaver.parts import Part
from palaver.run.model_calls import CALL_TIMEOUT, ModelCalls
from palaver.turns import Prompt


class MeteredModel:
    """A model for calls in a place that belong to no run, counted for *author* if one is given.

    Each call has *timeout* seconds. Raise `SpendCapReached` once a cap is reached.
    """

    def __init__(
        self,
        model: Model,
        spend_tracker: SpendTracker,
        place: Place,
        author: Author | None = None,
        *,
        timeout: float = CALL_TIMEOUT,
    ) -> None:
        self.name = model.name
        self._model = model
        self._spend_tracker = spend_tracker
        self._place = place
        self._author = author
        self._calls = ModelCalls(retries=0, timeout=timeout)

    async def respond(self, prompt: Prompt) -> Response:
        if await self._spend_tracker.is_reached(self._place, self._author):
            raise SpendCapReached(f"{self.name} is not called until tomorrow: a spend cap is reached")
        response = await self._calls.respond(self._model, prompt)
        await self._spend_tracker.count(response, self._model, self._place, self._author)
        return response

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)

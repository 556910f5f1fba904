"""Calls models: each call with a timeout, with retries and backoff where the model is unavailable."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from itertools import count
from math import inf
from typing import Any, TypeVar

from msgspec import Struct

from palaver.backoff import backoff
from palaver.errors import ModelUnavailable, PalaverError, ResponseUnreadable, TimedOut, seconds_to_wait
from palaver.models.base import Model, Response
from palaver.parts import Part
from palaver.turns import Prompt

log = logging.getLogger(__name__)

RETRIES = 4  # times that one request is tried again after waiting
LONGEST = 60.0  # seconds that are waited at most; who asks for more is not waited for
CALL_TIMEOUT = 600.0  # seconds; models may think for minutes

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class AttemptFailed(Struct, frozen=True):
    """What has arrived since the last usable response is void: the model is asked again."""


class ModelCalls:
    """Calls models. *timeout* limits one call in all, also where a service sends keep-alives."""

    def __init__(
        self,
        *,
        streaming: bool = False,
        retries: int = RETRIES,
        timeout: float | None = CALL_TIMEOUT,
        sleep: Sleep = asyncio.sleep,
        on_retry: Callable[[float, PalaverError], None] | None = None,
    ) -> None:
        self._retrying = on_retry  # is told that the model is asked again after so many seconds
        self._streaming = streaming
        self._waits = retries
        self._timeout = timeout
        self._sleep = sleep

    async def request(
        self, model: Model, prompt: Prompt, *, retries: int | None = None
    ) -> AsyncGenerator[Part | Response | AttemptFailed, None]:
        """Yield the pieces of the response and last the whole. A model that is unavailable is asked again *waits*
        times."""
        most = self._waits if retries is None else retries
        for waited in count():
            has_begun = False
            try:
                if not self._streaming:
                    yield _checked(await self._within(self._timeout, model.respond(prompt), model), Response, model)
                    return
                async with aclosing(self._pieces(model, prompt)) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield _checked(piece, Part | Response, model)
                        if isinstance(piece, Response):
                            return
                raise ResponseUnreadable(f"{model.name} ended its stream without a response")
            except ModelUnavailable as error:
                asked = seconds_to_wait(error.retry_after)
                seconds = backoff(waited + 1, first=1.0, longest=inf) if asked is None else asked
                if waited >= most or seconds > LONGEST:
                    raise
                log.info("%s; asked again in %g s", error, seconds)
                if self._retrying:
                    self._retrying(seconds, error)
            if has_begun:
                yield AttemptFailed()
            await self._sleep(seconds)

    async def respond(self, model: Model, prompt: Prompt) -> Response:
        """Return the whole response."""
        async with aclosing(self.request(model, prompt)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Response):
                    return piece
        raise AssertionError  # a request ends in a response, or raises

    async def _pieces(self, model: Model, prompt: Prompt) -> AsyncGenerator[Part | Response, None]:
        """Yield what is streamed. Only waiting for the model counts, not the time that the reader takes."""
        clock, left = asyncio.get_running_loop().time, self._timeout
        async with closing(model.stream(prompt)) as pieces:
            while True:
                began = clock()
                piece = await self._within(left, anext(pieces, None), model)
                if piece is None:
                    return
                left = None if left is None else left - (clock() - began)
                yield piece

    async def _within(self, seconds: float | None, work: Awaitable[T], model: Model) -> T:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
        raise TimedOut(f"{model.name} gave no whole answer within {self._timeout:g} seconds")


def _checked(given: T, kind: Any, model: Model) -> T:
    """What a model gave, where it is what models give; a model may be anybody's code."""
    if not isinstance(given, kind):
        raise ResponseUnreadable(f"{model.name} gave a {type(given).__name__} where a response belongs")
    return given


@asynccontextmanager
async def closing(pieces: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close an iterator at the end of the block."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()

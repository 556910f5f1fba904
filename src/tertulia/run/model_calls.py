"""Model calls, each with a timeout, and with retries and backoff when the model is unavailable."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from math import inf
from secrets import token_hex
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tertulia.backoff import backoff
from tertulia.errors import (
    HostUnknown,
    ModelUnavailable,
    ResponseUnreadable,
    TimedOut,
    reason_of,
    seconds_to_wait,
)
from tertulia.jsonio import jsonable
from tertulia.models.base import Model, Response
from tertulia.models.calls import Call, SentRequest, noted_requests
from tertulia.parts import Media, Part, made_media
from tertulia.redaction import redact_keys
from tertulia.turns import Prompt, Turn

RETRIES = 4  # of one request
MAX_RETRY_WAIT = 60.0  # seconds before a retry; a service that asks for more is not retried
LONGEST_WHY = 1000  # characters of an error that are persisted
CALL_TIMEOUT = 600.0  # seconds; models may think for minutes

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class AttemptFailed(Struct, frozen=True):
    """An attempt failed and is repeated: discard the pieces that came since the last usable response."""


class RetryWaits(Struct, frozen=True, kw_only=True):
    """A model that is unavailable is asked again after some seconds."""

    model: str
    seconds: float
    error: ModelUnavailable


CallEvent = Part | Response | AttemptFailed | RetryWaits | Call


class CallAttempt:
    """One attempt of a request, which becomes a `Call` when it ends."""

    def __init__(
        self,
        model: str,
        *,
        now: Callable[[], datetime],
        number: int = 1,
        waited: float = 0.0,
        noted: list[SentRequest] | None = None,
    ) -> None:
        self.noted = noted  # the requests that were sent; None: nobody asks
        self.first_at: datetime | None = None
        self._model = model
        self._number = number
        self._waited = waited
        self._now = now
        self._begun_at = now()

    def answered(self, response: Response | None = None) -> Call:
        """Return the call; *response* is that of a model."""
        if response is None:
            return self._call()
        finish = response.finish
        why = "" if finish.outcome == "complete" else f"{finish.outcome} {finish.reason}".strip()
        return replace(
            self._call(),
            usage=response.usage,
            answered_by=response.answered_by[:LONGEST_WHY],
            why=redact_keys(why)[:LONGEST_WHY] if why else "",
        )

    def failed(self, error: BaseException) -> Call:
        if isinstance(error, asyncio.CancelledError):
            return replace(self._call(), status="stopped")
        return replace(self._call(), status="failed", error=type(error).__name__, why=reason_of(error)[:LONGEST_WHY])

    def _call(self) -> Call:
        return Call(
            model=self._model,
            attempt=self._number,
            waited=self._waited,
            begun_at=self._begun_at,
            first_at=self.first_at,
            ended_at=self._now(),
            request=self.noted[-1] if self.noted else None,
        )


class ModelCalls:
    """Calls models. *timeout* limits one call in all, also where a service sends keep-alives."""

    def __init__(
        self,
        *,
        streaming: bool = False,
        retries: int = RETRIES,
        timeout: float | None = CALL_TIMEOUT,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        noting: bool = True,
    ) -> None:
        self.now = now
        self.noting = noting  # whether calls are stored, with what was sent; else nothing of a request is hashed
        self._streaming = streaming
        self._retries = retries
        self._timeout = timeout
        self._sleep = sleep

    async def request(
        self, model: Model, prompt: Prompt, *, retries: int | None = None
    ) -> AsyncGenerator[CallEvent, None]:
        """Yield the pieces of the response, then the response. An unavailable model is asked again *retries* times.

        Each call is yielded before its response, or before its error is raised.
        """
        most, seconds = self._retries if retries is None else retries, 0.0
        for failures in count():
            has_begun, response = False, None
            noted: list[SentRequest] | None = [] if self.noting else None
            attempt = CallAttempt(model.name, now=self.now, number=failures + 1, waited=seconds, noted=noted)
            try:
                async with aclosing(self._pieces(model, prompt, attempt)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Response):
                            response = piece
                            break
                        has_begun = True
                        yield piece
                if response is None:
                    raise ResponseUnreadable(f"{model.name} ended its stream without a response")
            except asyncio.CancelledError as error:
                yield attempt.failed(error)
                raise
            except Exception as error:
                yield attempt.failed(error)
                if not isinstance(error, ModelUnavailable):
                    raise
                requested = seconds_to_wait(error.retry_after)
                seconds = backoff(failures + 1, first=1.0, longest=inf) if requested is None else requested
                enough = min(most, 1) if isinstance(error, HostUnknown) else most
                if failures >= enough or seconds > MAX_RETRY_WAIT:
                    raise
                yield RetryWaits(model=model.name, seconds=seconds, error=error)
            else:
                yield attempt.answered(response)
                yield response
                return
            if has_begun:
                yield AttemptFailed()
            await self._sleep(seconds)

    async def _pieces(
        self, model: Model, prompt: Prompt, attempt: CallAttempt
    ) -> AsyncGenerator[Part | Response, None]:
        """Yield the pieces of an answer. The timeout counts only the time spent waiting for the model."""
        if not self._streaming:
            with noted_requests(attempt.noted):
                response = await self._within(self._timeout, model.respond(prompt), model)
            yield _require_type(response, Response, model)
            return
        clock, left = asyncio.get_running_loop().time, self._timeout
        async with closing(model.stream(prompt)) as pieces:
            while True:
                began = clock()
                with noted_requests(attempt.noted):
                    piece = await self._within(left, anext(pieces, None), model)
                if piece is None:
                    return
                left = None if left is None else left - (clock() - began)
                attempt.first_at = attempt.first_at or self.now()
                yield _require_type(piece, Part | Response, model)

    async def _within(self, seconds: float | None, work: Awaitable[T], model: Model) -> T:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
        raise TimedOut(f"{model.name} gave no whole answer within {self._timeout:g} seconds")


def _require_type(given: T, kind: Any, model: Model) -> T:
    """Return *given* if it has the right type: a model may be foreign code."""
    if not isinstance(given, kind):
        raise ResponseUnreadable(f"{model.name} gave a {type(given).__name__} where a response belongs")
    return given


def received_turn(turn: Turn) -> Turn:
    """Return the turn of a response as it is recorded; its media name no file, which may be another person's."""
    if any(isinstance(part, Media) for part in turn.parts):
        named = (made_media(part, name=token_hex(16)) if isinstance(part, Media) else part for part in turn.parts)
        turn = replace(turn, parts=tuple(named))
    return jsonable(turn)


@asynccontextmanager
async def closing(pieces: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close an iterator at the end of the block."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()

"""A small model inside this process as a model: it needs no key and no service."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Self

from palaver.errors import ContextTooLong, InvalidValue, ServiceFault
from palaver.models.base import Response
from palaver.models.local.decode import (
    ChoiceDecoder,
    Chunk,
    check_response,
    decode_chunk,
    is_progress,
    respond,
    tokens_refused,
)
from palaver.models.local.encode import encode_request, length, omitted_exchanges, reserve, text_prompt, with_one_call
from palaver.models.local.runtime import Runtime, runtime_for
from palaver.models.local.schema import answer_check, callable_tools
from palaver.models.local.weights import WEIGHTS, weights_path
from palaver.models.stream import decode_stream
from palaver.parts import Media, Part
from palaver.turns import Prompt, Role
from palaver.wire.repair import repair_prompt

log = logging.getLogger(__name__)

CONTEXT = 4096
TOKENS_A_CHARACTER = 0.25  # until the model itself has counted
TRIES = 6


class Local:
    """`Local()` is the model that comes with the package; `Local("qwen")` a better one, once it has been fetched.

    `Local("mine", path=…)` is any GGUF file. It is loaded at the first request, and shared in this process.
    """

    def __init__(
        self, name: str = "smollm2", *, path: Path | None = None, threads: int | None = None, context: int = CONTEXT
    ) -> None:
        if context < 512:
            raise InvalidValue(f"a context of {context} tokens is too small to answer in; 512 are the least")
        self.name = name
        self._path = path
        self._threads = threads
        self._context = context
        self._rate = TOKENS_A_CHARACTER
        self._engine: Runtime | None = None
        self._told: tuple[Prompt, int] | None = None  # what was asked last, and the room there was for it

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the model; it leaves the memory when nobody holds it. A later request takes it up again."""
        self._engine = None

    @property
    def omitted_exchanges(self) -> int:
        """How many of the oldest exchanges had no room in the last request."""
        return omitted_exchanges(self._told[0], room=self._told[1]) if self._told else 0

    def takes(self, _: Media, __: Role) -> bool:
        """Never: the embedded models read only words."""
        return False

    async def respond(self, prompt: Prompt) -> Response:
        async with aclosing(self.stream(prompt)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Response):
                    return piece
        raise ServiceFault(f"{self.name} did not answer")

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Part | Response, None]:
        """Yield words as they are made, then the call, then the Response."""
        legal = repair_prompt(prompt, self.name, wire="openai")
        if self.name in WEIGHTS and WEIGHTS[self.name].one_call:
            legal = with_one_call(legal)
        unwrapped = ChoiceDecoder(legal) if callable_tools(legal) else _as_it_is
        misfit = answer_check(prompt.settings.answer) if prompt.settings.answer is not None else _as_it_likes
        async with aclosing(self._chunks(legal)) as chunks:
            async for piece in decode_stream(chunks, read=unwrapped, respond=partial(respond, model=self.name)):
                yield check_response(piece, misfit) if isinstance(piece, Response) else piece

    async def _chunks(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """The chunks of the answer, the oldest turns left out where the model has no room for all."""
        if self._engine is None:
            path = self._path or weights_path(self.name)
            self._engine = runtime_for(path, threads=self._threads, context=self._context)
        engine = self._engine
        for _ in range(TRIES):
            room = int((self._context - reserve(prompt.settings, context=self._context)) / self._rate)
            told = text_prompt(prompt, room=room)
            self._told = (prompt, room)
            async with aclosing(engine.events(encode_request(prompt, told, model=self.name))) as events:
                refused = 0
                async for event in events:
                    refused = tokens_refused(event)
                    if refused:
                        break
                    chunk = decode_chunk(event, about=self.name)
                    if not is_progress(chunk):
                        self._learn(chunk, length(told), room)
                        yield chunk
            if not refused:
                return
            self._rate = max(refused / length(told), self._rate * 1.05)
            log.debug("%d tokens are too many for %s; the oldest turns are left out", refused, self.name)
        raise ContextTooLong(f"{self.name} has no room for the prompt in {self._context} tokens")

    def _learn(self, chunk: Chunk, characters: int, room: int) -> None:
        """Take from the count for a long prompt how many tokens a character is; a short one is mostly template."""
        counted = respond([chunk], model=self.name).usage.input
        if counted and characters > room // 2:
            self._rate = counted / characters


def _as_it_is(chunk: Chunk) -> Chunk:
    return chunk


def _as_it_likes(_: str) -> str:
    return ""

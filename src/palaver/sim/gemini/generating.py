"""A request for an answer, from the rules it must keep to the response it gets."""

from collections import Counter
from random import Random
from string import ascii_letters, digits
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from palaver.sim.gemini.answers import Composer, Message, Usage
from palaver.sim.gemini.behaviours import Answer, Ask, Behaviour, Raw
from palaver.sim.gemini.caches import Caches
from palaver.sim.gemini.catalogue import Model
from palaver.sim.gemini.errors import ServiceError, refused, too_many_tokens
from palaver.sim.gemini.faults import (
    BREAKING,
    EMPTYING,
    BlockedPrompt,
    CutStream,
    Emptying,
    ErrorFrame,
    Fault,
    Faults,
    Finish,
    MaxTokens,
    UsageOnlyLast,
    candidate_of,
    internal,
)
from palaver.sim.gemini.files import Files
from palaver.sim.gemini.prefixes import Prefixes, segments_of
from palaver.sim.gemini.rules import check, generation, read
from palaver.sim.gemini.rules.shape import parts_of
from palaver.sim.gemini.signatures import Signatures
from palaver.sim.gemini.tokens import Counting

Wire = dict[str, Any]

SHAPING = (*EMPTYING, Finish)
_USUAL_LIMIT = 64


class Caller(Struct, frozen=True, kw_only=True):
    """Who asks which model, by the name it was called."""

    key: str
    model: Model
    called: str
    hosts: frozenset[str]
    stream: bool


class Response(Struct, frozen=True):
    """What goes out, as one or in chunks; *cut* if the connection ends before the response does."""

    chunks: list[Wire]
    cut: bool = False

    @property
    def whole(self) -> Wire:
        """The chunks as one response."""
        return self.chunks[0] if len(self.chunks) == 1 else _joined(self.chunks)


class Generator:
    """Answers requests for content."""

    def __init__(
        self,
        *,
        strict: bool,
        behaviour: Behaviour,
        signatures: Signatures,
        caches: Caches,
        files: Files,
        faults: Faults,
        random: Random,
    ) -> None:
        self._strict = strict
        self._behaviour = behaviour
        self._signatures = signatures
        self._caches = caches
        self._files = files
        self._faults = faults
        self._random = random
        self._prefixes = Prefixes()

    def generate(self, body: object, caller: Caller) -> Response:
        """The response to *body*; raises the service's error."""
        request = self._accepted(body, caller)
        full, from_cache = self._with_cache(request, caller)
        usage = self._prompt_usage(full, from_cache, caller)
        ask = Ask(model=caller.model, request=full)
        kinds = (*SHAPING, *BREAKING) if caller.stream else SHAPING
        fault = self._faults.take(kinds, only=kinds)
        if isinstance(fault, Emptying):
            return self._emptied(fault, ask, usage)
        answer = self._behaviour.answer(ask)
        if isinstance(answer, Raw):
            return _broken(Response(answer.chunks), fault)
        message = self._message(ask, answer, usage)
        if isinstance(fault, Finish):
            message = replace(message, finish=fault.reason)
        return _broken(Response(message.chunks if caller.stream else [message.whole]), fault)

    def _accepted(self, body: object, caller: Caller) -> Wire:
        refusal = check(body, model=caller.called, strict=self._strict)
        if refusal:
            raise refused(refusal)
        request, _ = read("request", body)
        objection = self._signatures.objection_to(request["contents"], caller.model.name)
        if objection:
            raise ServiceError(400, objection, rule="signature")
        return request

    def _with_cache(self, request: Wire, caller: Caller) -> tuple[Wire, int]:
        name = request.get("cachedContent")
        if not name:
            return request, 0
        cache = self._caches.used(str(name), caller.key, caller.model.name)
        contents = [*cache.held.get("contents", []), *request["contents"]]
        return request | cache.held | {"contents": contents}, cache.tokens

    def _prompt_usage(self, request: Wire, from_cache: int, caller: Caller) -> Usage:
        for _, part in parts_of(request):
            if "fileData" in part:
                self._files.check_use(part["fileData"].get("fileUri", ""), caller.key, set(caller.hosts))
        resolution = str(request.get("generationConfig", {}).get("mediaResolution", ""))
        counting = Counting(generation(caller.model.name), self._files.size, resolution=resolution)
        prompt = counting.request(request)
        if sum(prompt.values()) > caller.model.input_limit:
            raise too_many_tokens(sum(prompt.values()), caller.model.input_limit)
        segments = segments_of(request, counting)
        recalled = self._prefixes.recall(caller.key, caller.model.name, segments, caller.model.smallest_prefix)
        return Usage(prompt=prompt, cached=max(from_cache, recalled))

    def _message(self, ask: Ask, answer: Answer, usage: Usage) -> Message:
        composer = Composer(sign=self._signatures.sign, new_id=self._id, response_id=self._response_id())
        return composer.message(ask, answer, usage)

    def _emptied(self, fault: Emptying, ask: Ask, usage: Usage) -> Response:
        if isinstance(fault, MaxTokens):
            limit = ask.config.get("maxOutputTokens")
            usage = replace(usage, thoughts=limit if isinstance(limit, int) else _USUAL_LIMIT)
        if isinstance(fault, BlockedPrompt):
            usage = Usage(prompt=Counter(usage.prompt))
        message = Message(ask=ask, parts=[], finish="", usage=usage, response_id=self._response_id())
        return Response([message.framed(candidate_of(fault), usage)])

    def _id(self) -> str:
        return "".join(self._random.choices(digits + ascii_letters, k=8))

    def _response_id(self) -> str:
        return "".join(self._random.choices(digits + ascii_letters + "-_", k=22))


def _broken(response: Response, fault: Fault | None) -> Response:
    """*response* with what goes wrong in its stream."""
    chunks = response.chunks
    match fault:
        case CutStream():
            return Response(chunks[: fault.after], cut=True)
        case ErrorFrame():
            return Response([*chunks[: fault.after], orjson.loads(internal().body)])
        case UsageOnlyLast():
            return Response([*chunks, {name: value for name, value in chunks[-1].items() if name != "candidates"}])
        case _:
            return response


def _joined(chunks: list[Wire]) -> Wire:
    """Chunks of one candidate as a single response."""
    candidates = [chunk["candidates"][0] for chunk in chunks if chunk.get("candidates")]
    parts = [part for one in candidates for part in one.get("content", {}).get("parts", [])]
    joined: Wire = {}
    for chunk in chunks:
        joined |= chunk
    if candidates:
        joined["candidates"] = [candidates[-1] | {"content": {"parts": parts, "role": "model"}}]
    return joined

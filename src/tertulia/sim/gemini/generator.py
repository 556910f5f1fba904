"""Generation of content: from the rules that a request must follow to the chunks of its response."""

from collections import Counter
from random import Random
from string import ascii_letters, digits

from msgspec import Struct
from msgspec.structs import replace

from tertulia.sim.behaviours import Behaviour, ScriptExhausted
from tertulia.sim.errors import Wire
from tertulia.sim.faults import (
    AnyFault,
    BlockedPrompt,
    ContentFilter,
    CutStream,
    Empty,
    EmptyCandidates,
    ErrorFrame,
    Finish,
    Internal,
    MalformedCall,
    MaxTokens,
    UsageOnlyLast,
)
from tertulia.sim.gemini.answers import (
    Composer,
    FinishedAnswer,
    TokenCounter,
    ask_of,
    parts_and_thoughts,
    raw_chunks,
    signed_content,
)
from tertulia.sim.gemini.catalogue import GEMMA, Model, bare_model, generation
from tertulia.sim.gemini.contents import contents_of, current_turn, parts_of
from tertulia.sim.gemini.errors import error, refused, rejection, too_many_tokens
from tertulia.sim.gemini.resources import Caches, Files
from tertulia.sim.gemini.rules import check, parse_body
from tertulia.sim.server import Clock
from tertulia.sim.signatures import Signatures
from tertulia.sim.usage import PrefixCache, TokenUsage

_USUAL_LIMIT = 64
_CACHED_PROMPTS = 64
_REPORTED = 0.95  # the service reports a little less than the whole prefix as cached
UselessAnswer = Empty | EmptyCandidates | MaxTokens | ContentFilter | BlockedPrompt | MalformedCall


class Caller(Struct, frozen=True, kw_only=True):
    """The caller of a request: the key, the model, and the name it was asked by."""

    key: str
    model: Model
    called: str
    host: str
    streams: bool


class Generator:
    """Answers requests for content."""

    def __init__(
        self,
        *,
        strict: bool,
        behaviour: Behaviour,
        seed: int,
        caches: Caches,
        files: Files,
        random: Random,
        clock: Clock,
    ) -> None:
        self._strict = strict
        self._behaviour = behaviour
        self._signatures = Signatures(f"tertulia gemini sim {seed}")
        self._caches = caches
        self._files = files
        self._random = random
        self._prompts = PrefixCache(clock, size=_CACHED_PROMPTS)

    def sign(self, model: str, part: Wire) -> str:
        """Return the signature that *model* puts on *part*."""
        return self._signatures.sign(bare_model(model), signed_content(part))

    def generate(self, body: object, caller: Caller, fault: AnyFault | None) -> list[Wire]:
        """Return the chunks of the response to *body*, one unless it streams. Raises the service's error."""
        request, cached = self._with_cache(self._checked(body, caller), caller)
        usage = self._prompt_usage(request, cached, caller)
        config = request.get("generationConfig", {})
        if isinstance(fault, UselessAnswer):
            return [self._useless(fault, caller.model, config, usage)]
        try:
            answer = self._behaviour.answer(ask_of(request, caller.model))
        except ScriptExhausted as ended:
            text = f"The script of the simulator has ended: it holds {ended.answers} answers."
            raise error(400, text, state="FAILED_PRECONDITION", rule="script") from ended
        if chunks := raw_chunks(answer):
            return _broken(chunks, fault)
        composer = Composer(sign=self.sign, new_id=lambda: self._id(8), response_id=self._id(22, "-_"))
        parts, thoughts = parts_and_thoughts(answer)
        message = composer.message(parts, model=caller.model, config=config, usage=usage, thoughts=thoughts)
        if isinstance(fault, Finish):
            message = replace(message, finish=fault.reason)
        return _broken(message.chunks if caller.streams else [message.whole], fault)

    def _checked(self, body: object, caller: Caller) -> Wire:
        refusal = check(body, model=caller.called, strict=self._strict)
        if refusal:
            raise refused(refusal)
        request, _ = parse_body("request", body)
        if objection := self._objection(request, caller.model.name):
            raise error(400, objection, rule="signature")
        return request

    def _objection(self, request: Wire, model: str) -> str | None:
        """Return what the service refuses in the signatures on calls of the current turn."""
        if generation(model) == "2.0" or generation(model) in GEMMA:
            return None
        calls = [part for content in current_turn(contents_of(request)) for _, part in content.calls]
        objections = (
            self._signatures.objection(part["thoughtSignature"], bare_model(model), signed_content(part))
            for part in calls
            if part.get("thoughtSignature")
        )
        return next((objection for objection in objections if objection), None)

    def _with_cache(self, request: Wire, caller: Caller) -> tuple[Wire, int]:
        name = request.get("cachedContent")
        if not name:
            return request, 0
        cache = self._caches.for_request(str(name), caller.key, caller.model.name)
        contents = [*cache.contents.get("contents", []), *request["contents"]]
        return request | cache.contents | {"contents": contents}, cache.tokens

    def _prompt_usage(self, request: Wire, cached: int, caller: Caller) -> TokenUsage:
        for _, part in parts_of(request):
            if "fileData" in part:
                self._files.check_use(part["fileData"].get("fileUri", ""), caller.key, caller.host)
        resolution = str(request.get("generationConfig", {}).get("mediaResolution", ""))
        counter = TokenCounter(generation(caller.model.name), self._files.size, resolution=resolution)
        prompt = counter.request(request)
        if prompt.total() > caller.model.input_limit:
            raise too_many_tokens(prompt.total(), caller.model.input_limit)
        smallest = caller.model.smallest_prefix
        if smallest is not None:
            seen = self._prompts.cached_tokens((caller.key, caller.model.name), counter.segments(request))
            cached = max(cached, int(seen * _REPORTED) if seen >= smallest else 0)
        return TokenUsage(prompt=prompt, cached=cached)

    def _useless(self, fault: UselessAnswer, model: Model, config: Wire, usage: TokenUsage) -> Wire:
        if isinstance(fault, MaxTokens):
            limit = config.get("maxOutputTokens")
            usage = replace(usage, thoughts=limit if isinstance(limit, int) else _USUAL_LIMIT)
        if isinstance(fault, BlockedPrompt):
            usage = TokenUsage(prompt=Counter(usage.prompt))
        message = FinishedAnswer(model=model, parts=[], finish="", usage=usage, response_id=self._id(22, "-_"))
        return message.framed(_useless_response(fault), usage)

    def _id(self, length: int, more: str = "") -> str:
        return "".join(self._random.choices(digits + ascii_letters + more, k=length))


def _broken(chunks: list[Wire], fault: AnyFault | None) -> list[Wire]:
    """Return *chunks* up to where their stream breaks."""
    match fault:
        case CutStream():
            return chunks[: fault.after]
        case ErrorFrame():
            return [*chunks[: fault.after], rejection(Internal(), "").body]
        case UsageOnlyLast():
            return [*chunks, {name: value for name, value in chunks[-1].items() if name != "candidates"}]
        case _:
            return chunks


def _useless_response(fault: UselessAnswer) -> Wire:
    """Return the response that *fault* stands for, without usage."""
    match fault:
        case Empty():
            content: Wire = {"role": "model"}
            if fault.content is not None:
                content = {"parts": [{"text": fault.content}], "role": "model"}
            return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
        case EmptyCandidates():
            return {}
        case MaxTokens():
            return {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]}
        case ContentFilter():
            rating = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
            return {"candidates": [{"content": {}, "finishReason": "SAFETY", "safetyRatings": [rating]}]}
        case BlockedPrompt():
            return {"promptFeedback": {"blockReason": fault.reason}}
        case MalformedCall():
            message = "Malformed function call: print(default_api.look("
            return {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message, "index": 0}]}


def joined_chunks(chunks: list[Wire]) -> Wire:
    """Return the chunks of a stream as a single response."""
    if len(chunks) == 1:
        return dict(chunks[0])
    candidates = [chunk["candidates"][0] for chunk in chunks if chunk.get("candidates")]
    parts = [part for one in candidates for part in one.get("content", {}).get("parts", [])]
    response: Wire = {}
    for chunk in chunks:
        response |= chunk
    if candidates:
        response["candidates"] = [candidates[-1] | {"content": {"parts": parts, "role": "model"}}]
    return response

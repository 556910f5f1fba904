"""The simulator of OpenAI-compatible servers: chat completions, embeddings, transcriptions and models."""

import hashlib
import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Literal, get_args

import orjson
from msgspec.structs import replace

from tertulia.sim.behaviours import Actor, Behaviour, ScriptExhausted
from tertulia.sim.errors import ServiceError, Wire
from tertulia.sim.faults import ANSWERS, BEFORE_ANSWER, BROKEN_STREAMS, CutStream, ErrorFrame, Hang, Internal, Rejection
from tertulia.sim.openai import errors
from tertulia.sim.openai.answers import (
    DIMENSIONS,
    Completion,
    Envelope,
    UselessAnswer,
    ask_of,
    chunks_of,
    completion_of,
    embeddings_of,
    reported,
    response_of,
    texts_in,
    usage_of,
    useless_completion,
)
from tertulia.sim.openai.errors import OpenAIRefusal
from tertulia.sim.openai.rules import AUDIO, check, demands, signature_on, signature_refusal, signs
from tertulia.sim.openai.transcriptions import (
    TRANSCRIBERS,
    check_form,
    read_form,
    refused_form,
    spoken_length,
    transcription_of,
)
from tertulia.sim.server import Clock, HttpRequest, HttpResponse, Received, Route, Simulator, stream, whole_response
from tertulia.sim.signatures import Signatures
from tertulia.sim.usage import PrefixCache

Audio = Literal["input_audio", "audio_url", "both", "none"]
Fault = Rejection | Hang | CutStream | ErrorFrame | UselessAnswer

MODELS = (
    "gpt-6-sol",
    "gpt-5.6",
    "gpt-5.6-mini",
    "gpt-4o",
    "gpt-4o-mini",
    "o1-mini",
    "o3-mini",
    "gemini-3.8-flash",
    "gemini-2.5-flash",
    "mistral-large-latest",
    "voxtral-small-latest",
    "compatible-1",
    *DIMENSIONS,
    *TRANSCRIBERS,
)

_ENDPOINT = re.compile(r".*?/(chat/completions|embeddings|audio/transcriptions|models)(?:/(.+))?/?")
_METHODS = {"chat/completions": "POST", "embeddings": "POST", "audio/transcriptions": "POST", "models": "GET"}
_BAD_KEYS = ("bad", "sk-inval")
_JSON = {"content-type": "application/json"}
_TEXT = {"content-type": "text/plain; charset=utf-8"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CREATED = 1_780_000_000  # when every model was made, in seconds since 1970
_CACHED_PROMPTS = 256
_MOST_CHOICES = 128
_REQUESTS_PER_MINUTE, _TOKENS_PER_MINUTE = 10_000, 2_000_000


class OpenAIService:
    """The endpoints."""

    secrets = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
    faults = get_args(Fault)

    def __init__(
        self,
        *,
        strict: bool,
        keys: frozenset[str] | None,
        models: tuple[str, ...] | None,
        behaviour: Behaviour,
        clock: Clock,
        seed: int,
        errors_as_list: bool,
        audio: Audio,
        transcribe: Callable[[bytes], str],
    ) -> None:
        self._transcribe = transcribe
        self._strict = strict
        self._keys = keys
        self._models = models
        self._behaviour = behaviour
        self._clock = clock
        self._seed = seed
        self._as_list = errors_as_list
        self._user_parts = AUDIO[audio]
        self._signatures = Signatures(f"tertulia {seed}")
        self._prompts = PrefixCache(clock, size=_CACHED_PROMPTS)
        self._drawn = count()
        self._requests = 0

    def headers(self) -> dict[str, str]:
        headers = {"x-request-id": f"req_{self._token('request', 32)}"}
        if not self._as_list:
            headers |= {
                "x-ratelimit-limit-requests": str(_REQUESTS_PER_MINUTE),
                "x-ratelimit-limit-tokens": str(_TOKENS_PER_MINUTE),
                "x-ratelimit-remaining-requests": str(max(0, _REQUESTS_PER_MINUTE - self._requests)),
                "x-ratelimit-remaining-tokens": str(_TOKENS_PER_MINUTE),
                "x-ratelimit-reset-requests": "6ms",
                "x-ratelimit-reset-tokens": "0s",
            }
        return headers | {"openai-version": "2020-10-01", "openai-processing-ms": "7"}

    def rejection(self, fault: Rejection, model: str) -> ServiceError:
        return errors.rejection(fault, model, as_list=self._as_list)

    def error_response(self, request: HttpRequest, error: ServiceError) -> HttpResponse:
        return whole_response(orjson.dumps(error.body), status=error.status, headers={**_JSON, **error.headers})

    def route(self, request: HttpRequest) -> Route:
        self._requests += 1
        endpoint = _ENDPOINT.fullmatch(request.path)
        if endpoint is None:
            raise self._refused(errors.no_url(request.method, request.path))
        name, rest = endpoint.groups()
        if request.method != _METHODS[name]:
            raise self._refused(errors.wrong_method(request.method, request.path))
        self._authorise(request.headers.get("authorization", ""))
        if name == "models":
            return Route(lambda _: _json(self._list_models(rest)))
        if name == "audio/transcriptions":
            return Route(lambda _: self._transcription(request), BEFORE_ANSWER)
        try:
            body = orjson.loads(request.data)
        except orjson.JSONDecodeError:
            body = None
        model = str(body.get("model") or "") if isinstance(body, dict) else ""
        if name == "embeddings":
            return Route(lambda _: _json(self._embeddings(body)), BEFORE_ANSWER, model)
        return Route(lambda fault: self._chat(body, fault), (*BEFORE_ANSWER, *ANSWERS, *BROKEN_STREAMS), model)

    def _refused(self, refusal: OpenAIRefusal) -> ServiceError:
        return errors.refused(refusal, as_list=self._as_list)

    def _authorise(self, authorization: str) -> None:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise self._refused(errors.no_key(google_words=self._as_list))
        if key.startswith(_BAD_KEYS) if self._keys is None else key not in self._keys:
            raise self._refused(errors.bad_key(key, google_words=self._as_list))

    def _check_model(self, model: object, *, chats: bool = False) -> None:
        """Refuse a model that is not served, or that only embeds where it should chat."""
        name = model.removeprefix("models/") if isinstance(model, str) else ""
        served = bool(name) and (self._models is None or name in self._models or model in self._models)
        others = {*DIMENSIONS, *TRANSCRIBERS}
        if not served or (chats and self._models is not None and name in others):
            raise self._refused(errors.no_model(model, google_words=self._as_list))

    def _list_models(self, name: str | None) -> Wire:
        if name is None:
            listed = MODELS if self._models is None else self._models
            return {"object": "list", "data": [_model(one) for one in listed]}
        if self._models is not None and name not in self._models:
            raise self._refused(errors.no_model(name, google_words=self._as_list))
        return _model(name)

    def _embeddings(self, body: Any) -> Wire:
        if not isinstance(body, dict):
            raise self._refused(errors.bad_input("input"))
        self._check_model(body.get("model"))
        texts = texts_in(body.get("input"))
        if texts is None:
            raise self._refused(errors.bad_input("input"))
        return embeddings_of(body, texts)

    def _transcription(self, request: HttpRequest) -> HttpResponse:
        if refusal := refused_form(len(request.data)):
            raise self._refused(refusal)
        form = read_form(request.headers.get("content-type", ""), request.data)
        if form is None:
            raise self._refused(errors.refusal("form", "Could not parse multipart form"))
        self._check_model(form.model)
        if self._models is not None and form.model in MODELS and form.model not in TRANSCRIBERS:
            raise self._refused(errors.no_model(form.model, google_words=self._as_list))
        refusal = check_form(form, strict=self._strict)
        if refusal or form.file is None:
            raise self._refused(refusal or errors.bad_input("file"))
        answer = transcription_of(form, form.file, self._transcribe)
        return whole_response(answer.encode(), headers=_TEXT) if isinstance(answer, str) else _json(answer)

    def _chat(self, body: Any, fault: Fault | None) -> HttpResponse:
        self._check(body)
        completion = self._with_ids(self._completion(body, fault), body["model"])
        if body.get("stream") is True:
            return self._stream(completion, body, fault)
        if isinstance(fault, ErrorFrame):
            raise self.rejection(Internal(), body["model"])
        response = completion.whole or response_of(completion, self._envelope(completion, body))
        return _json(response, cut=isinstance(fault, CutStream))

    def _check(self, body: Any) -> None:
        if not isinstance(body, dict) and (refusal := check(body)):
            raise self._refused(refusal)
        model = body.get("model")
        self._check_model(model, chats=True)
        if refusal := check(body, strict=self._strict, user_parts=self._user_parts):
            raise self._refused(refusal)
        if demands(model) and (refusal := signature_refusal(body["messages"], model, self._signatures)):
            raise errors.refused(refusal, as_list=True)

    def _completion(self, body: Wire, fault: Fault | None) -> Completion:
        if isinstance(fault, UselessAnswer):
            return useless_completion(fault, body)
        try:
            return completion_of(self._behaviour.answer(ask_of(body)), body)
        except ScriptExhausted as ended:
            raise self._refused(OpenAIRefusal("script", 500, str(ended), "server_error", None, None)) from ended

    def _with_ids(self, completion: Completion, model: str) -> Completion:
        """Add the ids and signatures that an answer leaves to the server."""
        calls = completion.message.get("tool_calls")
        if not calls:
            return completion
        named = [{"id": f"call_{self._token(f'call {i}', 24)}", "type": "function"} | c for i, c in enumerate(calls)]
        as_it_stands = completion.whole is not None or completion.chunks is not None
        if signs(model) and signature_on(named[0]) is None and not as_it_stands:
            signature = self._signatures.sign(model, named[0]["id"].encode())
            named[0]["extra_content"] = {"google": {"thought_signature": signature}}
        for call in named:
            if brought := signature_on(call):
                self._signatures.adopt(brought, model)
        return replace(completion, message=completion.message | {"tool_calls": named})

    def _envelope(self, completion: Completion, body: Wire) -> Envelope:
        choices, options = body.get("n"), body.get("stream_options")
        return Envelope(
            id=f"chatcmpl-{self._token('completion', 29)}",
            created=int(self._clock()),
            model=body["model"],
            choices=min(choices, _MOST_CHOICES) if isinstance(choices, int) and choices > 0 else 1,
            usage=reported(usage_of(body, completion.message, self._prompts)),
            streams_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    def _stream(self, completion: Completion, body: Wire, fault: Fault | None) -> HttpResponse:
        chunks = completion.chunks
        if chunks is None:
            chunks = list(chunks_of(completion, self._envelope(completion, body)))
        cut = isinstance(fault, CutStream)
        if isinstance(fault, CutStream):
            chunks = chunks[: fault.after]
        if isinstance(fault, ErrorFrame):
            chunks = [*chunks[: fault.after], errors.rejection(Internal(), body["model"], as_list=False).body]
        frames = [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks]
        done = [] if cut or isinstance(fault, ErrorFrame) else [b"data: [DONE]\n\n"]
        return stream([*frames, *done], headers=_EVENTS, cut=cut)

    def _token(self, purpose: str, length: int) -> str:
        """Letters and digits that look random, and are the same for the same seed."""
        seed = f"{self._seed}/{next(self._drawn)}/{purpose}"
        return "".join(_BASE62[byte % 62] for byte in hashlib.shake_256(seed.encode()).digest(length))


def _json(value: Wire, *, cut: bool = False) -> HttpResponse:
    return whole_response(orjson.dumps(value), headers=_JSON, cut=cut)


def _model(name: str) -> Wire:
    owner = "google" if name.startswith("gemini") else "tertulia" if name.startswith("compatible") else "openai"
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": owner}


class OpenAISim(Simulator[Fault]):
    """`async with OpenAISim() as sim:` serves chat, embeddings, transcriptions and models at `sim.url`.

    Without *keys* every key is good that does not begin with `bad` or `sk-inval`. *models* are those it serves; None
    serves every id; its name decides which rules hold. Time stands still unless *clock* runs (`clock=time.time`);
    `sim.clock.advance(seconds)` lets it pass. *errors_as_list* gives errors as a list, as Gemini's
    OpenAI-compatible endpoint does. *audio* is what it takes of sounds: `input_audio`, as OpenAI does; `audio_url`, as
    some other servers do; `both` or `none`. *transcribe* says what a sound says.
    """

    def __init__(
        self,
        *,
        strict: bool = True,
        keys: frozenset[str] | None = None,
        models: Iterable[str] | None = MODELS,
        behaviour: Behaviour | None = None,
        clock: Callable[[], float] | None = None,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        errors_as_list: bool = False,
        audio: Audio = "input_audio",
        transcribe: Callable[[bytes], str] = spoken_length,
        tell: Callable[[Received], None] | None = None,
    ) -> None:
        running = clock if isinstance(clock, Clock) else Clock(clock)
        service = OpenAIService(
            strict=strict,
            keys=keys,
            models=None if models is None else tuple(models),
            behaviour=behaviour or Actor(seed=seed),
            clock=running,
            seed=seed,
            errors_as_list=errors_as_list,
            audio=audio,
            transcribe=transcribe,
        )
        super().__init__(service, clock=running, host=host, port=port, tell=tell)

    @property
    def url(self) -> str:
        """The base URL to give to clients."""
        return f"{super().url}/v1"

"""The web application behind the simulator: the endpoints, what they refuse, and what they answer."""

import asyncio
import hashlib
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

import orjson
from msgspec import Struct
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from palaver.sim.openai import errors, faults
from palaver.sim.openai.answers import (
    Answer,
    Chunks,
    Envelope,
    Whole,
    answer_in,
    calls_tools,
    chunks_of,
    folded,
    response_of,
)
from palaver.sim.openai.behaviours import Behaviour, Reply, ScriptEnded, declared_functions
from palaver.sim.openai.embeddings import DIMENSIONS, embeddings_of, texts_in
from palaver.sim.openai.refusals import Refusal
from palaver.sim.openai.rules import MEDIA_PARTS, check
from palaver.sim.openai.signatures import Signatures, demands, signature_on, signs
from palaver.sim.openai.usage import PrefixCache, usage_of
from palaver.sim.openai.wire import Sent, base62, rate_headers, sent_json, sent_stream

Json = dict[str, Any]

ENDPOINT = re.compile(r".*?/(chat/completions|embeddings|models)(?:/(.+))?/?")
METHODS = {"chat/completions": "POST", "embeddings": "POST", "models": "GET"}
BAD_KEYS = ("bad", "sk-inval")
SECRETS = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
MADE = 1_780_000_000  # when every model was made, in seconds since 1970


class Settings(Struct, frozen=True, kw_only=True):
    strict: bool
    keys: frozenset[str] | None
    models: tuple[str, ...] | None
    behaviour: Behaviour
    clock: Callable[[], datetime]
    seed: int
    errors_as_list: bool
    audio_url: bool


class Received(Struct, kw_only=True):
    """A request as it came, and how it was answered."""

    method: str
    path: str
    headers: dict[str, str]  # without the key
    body: Any  # the JSON value, or the text where it is none
    status: int | None = None  # None as long as it is unanswered
    rule: str | None = None  # the rule that refused it


class Refused(Exception):
    def __init__(self, refusal: Refusal, *, as_list: bool, fault: faults.Rejection | None = None) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.as_list = as_list
        self.fault = fault


class App:
    """An ASGI application for one simulator."""

    def __init__(
        self, settings: Settings, *, known_models: Sequence[str], tell: Callable[[Received], None] | None = None
    ) -> None:
        self._tell = tell
        self._settings = settings
        self._known_models = known_models
        self._signatures = Signatures(settings.seed)
        self._cache = PrefixCache(settings.clock)
        self._drawn = count()
        self.requests: list[Received] = []
        self.faults: deque[faults.Fault] = deque()
        self.stopping = asyncio.Event()
        self._arrival = asyncio.Condition()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        received = Received(
            method=request.method,
            path=request.url.path,
            headers={name: value for name, value in request.headers.items() if name not in SECRETS},
            body=_parsed(await request.body()),
        )
        self.requests.append(received)
        async with self._arrival:
            self._arrival.notify_all()
        sent = await self._sent(request, received)
        received.status = sent.status
        if self._tell is not None:
            self._tell(received)
        await sent(send, {"x-request-id": f"req_{self._token('request', 32)}", **self._rate_headers()})

    async def until(self, ready: Callable[[list[Received]], bool]) -> None:
        """Wait until *ready* holds of the requests."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: ready(self.requests))

    async def _sent(self, request: Request, received: Received) -> Sent:
        try:
            return await self._answered(request, received)
        except Refused as refused:
            received.rule = None if refused.fault else refused.refusal.rule
            return self._error(refused)

    def _error(self, refused: Refused) -> Sent:
        waits = refused.fault.retry_after if isinstance(refused.fault, faults.RateLimited) else None
        body = errors.body_of(refused.refusal, as_list=refused.as_list, retry_after=waits)
        headers = errors.retry_headers(refused.fault) if refused.fault and not refused.as_list else {}
        return sent_json(body, status=refused.refusal.status, headers=headers)

    async def _answered(self, request: Request, received: Received) -> Sent:
        endpoint = ENDPOINT.fullmatch(received.path)
        if endpoint is None:
            raise self._refused(errors.no_url(received.method, received.path))
        name, rest = endpoint.groups()
        if received.method != METHODS[name]:
            raise self._refused(errors.wrong_method(received.method, received.path))
        self._authorise(request.headers.get("authorization", ""))
        if name == "models":
            return self._models(rest)
        hung = await self._strike(request, received.body)
        return self._embeddings(received.body) if name == "embeddings" else self._chat(received.body, spared=hung)

    def _refused(self, refusal: Refusal, *, fault: faults.Rejection | None = None) -> Refused:
        return Refused(refusal, as_list=self._settings.errors_as_list, fault=fault)

    def _authorise(self, authorization: str) -> None:
        google = self._settings.errors_as_list
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise self._refused(errors.no_key(google=google))
        keys = self._settings.keys
        if key.startswith(BAD_KEYS) if keys is None else key not in keys:
            raise self._refused(errors.bad_key(key, google=google))

    async def _strike(self, request: Request, body: object) -> bool:
        """Refuse by the fault that is due, or hang; True if this request has had its fault by that."""
        fault = self.faults[0] if self.faults else None
        if fault is None or isinstance(fault, faults.Spoiling):
            return False
        self.faults.popleft()
        if not isinstance(fault, faults.Hang):
            raise self._rejected(fault, body)
        if not await self._hung(fault.seconds, request.receive):
            raise self._rejected(faults.Overloaded(), body)
        return True

    def _rejected(self, fault: faults.Rejection, body: object) -> Refused:
        model = str(body.get("model") or "") if isinstance(body, Mapping) else ""
        return self._refused(errors.rejection(fault, model, google=self._settings.errors_as_list), fault=fault)

    async def _hung(self, seconds: float, receive: Receive) -> bool:
        """Wait; False as soon as the client leaves or the simulator stops."""
        ends = {asyncio.ensure_future(receive()), asyncio.ensure_future(self.stopping.wait())}
        done, waiting = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return not done

    def _models(self, wanted: str | None) -> Sent:
        listed = [*(self._settings.models or self._known_models), *DIMENSIONS]
        if wanted is None:
            return sent_json({"object": "list", "data": [_model(name) for name in listed]})
        if self._settings.models is not None and wanted not in listed:
            raise self._refused(errors.no_model(wanted, google=self._settings.errors_as_list))
        return sent_json(_model(wanted))

    def _known(self, body: Json, others: Sequence[str] = ()) -> str:
        model = body.get("model")
        models = self._settings.models
        if isinstance(model, str) and model and (models is None or model in (*models, *others)):
            return model
        if isinstance(model, str) and models is not None and model.removeprefix("models/") in (*models, *others):
            return model
        raise self._refused(errors.no_model(model, google=self._settings.errors_as_list))

    def _embeddings(self, body: Any) -> Sent:
        if not isinstance(body, dict):
            raise self._refused(errors.bad_input("input"))
        self._known(body, others=tuple(DIMENSIONS))
        texts = texts_in(body.get("input"))
        if texts is None:
            raise self._refused(errors.bad_input("input"))
        return sent_json(embeddings_of(body, texts))

    def _chat(self, body: Any, *, spared: bool) -> Sent:
        self._validate(body)
        fault = None if spared else self._spoiling()
        reply = self._reply(body, fault)
        answer = self._completed(reply, body["model"])
        if body.get("stream") is True:
            return self._streamed(reply, answer, body=body, fault=fault)
        if isinstance(fault, faults.ErrorFrame):
            raise self._rejected(faults.Internal(), body)
        response = reply.response if isinstance(reply, Whole) else response_of(answer, self._envelope(answer, body))
        return sent_json(response, cut=isinstance(fault, faults.CutStream))

    def _spoiling(self) -> faults.Spoiling | None:
        fault = self.faults[0] if self.faults else None
        if not isinstance(fault, faults.Spoiling):
            return None
        self.faults.popleft()
        return fault

    def _validate(self, body: Any) -> None:
        settings = self._settings
        if not isinstance(body, dict) and (refusal := check(body)):
            raise self._refused(refusal)
        model = self._known(body)
        extra = MEDIA_PARTS if settings.audio_url else frozenset[str]()
        if refusal := check(body, strict=settings.strict, extra_parts=extra):
            raise self._refused(refusal)
        if demands(model) and (refusal := self._signatures.refusal(body["messages"], model)):
            raise Refused(refusal, as_list=True)

    def _reply(self, body: Json, fault: faults.Spoiling | None) -> Reply:
        if spoiled := _spoiled(fault, body):
            return spoiled
        seed = hashlib.sha256(orjson.dumps(body["messages"])).hexdigest()
        try:
            return self._settings.behaviour.answer(body, seed=f"{self._settings.seed}/{seed}")
        except ScriptEnded as ended:
            raise self._refused(errors.script_ended(str(ended))) from ended

    def _completed(self, reply: Reply, model: str) -> Answer:
        """The answer of a reply, with the ids and signatures that it leaves to the server."""
        if isinstance(reply, Whole):
            answer = answer_in(reply.response)
        else:
            answer = folded(reply.chunks) if isinstance(reply, Chunks) else reply
        calls = answer.message.get("tool_calls")
        if not calls:
            return answer
        named = [{"id": f"call_{self._token(f'call {i}', 24)}", "type": "function"} | c for i, c in enumerate(calls)]
        if signs(model) and signature_on(named[0]) is None and isinstance(reply, Answer):
            signature = self._signatures.issue(model, named[0]["id"])
            named[0]["extra_content"] = {"google": {"thought_signature": signature}}
        for call in named:
            self._signatures.adopt(signature_on(call) or "", model)
        return Answer(message=answer.message | {"tool_calls": named}, finish_reason=answer.finish_reason)

    def _envelope(self, answer: Answer, body: Json) -> Envelope:
        choices, options = body.get("n"), body.get("stream_options")
        usage = usage_of(body, answer.message, cached=self._cache.cached_tokens(body))
        return Envelope(
            id=f"chatcmpl-{self._token('completion', 29)}",
            created=int(self._settings.clock().timestamp()),
            model=body["model"],
            choices=min(choices, 128) if isinstance(choices, int) and choices > 0 else 1,
            usage=usage,
            streams_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        )

    def _streamed(self, reply: Reply, answer: Answer, *, body: Json, fault: faults.Spoiling | None) -> Sent:
        chunks = reply.chunks if isinstance(reply, Chunks) else [*chunks_of(answer, self._envelope(answer, body))]
        if isinstance(fault, faults.CutStream):
            return sent_stream(chunks[: fault.after], cut=True)
        if isinstance(fault, faults.ErrorFrame):
            refusal = errors.rejection(faults.Internal(), body["model"], google=False)
            return sent_stream([*chunks[: fault.after], errors.body_of(refusal, as_list=False)], done=False)
        return sent_stream(chunks)

    def _token(self, purpose: str, length: int) -> str:
        return base62(f"{self._settings.seed}/{next(self._drawn)}/{purpose}", length)

    def _rate_headers(self) -> dict[str, str]:
        return {} if self._settings.errors_as_list else rate_headers(len(self.requests))


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")


def _model(name: str) -> Json:
    owner = "google" if name.startswith("gemini") else "palaver" if name.startswith("compatible") else "openai"
    return {"id": name, "object": "model", "created": MADE, "owned_by": owner}


def _spoiled(fault: faults.Spoiling | None, request: Json) -> Answer | None:
    """The answer that takes the place of the behaviour's, or None where the fault is in how it is sent."""
    match fault:
        case faults.Empty(content):
            return Answer(message={"content": content})
        case faults.ContentFilter():
            return Answer(message={"content": None}, finish_reason="content_filter")
        case faults.Length():
            return Answer(message={"content": ""}, finish_reason="length")
        case faults.Refusal(text):
            return Answer(message={"content": None, "refusal": text})
        case faults.MalformedArguments(arguments):
            functions = declared_functions(request)
            return calls_tools((functions[0]["name"] if functions else "search", arguments))
        case _:
            return None

"""The simulator of the Gemini API: its endpoints, keys, envelopes and streams."""

import hashlib
import re
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, get_args

import orjson
from msgspec import Struct

from tertulia.sim.behaviours import DIMENSIONS, Actor, Behaviour, embed
from tertulia.sim.errors import ServiceError, Wire
from tertulia.sim.faults import ANSWERS, BEFORE_ANSWER, BROKEN_STREAMS, BrokenStream, CutStream, Finish, Hang, Rejection
from tertulia.sim.gemini.answers import TokenCounter, details
from tertulia.sim.gemini.catalogue import MODELS, RETIRED, Catalogue, Model, generation
from tertulia.sim.gemini.errors import (
    AuthError,
    bad_key,
    error,
    no_key,
    no_path,
    parsed,
    rejection,
    retired_model,
    unknown_model,
)
from tertulia.sim.gemini.generator import Caller, Generator, UselessAnswer, joined_chunks
from tertulia.sim.gemini.resources import CachedContent, Caches, Files, page
from tertulia.sim.server import Clock, HttpRequest, HttpResponse, Received, Route, Simulator, stream, whole_response

Fault = Rejection | Hang | BrokenStream | UselessAnswer | Finish

BAD_KEYS = frozenset({"bad-key", "invalid", "invalid-key"})
"""Keys that are refused where no list of good ones is given."""

_JSON = {"content-type": "application/json; charset=UTF-8"}
_EVENTS = {"content-type": "text/event-stream"}
_PATH = re.compile(r"(?P<prefix>.*?)/(?P<upload>upload/)?(?P<version>v1|v1beta|v1alpha)/(?P<resource>[^?]+)")
_MOST_EMBEDDED = 100
_FEWEST_DIMENSIONS = 128
_CHUNK = str(8 * 1024 * 1024)


class ApiCall(Struct, frozen=True, kw_only=True):
    """A request with its path taken apart."""

    request: HttpRequest
    resource: str
    version: str
    base: str
    is_upload: bool

    @property
    def key(self) -> str:
        return self.request.headers.get("x-goog-api-key") or self.request.query.get("key") or ""

    @property
    def body(self) -> object:
        """The body as JSON. Raises the service's error."""
        try:
            return orjson.loads(self.request.data) if self.request.data else {}
        except orjson.JSONDecodeError as invalid:
            raise error(400, f"Invalid JSON payload received. {invalid}", rule="json") from invalid

    @property
    def streams(self) -> bool:
        return self.resource.endswith(":streamGenerateContent")

    @property
    def as_events(self) -> bool:
        return self.streams and self.request.query.get("alt") == "sse"


def _call(request: HttpRequest) -> ApiCall | None:
    found = _PATH.fullmatch(request.path)
    if found is None:
        return None
    base, is_upload = f"{request.url}{found['prefix']}", found["upload"] is not None
    return ApiCall(
        request=request, resource=found["resource"], version=found["version"], base=base, is_upload=is_upload
    )


def _json(body: Wire, *, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    return whole_response(
        orjson.dumps(body, option=orjson.OPT_INDENT_2), status=status, headers=_JSON | (headers or {})
    )


def _stream(call: ApiCall, chunks: list[Wire], *, cut: bool) -> HttpResponse:
    """Return *chunks* as events, or as the entries of a JSON list where events were not asked for."""
    attachment = {"content-disposition": "attachment"}
    if call.as_events:
        events = [b"data: " + orjson.dumps(chunk) + b"\r\n\r\n" for chunk in chunks]
        return stream(events, headers=_EVENTS | attachment, cut=cut)
    entries = [(b",\r\n" if place else b"[") + orjson.dumps(chunk) for place, chunk in enumerate(chunks)]
    return stream(entries if cut else [*entries, b"]"], headers=_JSON | attachment, cut=cut)


class GeminiService:
    """The endpoints, and what they keep."""

    secrets = frozenset({"x-goog-api-key", "authorization", "key"})
    faults = get_args(Fault)

    def __init__(
        self,
        *,
        strict: bool,
        keys: frozenset[str] | None,
        catalogue: Catalogue,
        behaviour: Behaviour,
        clock: Clock,
        seed: int,
        processing: float,
    ) -> None:
        random = Random(seed)  # noqa: S311 (ids that are the same each time)
        self._keys = keys
        self._catalogue = catalogue
        self.files = Files(clock, random, processing=processing)
        self.caches = Caches(clock, random, catalogue=catalogue, sizes=self.files.size)
        self.generator = Generator(
            strict=strict,
            behaviour=behaviour,
            seed=seed,
            caches=self.caches,
            files=self.files,
            random=random,
            clock=clock,
        )

    def headers(self) -> Wire:
        return {}

    def rejection(self, fault: Rejection, model: str) -> ServiceError:
        return rejection(fault, model)

    def error_response(self, request: HttpRequest, error: ServiceError) -> HttpResponse:
        """Return the response for an error; it has the content type of a stream unless the caller is unknown."""
        call = _call(request)
        body = orjson.dumps(error.body, option=orjson.OPT_INDENT_2)
        if call is None or not call.streams or isinstance(error, AuthError):
            return whole_response(body, status=error.status, headers=_JSON)
        if call.as_events:
            return whole_response(body, status=error.status, headers=_EVENTS)
        return whole_response(b"[" + body + b"]", status=error.status, headers=_JSON)

    def route(self, request: HttpRequest) -> Route:
        call = _call(request)
        if call is None:
            raise no_path()
        if not (call.is_upload and "upload_id" in request.query):
            self._authorise(call.key)
        if call.is_upload:
            return Route(lambda _: self._upload(call))
        collection, _, name = call.resource.partition("/")
        match collection:
            case "models" if request.method == "GET":
                return Route(lambda _: _json(self._list_models(call, name)))
            case "models":
                return self._model_route(call, *name.partition(":")[::2])
            case "cachedContents":
                return Route(lambda _: _json(self._cached_contents(call, name)), BEFORE_ANSWER)
            case "files":
                return Route(lambda _: _json(self._file(call, name)))
            case _:
                raise no_path()

    def _authorise(self, key: str) -> None:
        if not key:
            raise no_key()
        if key in BAD_KEYS if self._keys is None else key not in self._keys:
            raise bad_key()

    def _model_route(self, call: ApiCall, name: str, method: str) -> Route:
        if call.request.method != "POST" or not method:
            raise no_path()
        model = self._catalogue.find(name, call.version)
        supported = {"streamGenerateContent": "generateContent"}.get(method, method)
        if model is None and name in RETIRED:
            raise retired_model(name)
        if model is None or supported not in model.methods:
            raise unknown_model(name, call.version, supported)
        if supported == "generateContent":
            kinds = (*BEFORE_ANSWER, *ANSWERS, *(BROKEN_STREAMS if call.streams else ()))
            return Route(lambda fault: self._generate(call, model, name, fault), kinds, name)
        if method == "countTokens":
            return Route(lambda _: _json(self._count_tokens(call.body, model)), BEFORE_ANSWER, name)
        if method == "embedContent":
            return Route(
                lambda _: _json({"embedding": _embedding(parsed("embedContent", call.body), model)}),
                BEFORE_ANSWER,
                name,
            )
        return Route(lambda _: _json(_embed_batch(call.body, model)), BEFORE_ANSWER, name)

    def _generate(self, call: ApiCall, model: Model, called: str, fault: Fault | None) -> HttpResponse:
        host = call.request.headers.get("host", "")
        caller = Caller(key=call.key, model=model, called=called, host=host, streams=call.streams)
        chunks = self.generator.generate(call.body, caller, fault)
        return _stream(call, chunks, cut=isinstance(fault, CutStream)) if call.streams else _json(joined_chunks(chunks))

    def _count_tokens(self, body: object, model: Model) -> Wire:
        wanted = parsed("countTokens", body)
        request = wanted.get("generateContentRequest", wanted)
        if not request.get("contents"):
            raise error(400, "* CountTokensRequest.contents: contents is not specified\n", rule="no-contents")
        tokens = TokenCounter(generation(model.name), self.files.size).request(request)
        return {"totalTokens": tokens.total(), "promptTokensDetails": details(tokens)}

    def _list_models(self, call: ApiCall, name: str) -> Wire:
        if not name:
            return page("models", [model.wire for model in self._catalogue.models.values()], call.request.query)
        model = self._catalogue.find(name, call.version)
        if model is None:
            raise unknown_model(name, call.version, "getModel")
        return model.wire | {"name": f"models/{name}"}

    def _cached_contents(self, call: ApiCall, name: str) -> Wire:
        full_name = f"cachedContents/{name}"
        match call.request.method, bool(name):
            case "POST", False:
                return self.caches.create(call.body, owner=call.key, version=call.version)
            case "GET", False:
                return self.caches.list(call.key, call.request.query)
            case "GET", True:
                return self.caches.get(full_name, call.key).wire
            case "PATCH", True:
                return self.caches.update(full_name, call.key, call.body)
            case "DELETE", True:
                return self.caches.delete(full_name, call.key)
            case _:
                raise no_path()

    def _file(self, call: ApiCall, name: str) -> Wire:
        match call.request.method, bool(name):
            case "GET", False:
                return self.files.list(call.key, call.request.query)
            case "GET", True:
                return self.files.show(f"files/{name}", call.key)
            case "DELETE", True:
                return self.files.delete(f"files/{name}", call.key)
            case _:
                raise no_path()

    def _upload(self, call: ApiCall) -> HttpResponse:
        headers = call.request.headers
        commands = re.split(r"\s*,\s*", headers.get("x-goog-upload-command", ""))
        if call.resource != "files" or call.request.method != "POST":
            raise no_path()
        if "start" in commands:
            return self._start_upload(call)
        upload_id = call.request.query.get("upload_id", "")
        offset = headers.get("x-goog-upload-offset", "0")
        if not offset.isdecimal():
            raise error(400, f"Invalid upload offset: {offset}.", rule="file")
        size = self.files.add(upload_id, call.request.data if "upload" in commands else b"", offset=int(offset))
        if "finalize" in commands:
            return _json(self.files.finish(upload_id), headers={"x-goog-upload-status": "final"})
        return whole_response(b"", headers={"x-goog-upload-status": "active", "x-goog-upload-size-received": str(size)})

    def _start_upload(self, call: ApiCall) -> HttpResponse:
        mime = call.request.headers.get("x-goog-upload-header-content-type", "application/octet-stream")
        upload_id = self.files.start(call.body, owner=call.key, mime=mime, base=f"{call.base}/{call.version}")
        url = f"{call.base}/upload/{call.version}/files?upload_id={upload_id}&upload_protocol=resumable"
        headers = {
            "x-goog-upload-url": url,
            "x-goog-upload-status": "active",
            "x-goog-upload-chunk-granularity": _CHUNK,
        }
        return whole_response(b"", headers=headers)


def _embed_batch(body: object, model: Model) -> Wire:
    requests = parsed("batchEmbedContents", body).get("requests", [])
    if len(requests) > _MOST_EMBEDDED:
        message = "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n"
        raise error(400, message, rule="embed")
    return {"embeddings": [_embedding(request, model) for request in requests]}


def _embedding(request: Wire, model: Model) -> Wire:
    parts = request.get("content", {}).get("parts", [])
    if not parts:
        raise error(400, "* EmbedContentRequest.content: contents is not specified\n", rule="embed")
    dimensions = request.get("outputDimensionality", DIMENSIONS)
    is_number = isinstance(dimensions, int) and not isinstance(dimensions, bool)
    if not is_number or not _FEWEST_DIMENSIONS <= dimensions <= DIMENSIONS:
        bounds = f"{_FEWEST_DIMENSIONS} and {DIMENSIONS}"
        message = f"* EmbedContentRequest.output_dimensionality: must be between {bounds}\n"
        raise error(400, message, rule="embed")
    normalise = model.name != "gemini-embedding-001" or dimensions == DIMENSIONS
    texts = [str(part["text"]) if "text" in part else hashlib.sha256(orjson.dumps(part)).hexdigest() for part in parts]
    return {"values": embed("\n".join(texts), dimensions=dimensions, normalise=normalise)}


class GeminiSim(Simulator[Fault]):
    """`async with GeminiSim() as sim:` serves the Gemini API at `sim.url` until the block ends.

    Without *keys* every key is good but `bad-key`, `invalid` and `invalid-key`. *models* are those it serves; None
    serves every id by the rules that its name tells. Time stands still unless *clock* runs (`clock=time.time`);
    `sim.clock.advance(seconds)` lets it pass. Video and audio files are ready after *processing* seconds.
    """

    def __init__(
        self,
        *,
        strict: bool = True,
        keys: frozenset[str] | None = None,
        models: Iterable[Model | str] | None = MODELS,
        behaviour: Behaviour | None = None,
        clock: Callable[[], float] | None = None,
        seed: int = 0,
        processing: float = 5.0,
        host: str = "127.0.0.1",
        port: int = 0,
        tell: Callable[[Received], None] | None = None,
    ) -> None:
        running = clock if isinstance(clock, Clock) else Clock(clock)
        self._gemini = GeminiService(
            strict=strict,
            keys=keys,
            catalogue=Catalogue(models),
            behaviour=behaviour or Actor(seed=seed),
            clock=running,
            seed=seed,
            processing=processing,
        )
        super().__init__(self._gemini, clock=running, host=host, port=port, tell=tell)

    def sign(self, model: str, part: dict[str, Any]) -> str:
        """Return the signature that *model* puts on *part*."""
        return self._gemini.generator.sign(model, part)

    @property
    def files(self) -> Files:
        """The uploaded files, and how uploads fare."""
        return self._gemini.files

    @property
    def caches(self) -> dict[str, CachedContent]:
        """The cached contents by name."""
        return self._gemini.caches.by_name

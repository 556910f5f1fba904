"""The endpoints of the simulator, each a function of a call."""

import hashlib
import re
from random import Random
from typing import Any

import orjson
from starlette.responses import Response as HttpResponse

from palaver.sim.gemini.behaviours import Behaviour
from palaver.sim.gemini.caches import Caches
from palaver.sim.gemini.catalogue import RETIRED, Catalogue, Model
from palaver.sim.gemini.clock import Clock
from palaver.sim.gemini.errors import ServiceError, refused, retired_model, unknown_model
from palaver.sim.gemini.faults import BREAKING, REFUSING, Faults, Hang, error_of
from palaver.sim.gemini.files import Files
from palaver.sim.gemini.generating import SHAPING, Caller, Generator
from palaver.sim.gemini.http import Call, Responding, json_response, stream_response
from palaver.sim.gemini.paging import page
from palaver.sim.gemini.rules import generation, read
from palaver.sim.gemini.signatures import Signatures
from palaver.sim.gemini.tokens import Counting, details
from palaver.sim.vectors import DIMENSIONS, embed

Wire = dict[str, Any]

_AT_ONCE = (*REFUSING, Hang)
_MOST_EMBEDDED = 100
_CHUNK = str(8 * 1024 * 1024)


class Service:
    """Everything the simulator knows and does."""

    def __init__(
        self, *, strict: bool, behaviour: Behaviour, catalogue: Catalogue, clock: Clock, seed: int, processing: float
    ) -> None:
        random = Random(seed)  # noqa: S311 (ids that are the same each time)
        self.faults = Faults()
        self.signatures = Signatures(seed)
        self._catalogue = catalogue
        self._files = Files(clock, random, processing=processing)
        self._caches = Caches(clock, random, catalogue=catalogue, sizes=self._files.size)
        self._generator = Generator(
            strict=strict,
            behaviour=behaviour,
            signatures=self.signatures,
            caches=self._caches,
            files=self._files,
            faults=self.faults,
            random=random,
        )

    def answer(self, call: Call) -> Hang | Responding:
        """The response to *call*; raises the service's error."""
        if call.upload:
            return self._upload(call)
        collection, _, name = call.resource.partition("/")
        if collection == "models":
            return self._models(call, name)
        if collection == "cachedContents":
            return self._hindered(call, "") or json_response(self._cached(call, name))
        if collection == "files":
            return json_response(self._filed(call, name))
        raise _no_path()

    def _models(self, call: Call, name: str) -> Hang | Responding:
        if call.method == "GET":
            return json_response(self._listed(call, name))
        model_name, _, method = name.partition(":")
        if call.method != "POST" or not method:
            raise _no_path()
        model = self._model(model_name, call.version, method)
        hindrance = self._hindered(call, model_name)
        if hindrance:
            return hindrance
        if method in ("generateContent", "streamGenerateContent"):
            return self._generate(call, model, model_name)
        if method == "countTokens":
            return json_response(self._count(call.body, model))
        if method == "embedContent":
            return json_response({"embedding": self._embedding(_read("embedContent", call.body), model)})
        return json_response(self._embeddings(call.body, model))

    def _model(self, name: str, version: str, method: str) -> Model:
        model = self._catalogue.find(name, version)
        supported = {"streamGenerateContent": "generateContent"}.get(method, method)
        if model is None and name in RETIRED:
            raise retired_model(name)
        if model is None or supported not in model.methods:
            raise unknown_model(name, version, supported)
        return model

    def _hindered(self, call: Call, model: str) -> Hang | None:
        """What is asked to go wrong before the request is looked at."""
        kinds: tuple[Any, ...] = _AT_ONCE
        if "enerateContent" in call.resource:
            kinds = (*_AT_ONCE, *SHAPING, *(BREAKING if call.streams else ()))
        fault = self.faults.take(kinds, only=_AT_ONCE)
        if isinstance(fault, REFUSING):
            raise error_of(fault, model)
        return fault if isinstance(fault, Hang) else None

    def _generate(self, call: Call, model: Model, called: str) -> Responding:
        caller = Caller(key=call.key, model=model, called=called, hosts=call.hosts, stream=call.streams)
        response = self._generator.generate(call.body, caller)
        if call.streams:
            return stream_response(call, response.chunks, cut=response.cut)
        return json_response(response.whole)

    def _count(self, body: object, model: Model) -> Wire:
        wanted = _read("countTokens", body)
        request = wanted.get("generateContentRequest", wanted)
        if not request.get("contents"):
            message = "* CountTokensRequest.contents: contents is not specified\n"
            raise ServiceError(400, message, rule="no-contents")
        counted = Counting(generation(model.name), self._files.size).request(request)
        return {"totalTokens": sum(counted.values()), "promptTokensDetails": details(counted)}

    def _embeddings(self, body: object, model: Model) -> Wire:
        requests = _read("batchEmbedContents", body).get("requests", [])
        if len(requests) > _MOST_EMBEDDED:
            message = "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n"
            raise ServiceError(400, message, rule="embed")
        return {"embeddings": [self._embedding(request, model) for request in requests]}

    def _embedding(self, request: Wire, model: Model) -> Wire:
        parts = request.get("content", {}).get("parts", [])
        if not parts:
            raise ServiceError(400, "* EmbedContentRequest.content: contents is not specified\n", rule="embed")
        dimensions = request.get("outputDimensionality", DIMENSIONS)
        least = 128
        if not isinstance(dimensions, int) or isinstance(dimensions, bool) or not least <= dimensions <= DIMENSIONS:
            message = f"* EmbedContentRequest.output_dimensionality: must be between {least} and {DIMENSIONS}\n"
            raise ServiceError(400, message, rule="embed")
        normalise = model.name != "gemini-embedding-001" or dimensions == DIMENSIONS
        text = "\n".join(_embedded_text(part) for part in parts)
        return {"values": embed(text, dimensions=dimensions, normalise=normalise)}

    def _listed(self, call: Call, name: str) -> Wire:
        if not name:
            return page("models", [model.wire for model in self._catalogue.models.values()], call.query)
        model = self._catalogue.find(name, call.version)
        if model is None:
            raise unknown_model(name, call.version, "getModel")
        return model.wire | {"name": f"models/{name}"}

    def _cached(self, call: Call, name: str) -> Wire:
        full_name = f"cachedContents/{name}"
        match call.method, bool(name):
            case "POST", False:
                return self._caches.create(call.body, owner=call.key, version=call.version)
            case "GET", False:
                return self._caches.list(call.key, call.query)
            case "GET", True:
                return self._caches.get(full_name, call.key).wire
            case "PATCH", True:
                return self._caches.update(full_name, call.key, call.body)
            case "DELETE", True:
                return self._caches.delete(full_name, call.key)
            case _:
                raise _no_path()

    def _filed(self, call: Call, name: str) -> Wire:
        match call.method, bool(name):
            case "GET", False:
                return self._files.list(call.key, call.query)
            case "GET", True:
                return self._files.show(f"files/{name}", call.key)
            case "DELETE", True:
                return self._files.delete(f"files/{name}", call.key)
            case _:
                raise _no_path()

    def _upload(self, call: Call) -> HttpResponse:
        commands = re.split(r"\s*,\s*", call.headers.get("x-goog-upload-command", ""))
        if call.resource != "files" or call.method != "POST":
            raise _no_path()
        if "start" in commands:
            return self._start_upload(call)
        upload_id = call.query.get("upload_id", "")
        told = call.headers.get("x-goog-upload-offset", "0")
        if not told.isdecimal():
            raise ServiceError(400, f"Invalid upload offset: {told}.", rule="file")
        offset = int(told)
        size = self._files.add(upload_id, call.data if "upload" in commands else b"", offset=offset)
        if "finalize" in commands:
            return json_response(self._files.finish(upload_id), headers={"X-Goog-Upload-Status": "final"})
        state = {"X-Goog-Upload-Status": "active", "X-Goog-Upload-Size-Received": str(size)}
        return HttpResponse(b"", headers=state)

    def _start_upload(self, call: Call) -> HttpResponse:
        mime = call.headers.get("x-goog-upload-header-content-type", "application/octet-stream")
        base = f"{call.base}/{call.version}"
        upload_id = self._files.start(call.body, owner=call.key, mime=mime, base=base)
        url = f"{call.base}/upload/{call.version}/files?upload_id={upload_id}&upload_protocol=resumable"
        state = {
            "X-Goog-Upload-URL": url,
            "X-Goog-Upload-Status": "active",
            "X-Goog-Upload-Chunk-Granularity": _CHUNK,
        }
        return HttpResponse(b"", headers=state)


def _no_path() -> ServiceError:
    return ServiceError(404, "Requested entity was not found.", rule="path")


def _read(kind: str, body: object) -> Wire:
    found, unread = read(kind, body)
    if unread:
        raise refused(unread)
    return found


def _embedded_text(part: Wire) -> str:
    return str(part["text"]) if "text" in part else hashlib.sha256(orjson.dumps(part)).hexdigest()

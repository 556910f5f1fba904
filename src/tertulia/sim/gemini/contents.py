"""Rules of contents: required fields, media, roles, the order of calls and results, and signatures. Pure."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from msgspec import Struct

from tertulia.sim.errors import Wire
from tertulia.sim.gemini.catalogue import GEMMA, THREE_AND_LATER, THREE_SIX_AND_LATER, TWO, RequestedModel
from tertulia.sim.gemini.fields import DATA_FIELDS, BrokenRule
from tertulia.sim.signatures import missing_signature

PAYLOAD_LIMIT = 100 * 1024 * 1024
UNREADABLE = frozenset({"no-contents", "no-parts", "no-data"})
"""Rules after which the service does not check the conversation."""
_BASE64 = re.compile(r"[A-Za-z0-9+/\-_=]*")
_SUPPORTED = frozenset(
    {f"image/{kind}" for kind in "png jpeg webp heic heif gif".split()}
    | {f"audio/{kind}" for kind in "wav x-wav mp3 mpeg aiff aac ogg flac m4a opus webm".split()}
    | {f"video/{kind}" for kind in "mp4 mpeg mov avi x-flv mpg webm wmv 3gpp quicktime".split()}
    | {"application/pdf", "application/json"}
)
CALL_AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
RESULT_AFTER_CALL = "Please ensure that function response turn comes immediately after a function call turn."
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the"
    " function call turn."
)
ENDS_WITH_MODEL = "Requests ending with a model turn are not supported."
_NEW_ROLES = ("system", "system_1", "user", "assistant", "developer", "context", "user_context", "model")
_NEW_ROLE_MESSAGE = (
    "Role '{}' is not supported. Please use a valid role:"
    " SYSTEM, SYSTEM_1, USER, ASSISTANT, DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER."
)
_OLD_ROLES = ("user", "model", "function", "tool")


def inline_data(request: Wire) -> Iterator[tuple[str, Wire]]:
    """Yield every `inlineData` of *request*, with its place."""
    for where, part in parts_of(request):
        if "inlineData" in part:
            yield f"{where}.inlineData", part["inlineData"]


def parts_of(request: Wire) -> Iterator[tuple[str, Wire]]:
    """Yield every part of the instruction and the contents, with its place."""
    for j, part in enumerate(request.get("systemInstruction", {}).get("parts", [])):
        yield f"systemInstruction.parts[{j}]", part
    for i, content in enumerate(request.get("contents", [])):
        for j, part in enumerate(content.get("parts", [])):
            yield f"contents[{i}].parts[{j}]", part


def payload_size(request: Wire) -> Iterator[BrokenRule]:
    inside = sum(len(data) for content in request.get("contents", []) for data in _data_in_results(content))
    if inside + sum(len(data.get("data", "")) for _, data in inline_data(request)) > PAYLOAD_LIMIT:
        yield BrokenRule("payload-size", f"Request payload size exceeds the limit: {PAYLOAD_LIMIT} bytes.")


def _data_in_results(content: Wire) -> Iterator[str]:
    """Yield the data in the parts of function results, which the parser does not read."""
    for part in content.get("parts", []):
        carried = part.get("functionResponse", {}).get("parts")
        for one in carried if isinstance(carried, list) else []:
            blob = (one.get("inlineData") or one.get("inline_data")) if isinstance(one, dict) else None
            data = blob.get("data") if isinstance(blob, dict) else None
            if isinstance(data, str):
                yield data


def missing(request: Wire, requested: RequestedModel) -> Iterator[BrokenRule]:
    """Find required fields that are missing."""
    if not request.get("contents"):
        yield BrokenRule("no-contents", "* GenerateContentRequest.contents: contents is not specified", "contents")
    for i, content in enumerate(request.get("contents", [])):
        parts = content.get("parts", [])
        if not parts:
            message = f"* GenerateContentRequest.contents[{i}].parts: contents.parts must not be empty."
            yield BrokenRule("no-parts", message, f"contents[{i}]")
        for j, part in enumerate(parts):
            yield from _missing_data(part, f"contents[{i}].parts[{j}]", requested)
    if "systemInstruction" not in request:
        return
    parts = request["systemInstruction"].get("parts", [])
    if not parts:
        message = "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty."
        yield BrokenRule("no-system-parts", message, "systemInstruction", always=False)
    for j, part in enumerate(parts):
        yield from _missing_data(part, f"system_instruction.parts[{j}]", requested)


def _missing_data(part: Wire, where: str, requested: RequestedModel) -> Iterator[BrokenRule]:
    if any(name in part for name in DATA_FIELDS):
        return
    video_alone = set(part) == {"videoMetadata"}
    if video_alone and requested.generation == "2.0":
        return
    message = f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field"
    yield BrokenRule("no-data", message, where, always=not video_alone)


def bad_base64(request: Wire) -> Iterator[BrokenRule]:
    """Find inline data that is not base64."""
    for where, data in inline_data(request):
        if not _BASE64.fullmatch(data.get("data", "!")):
            message = f"Invalid value at '{where}.data' (TYPE_BYTES), Base64 decoding failed"
            yield BrokenRule("base64", message, f"{where}.data")


def media(request: Wire) -> Iterator[BrokenRule]:
    """Find media without a type or an address, and types that are not supported."""
    for where, part in parts_of(request):
        if "inlineData" in part:
            if not part["inlineData"].get("mimeType"):
                yield BrokenRule("no-mime", "Unsupported MIME type: ", f"{where}.inlineData")
            yield from _mime(part["inlineData"], f"{where}.inlineData")
        if "fileData" in part:
            yield from _mime(part["fileData"], f"{where}.fileData")
            if not part["fileData"].get("fileUri"):
                yield BrokenRule("no-uri", "fileUri is required", f"{where}.fileData", always=False)


def _mime(data: Wire, where: str) -> Iterator[BrokenRule]:
    if not data.get("mimeType"):
        return
    mime = data["mimeType"].split(";")[0].strip()
    message = f"Unsupported MIME type: {mime}"
    if mime in ("image/jpg", "application/octet-stream") or "/" not in mime:
        yield BrokenRule("mime", message, f"{where}.mimeType")
    elif mime not in _SUPPORTED and not mime.startswith("text/"):
        yield BrokenRule("mime", message, f"{where}.mimeType", always=False)


class SidedContent(Struct, frozen=True):
    """A content of a request, its index, and the side it counts to."""

    index: int
    side: Literal["user", "model"]
    parts: list[Wire]

    def parts_with(self, name: str) -> list[tuple[int, Wire]]:
        """Return the parts that have the field *name*, with their indexes."""
        return [(j, part) for j, part in enumerate(self.parts) if name in part]

    @property
    def calls(self) -> list[tuple[int, Wire]]:
        return self.parts_with("functionCall") if self.side == "model" else []

    @property
    def results(self) -> list[tuple[int, Wire]]:
        return self.parts_with("functionResponse") if self.side == "user" else []

    @property
    def has_more_than_results(self) -> bool:
        return any("functionResponse" not in part for part in self.parts)


class ContentGroup(Struct, frozen=True):
    """Adjacent contents of one side."""

    contents: list[SidedContent]

    @property
    def side(self) -> str:
        return self.contents[0].side

    @property
    def calls(self) -> list[Wire]:
        return [part["functionCall"] for content in self.contents for _, part in content.calls]

    @property
    def results(self) -> list[Wire]:
        return [part["functionResponse"] for content in self.contents for _, part in content.results]


def side(role: str) -> Literal["user", "model"]:
    """Return the side a content of *role* counts to."""
    return "model" if role.lower() in ("model", "assistant") else "user"


def contents_of(request: Wire) -> list[SidedContent]:
    """Return the contents of a request with their sides."""
    return [
        SidedContent(index, side(content.get("role", "")), content.get("parts", []))
        for index, content in enumerate(request["contents"])
    ]


def content_groups(contents: list[SidedContent]) -> list[ContentGroup]:
    """Group adjacent contents of one side."""
    return [ContentGroup(list(group)) for _, group in groupby(contents, key=lambda one: one.side)]


def current_turn(contents: list[SidedContent]) -> list[SidedContent]:
    """Return the contents after the last one of the user that has more than results."""
    starts = [one.index for one in contents if one.side == "user" and one.has_more_than_results]
    return contents[starts[-1] + 1 :] if starts else contents


def incomplete_calls(request: Wire) -> Iterator[BrokenRule]:
    """Find calls and results that lack a name or a response."""
    for content in contents_of(request):
        for j, part in content.results:
            where = f"contents[{content.index}].parts[{j}]"
            place = f"* GenerateContentRequest.{where}.function_response"
            if not part["functionResponse"].get("name"):
                yield BrokenRule("result-name", f"{place}.name: Name cannot be empty.", where)
            if "response" not in part["functionResponse"]:
                yield BrokenRule("no-response", f"{place}.response: required field is not set.", where, always=False)
        for j, part in content.calls:
            if not part["functionCall"].get("name"):
                where = f"contents[{content.index}].parts[{j}]"
                message = f"* GenerateContentRequest.{where}.function_call.name: Name cannot be empty."
                yield BrokenRule("call-no-name", message, where, always=False)


def conversation(request: Wire, requested: RequestedModel) -> Iterator[BrokenRule]:
    """Find what is wrong with roles, calls, results and signatures, in the order the service checks them."""
    contents = contents_of(request)
    yield from _roles(request["contents"], requested)
    yield from _ending(contents, requested)
    yield from _adjacency(content_groups(contents))
    yield from _pairs(content_groups(contents), requested)
    yield from _misplaced(contents)
    if requested.generation in TWO | GEMMA:
        yield from _result_parts(contents)
    yield from _signatures(contents, requested)


def _result_parts(contents: list[SidedContent]) -> Iterator[BrokenRule]:
    for one in contents:
        for j, part in one.results:
            parts = part["functionResponse"].get("parts")
            if isinstance(parts, list) and parts:
                message = "Function response parts are not supported for this model."
                yield BrokenRule("result-parts", message, f"contents[{one.index}].parts[{j}]")


def _roles(contents: list[Wire], requested: RequestedModel) -> Iterator[BrokenRule]:
    newer = requested.generation in THREE_SIX_AND_LATER
    known = _NEW_ROLES if newer else _OLD_ROLES
    for i, content in enumerate(contents):
        role = content.get("role", "")
        message = _NEW_ROLE_MESSAGE.format(role) if newer else "Please use a valid role: user, model."
        if role and role.lower() not in known:
            yield BrokenRule("role", message, f"contents[{i}].role")
        elif role not in ("user", "model") and (role or len(contents) > 1):
            yield BrokenRule("role", message, f"contents[{i}].role", always=False)


def _refuses_prefill(requested: RequestedModel) -> bool:
    return requested.generation == "3.5-lite" or requested.generation in THREE_SIX_AND_LATER


def _ending(contents: list[SidedContent], requested: RequestedModel) -> Iterator[BrokenRule]:
    if _refuses_prefill(requested) and contents[-1].side == "model":
        yield BrokenRule("ends-with-model", ENDS_WITH_MODEL, f"contents[{contents[-1].index}]")
    if requested.generation not in THREE_AND_LATER:
        return
    for one in contents:
        if one.results and any("functionResponse" not in part for part in one.parts[one.results[0][0] :]):
            where = f"contents[{one.index}]"
            yield BrokenRule("text-after-results", ENDS_WITH_MODEL, where, always=_refuses_prefill(requested))


def _adjacency(groups: list[ContentGroup]) -> Iterator[BrokenRule]:
    if groups[0].calls:
        yield BrokenRule("call-after-user", CALL_AFTER_USER, "contents[0]")
    before: ContentGroup | None = None
    for turn in groups:
        follows_calls = before is not None and bool(before.calls)
        if turn.results and not follows_calls:
            yield BrokenRule("result-after-call", RESULT_AFTER_CALL, f"contents[{turn.contents[0].index}]")
        for previous, one in zip(turn.contents, turn.contents[1:], strict=False):
            if follows_calls and one.results and previous.has_more_than_results:
                yield BrokenRule("result-first", RESULT_AFTER_CALL, f"contents[{one.index}]", always=False)
        before = turn


def _pairs(groups: list[ContentGroup], requested: RequestedModel) -> Iterator[BrokenRule]:
    for turn, following in zip(groups, [*groups[1:], None], strict=True):
        if not turn.calls:
            continue
        where = f"contents[{turn.contents[0].index}]"
        if following is None:
            if not _refuses_prefill(requested):
                yield BrokenRule("unanswered", COUNT, where, always=False)
        else:
            yield from _mismatch(turn.calls, following.results, requested, where)
        if any(count > 1 for count in _ids(turn.calls).values()):
            yield BrokenRule("duplicate-id", COUNT, where, always=False)


def _mismatch(calls: list[Wire], results: list[Wire], requested: RequestedModel, where: str) -> Iterator[BrokenRule]:
    if len(calls) != len(results):
        yield BrokenRule("count", COUNT, where)
    elif _ids(results) - _ids(calls):
        unmatched = bool(_ids(calls) - _ids(results))
        yield BrokenRule("call-id", COUNT, where, always=unmatched and requested.generation in THREE_AND_LATER)
    elif Counter(call.get("name", "") for call in calls) != Counter(result.get("name", "") for result in results):
        yield BrokenRule("call-name", COUNT, where, always=False)


def _ids(entries: list[Wire]) -> Counter[str]:
    return Counter(entry["id"] for entry in entries if entry.get("id"))


def _misplaced(contents: list[SidedContent]) -> Iterator[BrokenRule]:
    for one in contents:
        if one.side == "user" and one.parts_with("functionCall"):
            yield BrokenRule("misplaced-call", CALL_AFTER_USER, f"contents[{one.index}]", always=False)
        if one.side == "model" and one.parts_with("functionResponse"):
            yield BrokenRule("misplaced-call", RESULT_AFTER_CALL, f"contents[{one.index}]", always=False)


def _signatures(contents: list[SidedContent], requested: RequestedModel) -> Iterator[BrokenRule]:
    if requested.generation == "2.0" or requested.generation in GEMMA:
        return
    for turn in content_groups(current_turn(contents)):
        calling = [one for one in turn.contents if one.calls]
        for place, one in enumerate(calling):
            j, first = one.calls[0]
            if not first.get("thoughtSignature"):
                always = place == 0 and requested.generation in THREE_AND_LATER
                message = missing_signature(first["functionCall"].get("name", ""), one.index + 1)
                yield BrokenRule("signature", message, f"contents[{one.index}].parts[{j}]", always=always)

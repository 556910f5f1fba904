"""Rules of parts: required fields, and the media that are supported. Pure."""

import re
from collections.abc import Iterator

from palaver.sim.errors import Wire
from palaver.sim.gemini.rules.fields import DATA_FIELDS
from palaver.sim.gemini.rules.generations import Subject, Violation

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


def payload_size(request: Wire) -> Iterator[Violation]:
    inside = sum(len(data) for content in request.get("contents", []) for data in _data_in_results(content))
    if inside + sum(len(data.get("data", "")) for _, data in inline_data(request)) > PAYLOAD_LIMIT:
        yield Violation("payload-size", f"Request payload size exceeds the limit: {PAYLOAD_LIMIT} bytes.")


def _data_in_results(content: Wire) -> Iterator[str]:
    """Yield the data in the parts of function results, which the parser does not read."""
    for part in content.get("parts", []):
        carried = part.get("functionResponse", {}).get("parts")
        for one in carried if isinstance(carried, list) else []:
            blob = (one.get("inlineData") or one.get("inline_data")) if isinstance(one, dict) else None
            data = blob.get("data") if isinstance(blob, dict) else None
            if isinstance(data, str):
                yield data


def missing(request: Wire, subject: Subject) -> Iterator[Violation]:
    """Find required fields that are missing."""
    if not request.get("contents"):
        yield Violation("no-contents", "* GenerateContentRequest.contents: contents is not specified", "contents")
    for i, content in enumerate(request.get("contents", [])):
        yield from _missing_in_content(content, i, subject)
    yield from _missing_in_instruction(request, subject)


def _missing_in_content(content: Wire, i: int, subject: Subject) -> Iterator[Violation]:
    parts = content.get("parts", [])
    if not parts:
        message = f"* GenerateContentRequest.contents[{i}].parts: contents.parts must not be empty."
        yield Violation("no-parts", message, f"contents[{i}]")
    for j, part in enumerate(parts):
        yield from _missing_data(part, f"contents[{i}].parts[{j}]", subject)


def _missing_in_instruction(request: Wire, subject: Subject) -> Iterator[Violation]:
    if "systemInstruction" not in request:
        return
    parts = request["systemInstruction"].get("parts", [])
    if not parts:
        message = "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty."
        yield Violation("no-system-parts", message, "systemInstruction", always=False)
    for j, part in enumerate(parts):
        yield from _missing_data(part, f"system_instruction.parts[{j}]", subject)


def _missing_data(part: Wire, where: str, subject: Subject) -> Iterator[Violation]:
    if any(name in part for name in DATA_FIELDS):
        return
    video_alone = set(part) == {"videoMetadata"}
    if video_alone and subject.generation == "2.0":
        return
    message = f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field"
    yield Violation("no-data", message, where, always=not video_alone)


def bad_base64(request: Wire) -> Iterator[Violation]:
    """Find inline data that is not base64."""
    for where, data in inline_data(request):
        if not _BASE64.fullmatch(data.get("data", "!")):
            message = f"Invalid value at '{where}.data' (TYPE_BYTES), Base64 decoding failed"
            yield Violation("base64", message, f"{where}.data")


def media(request: Wire) -> Iterator[Violation]:
    """Find media without a type or an address, and types that are not supported."""
    for where, part in parts_of(request):
        if "inlineData" in part:
            if not part["inlineData"].get("mimeType"):
                yield Violation("no-mime", "Unsupported MIME type: ", f"{where}.inlineData")
            yield from _mime(part["inlineData"], f"{where}.inlineData")
        if "fileData" in part:
            yield from _mime(part["fileData"], f"{where}.fileData")
            if not part["fileData"].get("fileUri"):
                yield Violation("no-uri", "fileUri is required", f"{where}.fileData", always=False)


def _mime(data: Wire, where: str) -> Iterator[Violation]:
    if not data.get("mimeType"):
        return
    mime = data["mimeType"].split(";")[0].strip()
    message = f"Unsupported MIME type: {mime}"
    if mime in ("image/jpg", "application/octet-stream") or "/" not in mime:
        yield Violation("mime", message, f"{where}.mimeType")
    elif mime not in _SUPPORTED and not mime.startswith("text/"):
        yield Violation("mime", message, f"{where}.mimeType", always=False)

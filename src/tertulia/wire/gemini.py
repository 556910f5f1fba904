"""The rules of a Gemini request, checked in the order in which the service checks them. Pure."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from msgspec import Struct

from tertulia.wire import gemini_request
from tertulia.wire.gemini_request import PossibleViolation, RequestReader, field, setting_violations, tool_violations
from tertulia.wire.generations import generation
from tertulia.wire.rules import INLINE_LIMIT, when_mime_refused

_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
_ROLES = frozenset({"user", "model", "function", "tool"})
_ROLES_3_6 = frozenset("user model system system_1 assistant developer context user_context".split())
_UNREADABLE = frozenset(
    "json type unknown-field duplicate-field no-contents no-parts no-data two-data".split()
)  # past these the service reads no conversation


class GeminiCall(Struct, frozen=True):
    id: str
    name: str
    signed: bool
    where: str


class GeminiResult(Struct, frozen=True):
    id: str
    name: str


class GeminiContent(Struct, frozen=True):
    """One content, with the fields that the rules of a conversation check."""

    index: int
    role: str  # as written
    speaker: str  # user or model
    calls: tuple[GeminiCall, ...]
    results: tuple[GeminiResult, ...]
    kinds: str  # a letter a part: c for a call, r for a result, . for anything else

    @property
    def where(self) -> str:
        return f"contents[{self.index}]"


def violations(request: Any, model: str) -> Iterator[PossibleViolation]:
    """Yield the violations of *request*, whatever the generation of the model."""
    reader = RequestReader()
    if not isinstance(request, dict):
        yield PossibleViolation("json", "")
        return
    fields = reader.object(request, "", gemini_request.REQUEST)
    contents = list(_contents(reader, fields))
    if "systemInstruction" in fields:
        _system(reader, fields["systemInstruction"])
    yield from reader.violations
    settings = [*setting_violations(fields, model), *tool_violations(fields, model)]
    yield from settings
    if any(violation.rule in _UNREADABLE for violation in [*reader.violations, *settings]):
        return
    yield from _role_violations(contents, model)
    yield from _conversation_violations(contents)
    yield from _signature_violations(contents)


def part_violations(part: dict[str, Any]) -> list[PossibleViolation]:
    """Return the violations in one part by itself."""
    reader = RequestReader()
    speaker = "user" if field(part, "functionCall") is None else "model"
    _part(reader, part, "contents[0].parts[0]", speaker)
    return reader.violations


def _contents(reader: RequestReader, fields: dict[str, Any]) -> Iterator[GeminiContent]:
    found = list(reader.objects(fields.get("contents"), "contents"))
    if not found and not reader.violations:
        reader.report("no-contents", "contents")
    inline = 0
    for index, (value, where) in enumerate(found):
        content = reader.object(value, where, gemini_request.CONTENT)
        role = reader.string(content, "role", where)
        speaker = "model" if role.lower() in {"model", "assistant"} else "user"
        parts = list(reader.objects(content.get("parts"), f"{where}.parts"))
        if not parts:
            reader.report("no-parts", where, i=index)
        read = [_part(reader, part, at, speaker) for part, at in parts]
        inline += sum(size for _, size in read)
        items = [item for item, _ in read]
        yield GeminiContent(
            index,
            role,
            speaker,
            tuple(item for item in items if isinstance(item, GeminiCall) and speaker == "model"),
            tuple(item for item in items if isinstance(item, GeminiResult) and speaker == "user"),
            "".join(
                "c" if isinstance(item, GeminiCall) else "r" if isinstance(item, GeminiResult) else "."
                for item in items
            ),
        )
    if inline > INLINE_LIMIT:
        reader.report("payload-size", "contents")


def _system(reader: RequestReader, value: Any) -> None:
    content = reader.object(value, "systemInstruction", gemini_request.CONTENT)
    reader.string(content, "role", "systemInstruction")
    parts = list(reader.objects(content.get("parts"), "systemInstruction.parts"))
    if not parts:
        reader.report("no-system-parts", "systemInstruction")
    for part, where in parts:
        _part(reader, part, where, "system")


def _part(reader: RequestReader, value: Any, where: str, speaker: str) -> tuple[GeminiCall | GeminiResult | None, int]:
    """Return the part as the rules of a conversation check it, and the size of its data."""
    part = reader.object(value, where, gemini_request.PART)
    if not isinstance(value, dict):
        return None, 0
    reader.string(part, "text", where)
    signed = bool(reader.string(part, "thoughtSignature", where))
    if not isinstance(part.get("thought", False), bool):
        reader.report("type", f"{where}.thought")
    _data_field(reader, part, where)
    if "videoMetadata" in part:
        video = reader.object(part["videoMetadata"], f"{where}.videoMetadata", gemini_request.VIDEO)
        for name in ("startOffset", "endOffset"):
            reader.string(video, name, f"{where}.videoMetadata")
    if "functionCall" in part:
        return _call(reader, part["functionCall"], where, signed=signed, placed=speaker == "model"), 0
    if "functionResponse" in part:
        size = size_within(part["functionResponse"])
        return _result(reader, part["functionResponse"], where, placed=speaker == "user"), size
    if "inlineData" in part:
        return None, _inline(reader, part["inlineData"], f"{where}.inlineData")
    if "fileData" in part:
        _file(reader, part["fileData"], f"{where}.fileData")
    return None, 0


def _data_field(reader: RequestReader, part: dict[str, Any], where: str) -> None:
    data = [name for name in part if name in gemini_request.DATA_FIELDS]
    if len(data) > 1:
        reader.report("two-data", where, name=data[1])
    if not data:
        rule = "no-data-but-video" if set(part) == {"videoMetadata"} else "no-data"
        reader.report(
            rule, where, path=f"* GenerateContentRequest.{where.replace('systemInstruction', 'system_instruction')}"
        )


def _call(reader: RequestReader, value: Any, where: str, *, signed: bool, placed: bool) -> GeminiCall:
    where = f"{where}.functionCall"
    call = reader.object(value, where, gemini_request.CALL)
    if not isinstance(call.get("args", {}), dict):
        reader.report("type", f"{where}.args")
    name = reader.string(call, "name", where)
    if placed and not name:
        reader.report("call-no-name", where, **_position(where))
    return GeminiCall(reader.string(call, "id", where), name, signed, where)


def _result(reader: RequestReader, value: Any, where: str, *, placed: bool) -> GeminiResult:
    where = f"{where}.functionResponse"
    result = reader.object(value, where, gemini_request.RESULT)
    if not isinstance(result.get("response", {}), dict):
        reader.report("type", f"{where}.response")
    name = reader.string(result, "name", where)
    if placed and not name:
        reader.report("result-name", where, **_position(where))
    if placed and "response" not in result:
        reader.report("no-response", where, **_position(where))
    if placed and isinstance(result.get("parts"), list) and result["parts"]:
        reader.report("result-parts", where)
    return GeminiResult(reader.string(result, "id", where), name)


def size_within(result: Any) -> int:
    """Return the size of the data in the parts of a result."""
    parts = field(result, "parts") if isinstance(result, dict) else None
    blobs = [field(part, "inlineData") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    data = [field(blob, "data") for blob in blobs if isinstance(blob, dict)]
    return sum(len(text) for text in data if isinstance(text, str))


def _inline(reader: RequestReader, value: Any, where: str) -> int:
    blob = reader.object(value, where, gemini_request.INLINE)
    if not isinstance(value, dict):
        return 0
    mime = reader.string(blob, "mimeType", where)
    if not blob.get("mimeType"):
        reader.report("no-mime", where)
    elif mime:
        _mime(reader, mime, where)
    data = reader.string(blob, "data", where)
    if "data" not in blob or not _BASE64.issuperset(data):
        reader.report("base64", f"{where}.data")
    return len(data)


def _file(reader: RequestReader, value: Any, where: str) -> None:
    file = reader.object(value, where, gemini_request.FILE)
    if not isinstance(value, dict):
        return
    mime = reader.string(file, "mimeType", where)
    if mime:
        _mime(reader, mime, where)
    if not reader.string(file, "fileUri", where):
        reader.report("no-uri", where)


def _mime(reader: RequestReader, mime: str, where: str) -> None:
    refused = when_mime_refused(mime)
    if refused != "never":
        reader.report("mime" if refused == "always" else "mime-unlisted", where, mime=mime)


def _position(where: str) -> dict[str, str]:
    """Return the numbers in a place such as `contents[2].parts[0].functionCall`, for the text of a message."""
    numbers = [piece.partition("]")[0] for piece in where.split("[")[1:]]
    return {"i": numbers[0], "j": numbers[1] if len(numbers) > 1 else ""}


def _role_violations(contents: list[GeminiContent], model: str) -> Iterator[PossibleViolation]:
    tolerated, suffix = (_ROLES_3_6, "-3.6") if generation(model) in {"3.6", "3.7", "4"} else (_ROLES, "")
    for content in contents:
        where = f"{content.where}.role"
        if not content.role:
            if len(contents) > 1:
                yield PossibleViolation(f"role-strict{suffix}", where, {"role": ""})
        elif content.role.lower() not in tolerated:
            yield PossibleViolation(f"role{suffix}", where, {"role": content.role})
        elif content.role not in {"user", "model"}:
            yield PossibleViolation(f"role-strict{suffix}", where, {"role": content.role})


def _conversation_violations(contents: list[GeminiContent]) -> Iterator[PossibleViolation]:
    if contents[-1].speaker == "model":
        yield PossibleViolation("ends-with-model", contents[-1].where)
    for content in contents:
        yield from _content_violations(content)
    turns = [list(group) for _, group in groupby(contents, key=lambda content: content.speaker)]
    for index, turn in enumerate(turns):
        calls = [call for content in turn for call in content.calls]
        results = [result for content in turn for result in content.results]
        if calls:
            answer = turns[index + 1] if index + 1 < len(turns) else None
            yield from _call_turn_violations(turn, calls, first=index == 0, after=answer)
        if results and not (index > 0 and any(content.calls for content in turns[index - 1])):
            yield PossibleViolation("result-after-call", turn[0].where)


def _content_violations(content: GeminiContent) -> Iterator[PossibleViolation]:
    if content.speaker == "user":
        if "c" in content.kinds:
            yield PossibleViolation("misplaced-call", content.where)
        if content.kinds.lstrip("c.").strip("r"):
            yield PossibleViolation("text-after-results", content.where)
    elif "r" in content.kinds:
        yield PossibleViolation("misplaced-result", content.where)


def _call_turn_violations(
    turn: list[GeminiContent], calls: list[GeminiCall], *, first: bool, after: list[GeminiContent] | None
) -> Iterator[PossibleViolation]:
    if first:
        yield PossibleViolation("call-after-user", turn[0].where)
    ids = Counter(call.id for call in calls if call.id)
    if any(count > 1 for count in ids.values()):
        yield PossibleViolation("duplicate-id", turn[0].where)
    if after is None:
        yield PossibleViolation("unanswered", turn[-1].where)
        return
    results = [result for content in after for result in content.results]
    if len(results) != len(calls):
        yield PossibleViolation("count", after[0].where)
    elif rule := _broken_id_rule(
        Counter(call.id for call in calls if call.id), Counter(one.id for one in results if one.id)
    ):
        yield PossibleViolation(rule, after[0].where)
    elif Counter(result.name for result in results) != Counter(call.name for call in calls):
        yield PossibleViolation("call-name", after[0].where)
    last = max((content.index for content in after if content.results), default=-1)
    if any(content.index < last and content.kinds.strip("r") for content in after):
        yield PossibleViolation("result-first", after[0].where)


def _broken_id_rule(calls: Counter[str], results: Counter[str]) -> str:
    if not results - calls:
        return ""
    return "call-id" if calls - results else "call-id-one-sided"


def _signature_violations(contents: list[GeminiContent]) -> Iterator[PossibleViolation]:
    asked = (content.index for content in contents if content.speaker == "user" and content.kinds.strip("r"))
    current = contents[max(asked, default=-1) + 1 :]
    for speaker, group in groupby(current, key=lambda content: content.speaker):
        firsts = [(content.index, content.calls[0]) for content in group if content.calls] if speaker == "model" else []
        for order, (index, call) in enumerate(firsts):
            if not call.signed:
                rule = "signature-each" if order else "signature"
                yield PossibleViolation(rule, call.where, {"name": call.name, "position": index + 1})

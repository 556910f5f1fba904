"""Histories of google-genai (`contents`) and OpenAI (`messages`), read into turns. Pure."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import InvalidValue
from tertulia.jsonio import deeper_than
from tertulia.models.gemini import decode as gemini
from tertulia.models.openai import decode as openai
from tertulia.parts import Media, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn
from tertulia.wire.gemini_request import camel, field
from tertulia.wire.generations import bare

DEEPEST = 150  # levels of one content or message; services read a hundred

Kind = Literal["system", "model", "results", "person"]

_KINDS: dict[str, Kind] = {
    "system": "system", "developer": "system",
    "model": "model", "assistant": "model",
    "tool": "results", "function": "results",
    "user": "person",
}  # fmt: skip
_BODY = frozenset("contents messages model systemInstruction config".split())
_CONTENT = frozenset({"role", "parts"})
_MESSAGE = frozenset("role content name toolCallId".split())


class TurnList(Struct, frozen=True, kw_only=True):
    """A list as read: its turns, its instruction, and the names of unknown fields."""

    turns: tuple[Turn, ...] = ()
    system: str = ""
    names: dict[int, str] = {}  # authors by the numbers of turns, where the list has them
    left_out: tuple[str, ...] = ()  # fields


def read_genai(found: Any, *, model: str | None = None) -> TurnList:
    """Read contents, alone or in the body of a request, in either spelling; *model* made the model turns."""
    maker = model or _model_in(found)
    contents = [_content(item, f"contents[{n}]") for n, item in enumerate(_items(found, "contents", "parts"))]
    system = list(_instructions(found))
    turns: list[Turn] = []
    for content in contents:
        turn = gemini.decode_turn(content, model=maker if _kind(content) == "model" else None)
        if _kind(content) == "system":
            system.append(_turn_text(turn))
        else:
            turns.append(turn)
    left_out = [
        *_unknown_body_fields(found, "contents"),
        *(key for content in contents for key in _unknown_fields(content, _CONTENT)),
    ]
    return TurnList(turns=tuple(turns), system=_join(system), left_out=tuple(dict.fromkeys(left_out)))


def read_openai(found: Any, *, model: str | None = None) -> TurnList:
    """Read chat-completions messages, alone or in the body of a request; results in a row become one turn."""
    maker = model or _model_in(found)
    messages = [_message(item, f"messages[{n}]") for n, item in enumerate(_items(found, "messages", "content"))]
    system: list[str] = []
    turns: list[Turn] = []
    names: dict[int, str] = {}
    called: dict[str, str] = {}  # the names of tools, by the ids of calls
    for kind, run in groupby(messages, key=_kind):
        group = list(run)
        decoded = [openai.decode_turn(message, model=maker if kind == "model" else None) for message in group]
        if kind == "system":
            system += map(_turn_text, decoded)
        elif kind == "results":
            parts = (_with_tool_name(part, called) for turn in decoded for part in turn.parts)
            turns.append(Turn(role="user", parts=tuple(parts)))
        else:
            named = ((n, one.get("name")) for n, one in enumerate(group, len(turns)))
            names |= {n: name for n, name in named if isinstance(name, str) and name}
            calls = [part for turn in decoded for part in turn.parts if isinstance(part, ToolCall)]
            called |= {call.id: call.name for call in calls if call.id}
            turns += decoded
    strange = (key for one in messages if _kind(one) != "model" for key in _unknown_fields(one, _MESSAGE))
    left_out = tuple(dict.fromkeys([*_unknown_body_fields(found, "messages"), *strange]))
    return TurnList(turns=tuple(turns), system=_join(system), names=names, left_out=left_out)


def count_tool_parts(turns: Iterable[Turn]) -> int:
    """Return how many thoughts, calls and results the turns hold."""
    return sum(isinstance(part, Thought | ToolCall | ToolResult) for turn in turns for part in turn.parts)


def message_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of a turn that make a message: no thoughts, calls, results or signatures."""
    message: list[Part] = []
    for part in parts:
        match part:
            case Thought() | ToolCall() | ToolResult() | Text(text=""):
                continue
            case Text() | Media() if part.signature or part.raw is not None:
                message.append(replace(part, signature=None, raw=None))
            case _:
                message.append(part)
    return tuple(message)


def _items(found: Any, name: str, holds: str) -> list[Any]:
    """Return the items of a list, of the field *name* of a body, or one item alone: an object with the key *holds*."""
    if isinstance(found, list):
        return found
    if not isinstance(found, dict):
        raise InvalidValue(f"{_type_name(found)} is no list of {name}")
    if name not in found and holds in found:
        return [found]
    if found.get(name) is None:
        raise InvalidValue(f"the object has no `{name}`")
    listed = found[name]
    if isinstance(listed, list):
        return listed
    if name == "contents" and isinstance(listed, str | dict):
        return [listed]
    raise InvalidValue(f"{name}: {_type_name(listed)}, not a list")


def _content(content: Any, where: str) -> dict[str, Any]:
    """Return a content as the decoder takes it: an object, its role a known one, its parts a list of objects."""
    if isinstance(content, str):
        return {"role": "user", "parts": [{"text": content}]}
    fields = _object(content, where)
    parts = fields.get("parts")
    if parts is None and fields.keys() - {"role", "parts"}:
        raise InvalidValue(f"{where}: no `parts` in it")
    return {**fields, "role": _role(fields.get("role") or "user", where), "parts": _parts(parts, f"{where}.parts")}


def _parts(parts: Any, where: str) -> list[dict[str, Any]]:
    if parts is None:
        return []
    if isinstance(parts, str | dict):
        return [_a_part(parts, where)]
    if not isinstance(parts, list):
        raise InvalidValue(f"{where}: {_type_name(parts)}, not a list")
    return [_a_part(part, f"{where}[{number}]") for number, part in enumerate(parts)]


def _a_part(part: Any, where: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if not isinstance(part, dict):
        raise InvalidValue(f"{where}: {_type_name(part)}, not a part")
    return part


def _message(message: Any, where: str) -> dict[str, Any]:
    """Return a message as the decoder takes it: an object, its role a known one, its content text or parts."""
    fields = _object(message, where)
    if not fields.get("role"):
        raise InvalidValue(f"{where}: no `role` in it")
    role = _role(fields["role"], where)
    if "content" not in fields and (_KINDS[role] != "model" or "parts" in fields):
        raise InvalidValue(f"{where}: no `content` in it")
    _check_content(fields.get("content"), f"{where}.content")
    _check_calls(fields.get("tool_calls"), f"{where}.tool_calls")
    return {**fields, "role": role}


def _check_content(content: Any, where: str) -> None:
    if isinstance(content, str | dict | None):
        return
    if not isinstance(content, list):
        raise InvalidValue(f"{where}: {_type_name(content)}, neither text nor a list of parts")
    for number, part in enumerate(content):
        _a_part(part, f"{where}[{number}]")


def _check_calls(calls: Any, where: str) -> None:
    if not isinstance(calls, list | None):
        raise InvalidValue(f"{where}: {_type_name(calls)}, not a list")
    for number, call in enumerate(calls or []):
        if not isinstance(call, dict):
            raise InvalidValue(f"{where}[{number}]: {_type_name(call)}, not a call")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(f"{where}: {_type_name(value)}, not an object")
    if deeper_than(value, DEEPEST):
        raise InvalidValue(f"{where}: nested more than {DEEPEST} deep")
    return value


def _role(role: Any, where: str) -> str:
    if not isinstance(role, str):
        raise InvalidValue(f"{where}.role: {_type_name(role)}, not a role")
    if role.lower() not in _KINDS:
        raise InvalidValue(f"{where}.role: {role[:40]!r} is none we know ({', '.join(_KINDS)})")
    return role.lower()


def _kind(item: dict[str, Any]) -> Kind:
    return _KINDS[item["role"]]


def _with_tool_name(part: Part, called: dict[str, str]) -> Part:
    """Give a result without a name that of its call."""
    if not isinstance(part, ToolResult) or part.name or part.id not in called:
        return part
    return replace(part, name=called[part.id])


def _instructions(found: Any) -> Iterator[str]:
    """Yield the instructions in the body of a request, and in the SDK's configuration beside the contents."""
    if not isinstance(found, dict):
        return
    config = found.get("config")
    for where, holder in (("", found), ("config.", config if isinstance(config, dict) else {})):
        value = field(holder, "systemInstruction")
        if isinstance(value, list):
            value = {"parts": value}
        if value is not None:
            yield _turn_text(gemini.decode_turn(_content(value, f"{where}systemInstruction")))


def _model_in(found: Any) -> str | None:
    named = found.get("model") if isinstance(found, dict) else None
    return bare(named) if isinstance(named, str) and named else None


def _unknown_body_fields(found: Any, name: str) -> list[str]:
    return _unknown_fields(found, _BODY) if isinstance(found, dict) and name in found else []


def _unknown_fields(value: dict[str, Any], known: frozenset[str]) -> list[str]:
    """Return the fields of an object that are not among those *known*."""
    return [key for key, item in value.items() if item is not None and camel(key) not in known]


def _turn_text(turn: Turn) -> str:
    return _join(part.text for part in turn.parts if isinstance(part, Text))


def _join(texts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, texts))


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"

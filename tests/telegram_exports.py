r"""A writer of exports as Telegram Desktop makes them, after its `export_output_json.cpp`: the same keys in the same
order, the same indentation, and control characters as `\x0B`."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

ZONE = timezone(timedelta(hours=2))  # of the computer that made the export
NOT_INCLUDED = "(File not included. Change data exporting settings to download.)"


def string(text: str) -> str:
    """Return a string as the writer of Telegram Desktop escapes it."""
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    return '"' + "".join(short.get(one) or (f"\\x{ord(one):02X}" if one < " " else one) for one in text) + '"'


def value(what: Any, depth: int = 0) -> str:
    """Return JSON, indented by one blank for each level."""
    match what:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[what]
        case str():
            return string(what)
        case int() | float():
            return str(what)
        case Mapping():
            inside = [f"{string(key)}: {value(one, depth + 1)}" for key, one in what.items()]
            return _block("{", inside, "}", depth)
        case _:
            return _block("[", [value(one, depth + 1) for one in what], "]", depth)


def _block(opening: str, inside: list[str], closing: str, depth: int) -> str:
    indent = "\n" + " " * (depth + 1)
    return opening + ",".join(indent + one for one in inside) + "\n" + " " * depth + closing


def chat(messages: Iterable[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {"name": "Friends", "type": "private_supergroup", "id": 1234567890, **changes, "messages": messages}


def account(*chats: dict[str, Any], left: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    return {
        "about": "Here is the data you requested.",
        "personal_information": {"user_id": 5, "first_name": "Al", "last_name": "", "phone_number": "+380 00"},
        "contacts": {"about": "…", "list": [{"user_id": 6, "first_name": "Bo", "last_name": ""}]},
        "chats": {"about": "…", "list": list(chats)},
        "left_chats": {"about": "…", "list": list(left)},
    }


def dates(at: datetime, key: str = "date") -> dict[str, str]:
    return {key: f"{at.astimezone(ZONE):%Y-%m-%dT%H:%M:%S}", f"{key}_unixtime": str(int(at.timestamp()))}


def message(number: int, text: Any = "", *, at: datetime | None = None, **more: Any) -> dict[str, Any]:
    """Return a message of Alice, a minute after the one before it."""
    when = at or datetime(2024, 3, 1, 12, tzinfo=UTC) + timedelta(minutes=number)
    edited = dates(more.pop("edited_at"), "edited") if "edited_at" in more else {}
    author = {"from": more.pop("sender", "Alice"), "from_id": more.pop("sender_id", "user11")}
    entities = [{"type": "plain", "text": one} if isinstance(one, str) else one for one in _listed(text)]
    start = {"id": number, "type": "message", **dates(when), **edited, **author}
    return {**start, **more, "text": text, "text_entities": entities}


def service(number: int, action: str, **more: Any) -> dict[str, Any]:
    when = datetime(2024, 3, 1, 12, tzinfo=UTC) + timedelta(minutes=number)
    who = {"actor": "Alice", "actor_id": "user11", "action": action}
    return {"id": number, "type": "service", **dates(when), **who, **more, "text": "", "text_entities": []}


def _listed(text: Any) -> Iterator[Any]:
    return iter([text] if isinstance(text, str) and text else text)

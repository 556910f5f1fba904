"""The content of a message in an export of Telegram Desktop, as the parts that the bot would have received. Pure."""

from collections.abc import Iterator
from typing import Any

from tertulia.formats import telegram_words as words
from tertulia.media.file_names import safe_name
from tertulia.parts import EVENT, Media, Part, Text

_KINDS = {
    "sticker": "sticker",
    "video_message": "video_note",
    "voice_message": "voice",
    "animation": "animation",
    "video_file": "video",
    "audio_file": "audio",
}
_MIME = {".webp": "image/webp", ".webm": "video/webm", ".tgs": "application/x-tgsticker"}
_LEFT_OUT = "("  # a path begins with it where the file was not exported
_EVENTS = {
    "game_title": "a game",
    "invoice_information": "an invoice",
    "giveaway_information": "a giveaway",
    "giveaway_results": "a giveaway",
    "paid_stars_amount": "paid media",
}
_POINT = ("latitude", "longitude")
_RICH_KEYS = "title text formula blocks block items rows cells caption label".split()  # of blocks, in their order


def parts_of(entry: dict[str, Any], *, unique_id: str) -> tuple[Part, ...]:
    """Return the parts of a message: its media, what is neither text nor a file, and its text."""
    text = text_of(entry) or _rich_text(entry.get("rich_message"))
    parts = [*_media(entry, unique_id), *_spoken(entry)]
    return (*parts, Text(text=text)) if text else tuple(parts)


def event_of(entry: dict[str, Any]) -> tuple[Part, ...]:
    """Return who joined or left, or the new title, that a service message tells; nothing for other events."""
    members = ", ".join(one for one in entry.get("members") or () if isinstance(one, str))
    match entry.get("action"):
        case "invite_members" if members:
            told = f"joined: {members}"
        case "join_group_by_link" | "join_group_by_request":
            told = f"joined: {_string(entry, 'actor')}"
        case "remove_members" if members:
            told = f"left: {members}"
        case "edit_group_title":
            told = f"the chat is now called {_string(entry, 'title')}"
        case _:
            return ()
    return (words.marker(EVENT, told),)


def text_of(entry: dict[str, Any], key: str = "text") -> str:
    """Return a text, which is a string or a list of strings and entities; links to elsewhere keep their address."""
    pieces = entry.get(f"{key}_entities") or entry.get(key)
    if isinstance(pieces, str):
        return pieces
    return "".join(map(_piece, pieces)) if isinstance(pieces, list) else ""


def _piece(piece: Any) -> str:
    if not isinstance(piece, dict):
        return piece if isinstance(piece, str) else ""
    text, href = _string(piece, "text"), _string(piece, "href")
    return f"{text} ({href})" if href and href != text else text


def _media(entry: dict[str, Any], unique_id: str) -> Iterator[Part]:
    if not entry.keys() & {"photo", "file", "media_type"}:
        return
    kind = "photo" if "photo" in entry else _KINDS.get(_string(entry, "media_type"), "document")
    path = _string(entry, "photo") or _string(entry, "file")
    included = path and not path.startswith(_LEFT_OUT)
    suffix = path[path.rfind(".") :].lower() if included and "." in path else ""
    yield Media(
        media_kind=kind,
        unique_id=unique_id,
        mime=_string(entry, "mime_type") or ("image/jpeg" if kind == "photo" else _MIME.get(suffix)),
        label=_label(kind, entry),
        raw={"path": path} if included else None,
    )


def _label(kind: str, entry: dict[str, Any]) -> str | None:
    """Return what is known of a file without looking into it."""
    match kind:
        case "sticker":
            return _string(entry, "sticker_emoji") or None
        case "audio":
            title = _string(entry, "title") or _string(entry, "file_name")
            return words.song(_string(entry, "performer"), title)
        case "document":
            name = _string(entry, "file_name")
            return safe_name(name) if name else None
    return None


def _spoken(entry: dict[str, Any]) -> Iterator[Part]:
    """Yield what is neither text nor a file. What its sender wrote is their text."""
    point = entry.get("location_information")
    if "place_name" in entry:
        yield from words.venue(_string(entry, "place_name"), _string(entry, "address"))
    elif "location_information" in entry:
        known = point if isinstance(point, dict) else {}
        yield words.location(*(known[key] for key in _POINT if isinstance(known.get(key), float)))
    if isinstance(contact := entry.get("contact_information"), dict):
        yield from words.contact(*(_string(contact, key) for key in ("first_name", "last_name", "phone_number")))
    if isinstance(poll := entry.get("poll"), dict):
        yield from words.listing("poll", text_of(poll, "question"), _answers(poll))
    if isinstance(tasks := entry.get("todo_list"), dict):
        yield from words.listing("checklist", text_of(tasks, "title"), _answers(tasks))
    yield from (words.marker(EVENT, event) for key, event in _EVENTS.items() if key in entry)


def _answers(listed: dict[str, Any]) -> Iterator[str]:
    return (text_of(answer) for answer in listed.get("answers") or () if isinstance(answer, dict))


def _rich_text(value: Any) -> str:
    """Return the texts in the blocks of a rich message, each on a line."""
    match value:
        case str():
            return value
        case list():
            between = "" if all(isinstance(one, str) for one in value) else "\n"
            return between.join(filter(None, map(_rich_text, value)))
        case dict():
            return "\n".join(filter(None, (_rich_text(value.get(key)) for key in _RICH_KEYS)))
    return ""


def _string(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""

"""The content of a message in an export of Telegram Desktop, as parts. Pure."""

from collections.abc import Iterator
from typing import Any

from palaver.parts import Media, Part, Text

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


def parts_of(entry: dict[str, Any], *, unique_id: str) -> tuple[Part, ...]:
    """Return the media, the content that only words can say, and the text of a message."""
    media = _media(entry, unique_id)
    words = [*_forward(entry), *_words(entry)]
    text = text_of(entry) or _rich_text(entry.get("rich_message"))
    texts = [Text(text=one) for one in (*words, text) if one]
    return (media, *texts) if media else tuple(texts)


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


def _media(entry: dict[str, Any], unique_id: str) -> Media | None:
    path = _string(entry, "photo") or _string(entry, "file")
    kind = "photo" if "photo" in entry else _KINDS.get(_string(entry, "media_type"), "document")
    if "photo" not in entry and "file" not in entry and "media_type" not in entry:
        return None
    included = path and not path.startswith(_LEFT_OUT)
    suffix = path[path.rfind(".") :].lower() if included and "." in path else ""
    mime = _string(entry, "mime_type") or ("image/jpeg" if kind == "photo" else _MIME.get(suffix))
    return Media(
        media_kind=kind,
        unique_id=unique_id,
        mime=mime,
        rendered_text=_string(entry, "sticker_emoji") or None,
        raw={"path": path} if included else None,
    )


def _forward(entry: dict[str, Any]) -> Iterator[str]:
    if "forwarded_from" in entry:
        yield f"[forwarded from {_string(entry, 'forwarded_from') or 'a deleted account'}]"


def _words(entry: dict[str, Any]) -> Iterator[str]:
    """Yield markers for content without a part of its own."""
    song = [_string(entry, key) for key in ("performer", "title") if "media_type" in entry]
    if any(song):
        yield _marker("song", *song)
    if "file_name" in entry and entry.get("media_type") is None:
        yield _marker("file", _string(entry, "file_name"))
    for key, word in (("poll", "poll"), ("todo_list", "checklist")):
        if isinstance(list_ := entry.get(key), dict):
            yield _marker(word, text_of(list_, "question" if key == "poll" else "title"), *_answers(list_))
    if isinstance(contact := entry.get("contact_information"), dict):
        name = " ".join(filter(None, (_string(contact, "first_name"), _string(contact, "last_name"))))
        yield _marker("contact", name, _string(contact, "phone_number"))
    if "location_information" in entry or "place_name" in entry:
        point = entry.get("location_information")
        at = f"{point.get('latitude')}, {point.get('longitude')}" if isinstance(point, dict) else ""
        yield _marker("location", _string(entry, "place_name"), _string(entry, "address"), at)
    if "game_title" in entry:
        yield _marker("game", _string(entry, "game_title"), _string(entry, "game_description"))
    if isinstance(invoice := entry.get("invoice_information"), dict):
        yield _marker("invoice", _string(invoice, "title"), _string(invoice, "description"))
    for key, word in (
        ("giveaway_information", "giveaway"),
        ("giveaway_results", "giveaway"),
        ("paid_stars_amount", "paid media"),
    ):
        if key in entry:
            yield _marker(word)


def _answers(listed: dict[str, Any]) -> Iterator[str]:
    for answer in listed.get("answers") or ():
        if isinstance(answer, dict):
            voters = answer.get("voters")
            yield f"{text_of(answer)} ({voters})" if voters is not None else text_of(answer)


def _marker(word: str, *said: str) -> str:
    """`[poll: Tea? | yes (3) | no (1)]`; line breaks and brackets in it are removed."""
    plain = (" ".join(one.replace("[", "(").replace("]", ")").split()) for one in said)
    inside = " | ".join(filter(None, plain))
    return f"[{word}: {inside}]" if inside else f"[{word}]"


def _rich_text(value: Any) -> str:
    """Return the texts in the blocks of a rich message, each on a line."""
    match value:
        case str():
            return value
        case list():
            pieces = [_rich_text(one) for one in value]
            return ("" if all(isinstance(one, str) for one in value) else "\n").join(filter(None, pieces))
        case dict():
            shown = ("title", "text", "formula", "blocks", "block", "items", "rows", "cells", "caption", "label")
            return "\n".join(filter(None, (_rich_text(value.get(key)) for key in shown)))
    return ""


def _string(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""

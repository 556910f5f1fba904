"""Messages in the databases of gryag, a Telegram bot: rows of its table `messages`, in each of its four schemas. Pure.

| schema | its columns for id, text, time and our own messages |
|---|---|
| SQLite and PostgreSQL of 2025 | `external_message_id`, or `message_id` in the JSON of `media`; `text`; `ts`; `role` |
| the same after its fifth migration | `message_id` in the JSON of `metadata`; `text`; `created_at` in seconds; `role` |
| gryag 2.0 | `telegram_message_id`; `content`; `created_at`; `is_bot_message` |
| gryag of 2026, in Go | `message_id`; `text`; `created_at`; `is_bot_reply` |

A row without the id that Telegram gave the message becomes `gryag:` and its number. What gryag remembers is read by
`gryag_memory`.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from tertulia.formats.imported import EMPTY, SOMEBODY, UNKNOWN, UNREADABLE, Imported, ImportedMessage, Skipped
from tertulia.formats.telegram_export import NOT_WANTED, SERVICE
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Part, Text

TABLE = "messages"
SYSTEM_LINES = "lines of the system and of tools"

_KINDS = {"image": "photo", "audio": "audio", "video": "video"}
_ROLES = ("user", "model", "assistant")


def is_gryag(columns: Collection[str]) -> bool:
    """Return whether a table with these columns is that of gryag's messages."""
    said = {"role", "is_bot_message", "is_bot_reply"} & set(columns)
    return "chat_id" in columns and "user_id" in columns and bool(said) and bool({"text", "content"} & set(columns))


class GryagMessages(Struct, frozen=True, kw_only=True):
    """How rows are read: for which bot, and which chats."""

    bot_id: str
    agent: str = ""  # the persona of the bot; empty: the name in the row
    chats: Collection[str] = ()  # ids; empty: all

    def read(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Imported]:
        """Yield the messages of rows, which are in the order in which they were stored."""
        seen: set[tuple[str, str]] = set()
        for row in rows:
            yield self._read_row(row, seen)

    def _read_row(self, row: Mapping[str, Any], seen: set[tuple[str, str]]) -> Imported:
        meta, media = _payload(row)
        sent_at = moment_of(first_of(row, "ts", "created_at"))
        chat_id = text_of(row.get("chat_id"))
        if sent_at is None or not chat_id.removeprefix("-").isdecimal():
            return Skipped(reason=UNREADABLE)
        if self.chats and chat_id not in self.chats:
            return Skipped(reason=NOT_WANTED)
        if "role" in row and text_of(row["role"]) not in _ROLES:
            return Skipped(reason=SYSTEM_LINES)
        message_id = _message_id(row, meta)
        parts = _parts(row, media, unique_id=f"gryag-{chat_id}-{message_id}")
        if not parts:
            return Skipped(reason=EMPTY)
        own = text_of(row.get("role")) in _ROLES[1:] or is_true(first_of(row, "is_bot_message", "is_bot_reply"))
        reply_to = text_of(first_of(row, "reply_to_external_message_id", "reply_to_message_id", meta=meta))
        thread = text_of(row.get("thread_id"))  # one that a reply began is no topic; its id is that of a message
        is_topic = thread not in ("", "0", "1") and (chat_id, thread) not in seen
        place = place_of(self.bot_id, chat_id, thread if is_topic else None)
        seen.add((chat_id, message_id))
        return ImportedMessage(
            message=Message(
                id=message_id,
                place=place,
                author=self._author(row, meta, own=own),
                sent_at=sent_at,
                parts=parts,
                reply_to=Quote(message_id=reply_to) if reply_to else None,
            ),
            own=own,
        )

    def _author(self, row: Mapping[str, Any], meta: Mapping[str, Any], *, own: bool) -> Author:
        name = text_of(first_of(row, "sender_name", "name", "first_name", "full_name", meta=meta))
        username = text_of(first_of(row, "sender_username", "username", meta=meta)).removeprefix("@")
        if own:
            persona = self.agent or name or username or self.bot_id
            return Author(id=self.bot_id, name=name or persona, persona=persona)
        author_id = text_of(first_of(row, "external_user_id", "user_id", meta=meta))
        if not author_id:
            return Author(id=UNKNOWN, name=name or SOMEBODY, unknown=True)
        shown = name or username or author_id
        is_agent = is_true(row.get("sender_is_bot"))
        return Author(id=author_id, name=shown, username=username or None, persona=shown if is_agent else None)


def place_of(bot_id: str, chat_id: str, thread: str | None = None) -> Place:
    """Return the place of a chat: the ids of groups are negative."""
    return Place(
        platform=f"{SERVICE}-{bot_id}",
        id=chat_id,
        kind="group" if chat_id.startswith("-") else "direct",
        thread=thread,
        service=SERVICE,
    )


def _payload(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """Return the metadata and the media of a row, both of which may be JSON in its column `media`."""
    stored = json_of(row.get("media"))
    held = stored.get("media") if isinstance(stored, dict) else stored
    meta = json_of(row.get("metadata")) or (stored.get("meta") if isinstance(stored, dict) else None)
    return meta if isinstance(meta, dict) else {}, held if isinstance(held, list) else []


def _message_id(row: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    named = ("external_message_id", "telegram_message_id", *(("message_id",) if "is_bot_reply" in row else ()))
    found = text_of(first_of(row, *named)) or text_of(meta.get("message_id"))
    return found or f"gryag:{text_of(first_of(row, 'id', 'message_id'))}"


def _parts(row: Mapping[str, Any], media: Sequence[Any], *, unique_id: str) -> tuple[Part, ...]:
    kinds = [(_kind(one), _mime(one)) for one in media if isinstance(one, dict) and "file_data" not in one]
    named = text_of(first_of(row, "media_type", "content_type"))
    if named not in ("", "text"):
        kinds.append((named, None))
    shown = [
        Media(media_kind=kind, unique_id=f"{unique_id}-{number}", mime=mime)
        for number, (kind, mime) in enumerate(kinds)
    ]
    text = text_of(first_of(row, "text", "content"))
    return (*shown, Text(text=text)) if text else tuple(shown)


def _kind(media: Mapping[str, Any]) -> str:
    mime = _mime(media) or ""
    given = media.get("kind")
    return given if isinstance(given, str) and given else _KINDS.get(mime.partition("/")[0], "document")


def _mime(media: Mapping[str, Any]) -> str | None:
    inside = media.get("inline_data")
    found = (inside if isinstance(inside, dict) else media).get("mime_type") or media.get("mime")
    return found if isinstance(found, str) else None


def first_of(row: Mapping[str, Any], *names: str, meta: Mapping[str, Any] | None = None) -> Any:
    """Return the first of the columns that has a value, else that of the metadata."""
    values = [row.get(name) for name in names] + [(meta or {}).get(name) for name in names]
    return next((value for value in values if value not in (None, "")), None)


def json_of(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def text_of(value: Any) -> str:
    return "" if value is None else str(value)


def is_true(value: Any) -> bool:
    return value in (1, True, "1", "t", "true")


def moment_of(value: Any) -> datetime | None:
    """Return a time in seconds, or as PostgreSQL writes it; one without a zone is in UTC."""
    try:
        if isinstance(value, int | float) or text_of(value).isdecimal():
            return datetime.fromtimestamp(float(value), UTC)
        written = datetime.fromisoformat(text_of(value))
        return written.replace(tzinfo=written.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None

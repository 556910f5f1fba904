"""What gryag remembers: facts, episodes and bans in its databases. Pure.

Columns are read by their names; a column that is missing counts as empty, others are ignored.

| table | columns |
|---|---|
| `user_memories`, `user_facts` | `user_id`, `chat_id`, the words, `confidence`, `source_message_id`, `created_at` |
| `facts` | `entity_type`, `entity_id`, `chat_context`, and the same |
| `episodes` | `chat_id`, `topic`, `summary`, `message_ids`, `participant_ids`, `tags`, `importance` |
| `bans`, `user_restrictions` | `user_id`, `chat_id`, `restriction_type`, `expires_at` |

The words of a fact are in `memory_text`, `fact_text`, `fact` or `fact_description`, else in `fact_key` and
`fact_value`. A row whose `is_active` is false is skipped.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from tertulia.formats.gryag import first_of, is_true, json_of, moment_of, place_of, text_of
from tertulia.formats.imported import ImportedBan, ImportedEpisode, Remembered, Skipped
from tertulia.formats.telegram_export import NOT_WANTED, SERVICE
from tertulia.memory.values import Fact, Subject
from tertulia.memory.verify.claims import unfit_reason

GRYAG = "gryag"
NO_FACT = "facts without a person or words"
ABOUT_CHATS = "facts about chats, not about people"
GIVEN_UP = "facts that were given up"
UNFIT = "facts that are instructions, secrets or no short sentences"
NO_EPISODE = "episodes without a chat or words"
NO_PERSON = "bans without a person"
ENDED = "bans that have ended"

_WORDS = ("memory_text", "fact_text", "fact", "fact_description")


class GryagMemory(Struct, frozen=True, kw_only=True):
    """How rows are read: for which bot, which chats, and at what time."""

    bot_id: str
    chats: Collection[str] = ()  # ids; empty: all
    now: datetime

    def read(self, table: str, row: Mapping[str, Any]) -> Remembered | Skipped:
        """Return what a row of one of `MEMORY_TABLES` says."""
        return _READERS[table](self, row)


def _read_fact(how: GryagMemory, row: Mapping[str, Any]) -> Fact | Skipped:
    if text_of(row.get("entity_type")) == "chat":
        return Skipped(reason=ABOUT_CHATS)
    person, text = text_of(first_of(row, "user_id", "entity_id")), _words(row)
    if not (person.isdecimal() and text):
        return Skipped(reason=NO_FACT)
    if _is_inactive(row):
        return Skipped(reason=GIVEN_UP)
    if unfit_reason(text):
        return Skipped(reason=UNFIT)
    chat = _chat_id(row) or person
    if how.chats and chat not in how.chats:
        return Skipped(reason=NOT_WANTED)
    source = text_of(row.get("source_message_id"))
    return Fact(
        id=_digest("fact", how.bot_id, chat, person, text),
        subject=Subject(platform=SERVICE, id=person),
        text=text,
        place=place_of(how.bot_id, chat),
        sources=(source,) if source else (),
        learned_at=moment_of(first_of(row, "created_at", "updated_at")) or how.now,
        scope="direct" if chat == person else "chat",
        confidence=_share(row.get("confidence"), 1.0),
        hearsay=True,
        imported_from=GRYAG,
    )


def _read_episode(how: GryagMemory, row: Mapping[str, Any]) -> ImportedEpisode | Skipped:
    chat, topic, summary = _chat_id(row), text_of(row.get("topic")).strip(), text_of(row.get("summary")).strip()
    if not chat or not (topic or summary):
        return Skipped(reason=NO_EPISODE)
    if how.chats and chat not in how.chats:
        return Skipped(reason=NOT_WANTED)
    return ImportedEpisode(
        id=_digest("episode", how.bot_id, chat, topic, summary),
        place=place_of(how.bot_id, chat),
        message_ids=_texts(row.get("message_ids")),
        topic=topic,
        summary=summary,
        people=_texts(row.get("participant_ids")),
        tags=_texts(row.get("tags")),
        importance=_share(row.get("importance"), 0.5),
    )


def _read_ban(how: GryagMemory, row: Mapping[str, Any]) -> ImportedBan | Skipped:
    person, chat = text_of(row.get("user_id")), _chat_id(row)
    if not person.isdecimal() or person == how.bot_id or text_of(row.get("restriction_type")) not in ("", "ban"):
        return Skipped(reason=NO_PERSON)
    if how.chats and chat and chat not in how.chats:
        return Skipped(reason=NOT_WANTED)
    until = moment_of(first_of(row, "expires_at", "until"))
    if _is_inactive(row) or (until and until <= how.now):
        return Skipped(reason=ENDED)
    return ImportedBan(platform=SERVICE, author_id=person, until=until)


_READERS: Mapping[str, Callable[[GryagMemory, Mapping[str, Any]], Remembered | Skipped]] = {
    "user_memories": _read_fact,
    "user_facts": _read_fact,
    "facts": _read_fact,
    "episodes": _read_episode,
    "bans": _read_ban,
    "user_restrictions": _read_ban,
}
MEMORY_TABLES = tuple(_READERS)


def _words(row: Mapping[str, Any]) -> str:
    if said := text_of(first_of(row, *_WORDS)).strip():
        return said
    key, value = (text_of(row.get(name)).strip() for name in ("fact_key", "fact_value"))
    return f"{key.replace('_', ' ')}: {value}" if key and value else value


def _is_inactive(row: Mapping[str, Any]) -> bool:
    return row.get("is_active") is not None and not is_true(row["is_active"])


def _chat_id(row: Mapping[str, Any]) -> str:
    """Return the id of the chat of a row; empty if it names none."""
    chat = text_of(first_of(row, "chat_id", "chat_context"))
    return chat if chat.removeprefix("-").isdecimal() else ""


def _texts(value: Any) -> tuple[str, ...]:
    found = json_of(value)
    return tuple(str(one) for one in found if isinstance(one, str | int)) if isinstance(found, list) else ()


def _share(value: Any, default: float) -> float:
    try:
        return min(1.0, max(0.0, float(value)))
    except (TypeError, ValueError):
        return default


def _digest(*parts: str) -> str:
    """Return an id that is the same in each import."""
    return f"{GRYAG}-{parts[0]}-{hashlib.sha256(chr(0).join(parts).encode(errors='surrogatepass')).hexdigest()[:16]}"

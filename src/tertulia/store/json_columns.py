"""The columns with JSON: what decodes them, and how their values are changed."""

from collections.abc import Callable, Mapping
from typing import Any

from tertulia.store import encoding as stored
from tertulia.store.database import Database
from tertulia.store.encoding import dumps, load_settings

JSON_COLUMNS: Mapping[str, Mapping[str, Callable[[str], Any]]] = {  # by table, with what decodes them
    "places": {"place_key": stored.ANY.loads},
    "titles": {"body": stored.PLACE.loads},
    "names": {"body": stored.AUTHOR.loads},
    "messages": {
        "media": stored.ANY.loads,
        "reply": stored.QUOTE.loads,
        "parts": stored.PARTS.loads,
        "forwarded_from": stored.AUTHOR.loads,
    },
    "message_parts": {"content": stored.PARTS.loads},
    "message_changes": {"before": stored.MESSAGE.loads},
    "turns": {"turns": stored.TURNS.loads},
    "decisions": {"addressed": stored.STRINGS.loads},
    "descriptions": {"body": stored.ANY.loads},
    "model_caches": {"fingerprint": stored.FINGERPRINT.loads, "replaces": stored.STRINGS.loads},
    "runs": {"message_ids": stored.STRINGS.loads},
    "owner_settings": {"value": stored.SETTING_VALUE.loads, "replaced": stored.SETTING_VALUE.loads},
    "chats": {"exchange": stored.EXCHANGE.loads},
    "chat_entries": {"entry": stored.ENTRY.loads},
    "records": {"turn": stored.TURN.loads, "raw": stored.ANY.loads},
    "tool_runs": {"call": stored.CALL.loads, "result": stored.RESULT.loads},
    "toolsets": {"tools": stored.TOOLS.loads},
    "prompts": {"settings": load_settings, "left_out": stored.LEFT_OUT.loads},
    "calls": dict.fromkeys(("vendor", "receipts", "media"), stored.ANY.loads),
    "outbox": {"author": stored.AUTHOR.loads, "turns": stored.TURNS.loads, "reply": stored.REPLY.loads},
    "tasks": {"body": stored.TASK.loads},
    "episodes": {"people": stored.STRINGS.loads, "tags": stored.STRINGS.loads},
    "window_pasts": {"people": stored.STRINGS.loads},
    "reactions": {"emojis": stored.STRINGS.loads},
    "commands": {"message": stored.MESSAGE.loads},
    "place_agents": {"agents": stored.STRINGS.loads},
    "place_aliases": {"place_key": stored.STRINGS.loads},
    "place_events": {"body": stored.ANY.loads},
    "rooms": {"cap": stored.CAP.loads},
}


def rewrite(
    database: Database, table: str, column: str, change: Callable[[Any], Any], where: str, **values: Any
) -> None:
    """Replace the values of a column in the rows of a WHERE clause by changed ones."""
    loads = JSON_COLUMNS[table][column]
    found = database.all(f"SELECT id, {column} FROM {table} WHERE {where} AND {column} IS NOT NULL", **values)
    rows = [{"row": row, "text": dumps(change(loads(text)))} for row, text in found]
    database.many(f"UPDATE {table} SET {column} = :text WHERE id = :row", rows)

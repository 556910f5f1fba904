"""Rows of what gryag remembers are read by the columns that they have."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tertulia.formats.gryag_memory import ABOUT_CHATS, MEMORY_TABLES, NO_EPISODE, NO_FACT, GryagMemory
from tertulia.formats.imported import Skipped
from tertulia.memory.values import Fact

NOW = datetime(2026, 11, 18, tzinfo=UTC)
MEMORY = GryagMemory(bot_id="4242", now=NOW)


@pytest.mark.parametrize(
    ("table", "row", "expected"),
    [
        ("user_memories", {"user_id": 5, "chat_id": -1, "memory_text": "likes tea"}, ("likes tea", "-1", "chat")),
        ("user_memories", {"user_id": 5, "fact": "likes tea"}, ("likes tea", "5", "direct")),
        ("user_facts", {"user_id": "5", "chat_id": "9", "fact_text": "likes tea"}, ("likes tea", "9", "chat")),
        (
            "user_facts",
            {"user_id": 5, "fact_key": "home_town", "fact_value": "Lviv"},
            ("home town: Lviv", "5", "direct"),
        ),
        (
            "facts",
            {"entity_type": "user", "entity_id": 5, "chat_context": -1, "fact_value": "likes tea"},
            ("likes tea", "-1", "chat"),
        ),
    ],
)
def test_each_schema_of_facts_is_read(table: str, row: dict[str, Any], expected: tuple[str, str, str]) -> None:
    found = MEMORY.read(table, row)

    assert isinstance(found, Fact)
    assert (found.text, found.place.id, found.scope) == expected
    assert (found.subject.id, found.learned_at, found.imported_from) == ("5", NOW, "gryag")


@pytest.mark.parametrize("table", MEMORY_TABLES)
@pytest.mark.parametrize(
    "row",
    [
        {},
        {"something": b"\xff", "else": None},
        {"user_id": "x", "chat_id": "y", "topic": None, "message_ids": "[", "expires_at": "soon", "is_active": "?"},
    ],
)
def test_other_columns_are_skipped(table: str, row: dict[str, Any]) -> None:
    assert isinstance(MEMORY.read(table, row), Skipped)


@pytest.mark.parametrize(
    ("table", "row", "reason"),
    [
        ("facts", {"entity_type": "chat", "entity_id": -1, "fact_value": "no spam"}, ABOUT_CHATS),
        ("user_memories", {"user_id": 5, "memory_text": "  "}, NO_FACT),
        ("episodes", {"chat_id": -1, "topic": "", "summary": None}, NO_EPISODE),
    ],
)
def test_the_reason_is_told(table: str, row: dict[str, Any], reason: str) -> None:
    assert MEMORY.read(table, row) == Skipped(reason=reason)

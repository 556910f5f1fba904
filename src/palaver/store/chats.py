"""Chats with a name: the entries of their histories, and the open exchange."""

from collections.abc import Sequence
from typing import cast

from palaver.errors import InvalidValue
from palaver.run.chat_history import HistoryEntry
from palaver.run.stored_chat import ChatState, OpenExchange
from palaver.store.encoding import ENTRY, EXCHANGE, dumps, validate_id
from palaver.store.forget.removal import remove_chat
from palaver.store.prompts import SqlPrompts
from palaver.store.sqlite.connection import Database
from palaver.store.sqlite.writer import ConnectionThread, Repository


class SqlChats(Repository):
    """Implements `run.stored_chat.Chats`."""

    def __init__(self, writer: ConnectionThread, reader: ConnectionThread, prompts: SqlPrompts) -> None:
        super().__init__(writer, reader)
        self._prompts = prompts

    async def read(self, name: str) -> ChatState:
        return await self._reader.run(lambda database: _read(database, name))

    async def edition(self, name: str) -> int | None:
        return await self._reader.run(lambda database: _edition(database, name))

    async def write(
        self,
        name: str,
        start: int,
        entries: Sequence[HistoryEntry],
        exchange: OpenExchange | None,
        *,
        edition: int | None,
    ) -> int:
        validate_id(name, "chat")
        rows = [(name, number, dumps(entry)) for number, entry in enumerate(entries, start)]
        under_way = None if exchange is None else dumps(exchange)
        return await self._writer.run(lambda database: _write(database, name, start, rows, under_way, edition))

    async def names(self) -> list[str]:
        return await self._reader.run(
            lambda database: [name for (name,) in database.execute("SELECT name FROM chats ORDER BY name")]
        )

    async def remove(self, name: str) -> bool:
        """Remove a chat with its prompts and records; return whether there was one."""
        self._prompts.clear_cache()
        return await self._writer.run(lambda database: remove_chat(database, name))


def _edition(database: Database, name: str) -> int | None:
    found = database.execute("SELECT edition FROM chats WHERE name = ?", (name,)).fetchone()
    return found[0] if found else None


def _read(database: Database, name: str) -> ChatState:
    found = database.execute("SELECT exchange, edition FROM chats WHERE name = ?", (name,)).fetchone()
    if found is None:
        return ChatState()
    exchange, edition = found
    rows = database.execute("SELECT entry FROM chat_entries WHERE chat = ? ORDER BY number", (name,))
    return ChatState(
        entries=tuple(ENTRY.loads(entry) for (entry,) in rows),
        exchange=None if exchange is None else EXCHANGE.loads(exchange),
        edition=edition,
    )


def _write(
    database: Database,
    name: str,
    start: int,
    rows: list[tuple[str, int, str]],
    exchange: str | None,
    edition: int | None,
) -> int:
    if _edition(database, name) != edition:
        raise InvalidValue(f"something in the chat {name!r} was forgotten meanwhile; what was under way is not stored")
    put = """INSERT INTO chats (name, exchange) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET exchange = excluded.exchange RETURNING edition"""
    (stored_edition,) = database.execute(put, (name, exchange)).fetchone()
    database.execute("DELETE FROM chat_entries WHERE chat = ? AND number >= ?", (name, start))
    database.executemany("INSERT INTO chat_entries (chat, number, entry) VALUES (?, ?, ?)", rows)
    return cast("int", stored_edition)

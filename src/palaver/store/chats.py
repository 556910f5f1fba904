"""Chats by their names: the entries of their histories, and the exchange that is under way."""

from collections.abc import Sequence

from palaver.agent.history import Entry
from palaver.messages import Place
from palaver.run.stored_chat import ChatState, Exchange
from palaver.store.forgetting import remove_places
from palaver.store.people import find_place
from palaver.store.prompts import Prompts
from palaver.store.run_removal import remove_unused_layers
from palaver.store.sqlite import Database, unlearn
from palaver.store.values import Kind, an_id, dumps
from palaver.store.writer import Owner

_ENTRY = Kind[Entry](Entry)
_EXCHANGE = Kind[Exchange](Exchange)


class Chats:
    """`run.stored_chat.Chats`, stored."""

    def __init__(self, writer: Owner, reader: Owner, prompts: Prompts) -> None:
        self._writer = writer
        self._reader = reader
        self._prompts = prompts

    async def read(self, name: str) -> ChatState:
        return await self._reader.run(lambda database: _read(database, name))

    async def write(self, name: str, start: int, entries: Sequence[Entry], exchange: Exchange | None) -> None:
        an_id(name, "chat")
        rows = [(name, number, dumps(entry)) for number, entry in enumerate(entries, start)]
        under_way = None if exchange is None else dumps(exchange)
        await self._writer.run(lambda database: _write(database, name, start, rows, under_way))

    async def names(self) -> list[str]:
        return await self._reader.run(
            lambda database: [name for (name,) in database.execute("SELECT name FROM chats ORDER BY name")]
        )

    async def remove(self, name: str) -> bool:
        """Remove a chat with all that was asked and answered in it; whether there was one."""
        self._prompts.forget()
        return await self._writer.run(lambda database: _remove(database, name))


def _read(database: Database, name: str) -> ChatState:
    found = database.execute("SELECT exchange FROM chats WHERE name = ?", (name,)).fetchone()
    if found is None:
        return ChatState()
    rows = database.execute("SELECT entry FROM chat_entries WHERE chat = ? ORDER BY number", (name,))
    entries = tuple(_ENTRY.loads(entry) for (entry,) in rows)
    return ChatState(entries=entries, exchange=None if found[0] is None else _EXCHANGE.loads(found[0]))


def _write(database: Database, name: str, start: int, rows: list[tuple[str, int, str]], exchange: str | None) -> None:
    put = (
        "INSERT INTO chats (name, exchange) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET exchange = excluded.exchange"
    )
    database.execute(put, (name, exchange))
    database.execute("DELETE FROM chat_entries WHERE chat = ? AND number >= ?", (name, start))
    database.executemany("INSERT INTO chat_entries (chat, number, entry) VALUES (?, ?, ?)", rows)


def _remove(database: Database, name: str) -> bool:
    place = find_place(database, Place(platform="chat", id=name, kind="direct"))
    if place is not None:
        remove_places(database, [place])
        remove_unused_layers(database)
        unlearn(database)
    database.execute("DELETE FROM chat_entries WHERE chat = ?", (name,))
    return bool(database.execute("DELETE FROM chats WHERE name = ?", (name,)).rowcount)

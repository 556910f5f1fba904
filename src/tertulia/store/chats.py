"""Chats with a name: the entries of their histories, the open exchange, and the removal of forgotten content.

Forgetting removes whole exchanges, so that every result keeps its call. The speaker of such a chat is unknown. So it is
searched for the words of a person like a place where that person never was, and a fact about them counts only in an
exchange that also names them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import cast

from tertulia.errors import InvalidValue
from tertulia.memory.verify.statements import Statement, mentioned_in
from tertulia.parts import ToolResult
from tertulia.run.chat_history import HistoryEntry
from tertulia.run.stored_chat import ChatState, OpenExchange, place_of_chat
from tertulia.store.encoding import ENTRY, EXCHANGE, dumps, validate_id
from tertulia.store.forget import removal
from tertulia.store.forget.person_words import PersonWords, Vocabulary
from tertulia.store.identities import find_place
from tertulia.store.model_caches import drop_caches
from tertulia.store.prompts import SqlPrompts
from tertulia.store.sqlite.connection import Database, clear_cache
from tertulia.store.threads import ConnectionThread, Repository

Holds = Callable[[str], bool]  # whether an exchange, as JSON, is to be removed


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


def remove_chat(database: Database, name: str) -> bool:
    """Remove a chat with its prompts and records; return whether there was one."""
    place = find_place(database, place_of_chat(name))
    if place is not None:
        removal.remove_places(database, [place])
        removal.remove_unused_layers(database)
        clear_cache(database)
    drop_caches(database)
    database.execute("DELETE FROM chat_entries WHERE chat = ?", (name,))
    return bool(database.execute("DELETE FROM chats WHERE name = ?", (name,)).rowcount)


def count_exchanges(database: Database, name: str) -> int:
    """Count the exchanges of a chat, with the open one."""
    found = database.execute("SELECT exchange FROM chats WHERE name = ?", (name,)).fetchone()
    return len(list(_exchanges(database, name))) + (found is not None and found[0] is not None)


def remove_exchanges_with_words(database: Database, words: Vocabulary, gone: Collection[str], at: datetime) -> int:
    """Remove the exchanges with a person's words; *gone* are the runs that lost their prompts for them."""
    removed = 0
    for name, exchange in database.execute("SELECT name, exchange FROM chats").fetchall():
        theirs = words.at(find_place(database, place_of_chat(name)) or 0)
        removed += _remove_exchanges(database, name, theirs.is_in)
        run_id = None if exchange is None else EXCHANGE.loads(exchange).run_id
        if run_id in gone or theirs.is_in(exchange):
            _end_exchange(database, name, run_id, at)
            removed += 1
    return removed


def remove_exchanges_stating(
    database: Database, facts: Sequence[tuple[Statement, PersonWords]], at: datetime | None
) -> None:
    """Remove the exchanges that state one of these facts, each given with the names of its person."""
    telling = [(fact, called) for fact, called in facts if fact.is_telling and called]

    def states(text: str) -> bool:
        found = mentioned_in(text, [fact for fact, _ in telling])
        return any(fact in found and called.is_in(text) for fact, called in telling)

    if not telling:
        return
    for name, exchange in database.execute("SELECT name, exchange FROM chats").fetchall():
        removed = _remove_exchanges(database, name, states)
        if exchange is not None and (removed or states(exchange)):  # its prompt shows the removed exchanges
            run_id = EXCHANGE.loads(exchange).run_id
            removal.remove_runs(database, [run_id])
            clear_cache(database)
            _end_exchange(database, name, run_id, at)


def _remove_exchanges(database: Database, name: str, holds: Holds) -> int:
    """Remove the exchanges of a chat for which *holds* is true; return their number."""
    exchanges = list(_exchanges(database, name))
    remaining = [entries for entries in exchanges if not holds("\n".join(entries))]
    if len(remaining) == len(exchanges):
        return 0
    database.execute("DELETE FROM chat_entries WHERE chat = ?", (name,))
    rows = [(name, number, entry) for number, entry in enumerate(entry for entries in remaining for entry in entries)]
    database.executemany("INSERT INTO chat_entries (chat, number, entry) VALUES (?, ?, ?)", rows)
    database.execute("UPDATE chats SET edition = edition + 1 WHERE name = ?", (name,))
    return len(exchanges) - len(remaining)


def _end_exchange(database: Database, name: str, run_id: str | None, at: datetime | None) -> None:
    """End the open exchange; the next write of its run is refused."""
    database.execute("UPDATE chats SET exchange = NULL, edition = edition + 1 WHERE name = ?", (name,))
    update = "UPDATE runs SET status = 'failed', ended_at = ? WHERE run_id = ? AND status = 'open'"
    database.execute(update, (at and at.isoformat(), run_id))


def _exchanges(database: Database, name: str) -> Iterator[list[str]]:
    """Yield the exchanges of a chat, each as the JSON of its entries."""
    exchange: list[str] = []
    for (entry,) in database.execute("SELECT entry FROM chat_entries WHERE chat = ? ORDER BY number", (name,)):
        if exchange and _begins(ENTRY.loads(entry)):
            yield exchange
            exchange = []
        exchange.append(entry)
    if exchange:
        yield exchange


def _begins(entry: HistoryEntry) -> bool:
    """Return whether an exchange begins with this entry: a turn of the user without tool results."""
    turn = entry.turn or (entry.record.turn if entry.record else None)
    return turn is not None and turn.role == "user" and not any(isinstance(part, ToolResult) for part in turn.parts)

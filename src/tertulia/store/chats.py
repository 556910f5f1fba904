"""Chats with a name: the entries of their histories, the open exchange, and the removal of forgotten content.

Forgetting removes whole exchanges, so that every result keeps its call. The speaker of such a chat is unknown. So it is
searched for the words of a person like a place where that person never was, and a fact about them counts only in an
exchange that also names them.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from itertools import pairwise

from tertulia.errors import InvalidValue
from tertulia.parts import ToolResult
from tertulia.run.chat_values import ChatState, HistoryEntry, OpenExchange, place_of_chat
from tertulia.store.database import Database
from tertulia.store.encoding import ENTRY, EXCHANGE, dumps, format_time, validate_id
from tertulia.store.forget import removal
from tertulia.store.identities import find_place
from tertulia.store.model_caches import drop_caches
from tertulia.store.prompts import SqlPrompts
from tertulia.store.threads import Access, Repository, reading

Exchange = tuple[int, int, str]  # the numbers of its first entry and the next one, and its entries as lines of JSON


class SqlChats(Repository):
    """Implements `run.chat_values.Chats`."""

    def __init__(self, access: Access, prompts: SqlPrompts) -> None:
        super().__init__(access)
        self._prompts = prompts

    @reading
    def read(self, database: Database, name: str) -> ChatState:
        found = database.one("SELECT exchange, edition FROM chats WHERE name = :name", name=name)
        if found is None:
            return ChatState()
        exchange, edition = found
        entries = database.column("SELECT entry FROM chat_entries WHERE chat = :name ORDER BY number", name=name)
        return ChatState(
            entries=tuple(map(ENTRY.loads, entries)),
            exchange=None if exchange is None else EXCHANGE.loads(exchange),
            edition=edition,
        )

    @reading
    def edition(self, database: Database, name: str) -> int | None:
        return _edition(database, name)

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
        stored = [dumps(entry) for entry in entries]
        under_way = None if exchange is None else dumps(exchange)
        return await self._writer.run(lambda database: _write(database, name, start, stored, under_way, edition))

    @reading
    def names(self, database: Database) -> list[str]:
        return database.column("SELECT name FROM chats ORDER BY name")

    async def remove(self, name: str) -> bool:
        """Remove a chat with its prompts and records; return whether there was one."""
        self._prompts.clear_cache()
        return await self._writer.run(lambda database: remove_chat(database, name))


def _edition(database: Database, name: str) -> int | None:
    found: int | None = database.value("SELECT edition FROM chats WHERE name = :name", name=name)
    return found


def _write(
    database: Database, name: str, start: int, entries: list[str], exchange: str | None, edition: int | None
) -> int:
    if _edition(database, name) != edition:
        raise InvalidValue(f"something in the chat {name!r} was forgotten meanwhile; what was under way is not stored")
    upsert = """INSERT INTO chats (name, exchange) VALUES (:name, :exchange)
        ON CONFLICT (name) DO UPDATE SET exchange = excluded.exchange RETURNING edition"""
    stored_edition: int = database.value(upsert, name=name, exchange=exchange)
    _replace_entries(database, name, start, entries)
    return stored_edition


def _replace_entries(database: Database, name: str, start: int, entries: list[str]) -> None:
    """Replace the entries of a chat from number *start* on."""
    database.run("DELETE FROM chat_entries WHERE chat = :name AND number >= :start", name=name, start=start)
    database.many(
        "INSERT INTO chat_entries (chat, number, entry) VALUES (:name, :number, :entry)",
        [{"name": name, "number": number, "entry": entry} for number, entry in enumerate(entries, start)],
    )


def remove_chat(database: Database, name: str) -> bool:
    """Remove a chat with its prompts and records; return whether there was one."""
    place = find_place(database, place_of_chat(name))
    if place is not None:
        removal.remove_place(database, place)
    drop_caches(database)
    return bool(database.run("DELETE FROM chats WHERE name = :name", name=name))


def remove_exchanges(database: Database, name: str, ranges: Collection[tuple[int, int]]) -> None:
    """Remove the entries of a chat with these numbers, each range without its end."""
    gone = {number for start, stop in ranges for number in range(start, stop)}
    entries = database.all("SELECT number, entry FROM chat_entries WHERE chat = :name ORDER BY number", name=name)
    _replace_entries(database, name, 0, [entry for number, entry in entries if number not in gone])
    database.run("UPDATE chats SET edition = edition + 1 WHERE name = :name", name=name)


def read_texts(database: Database) -> list[str]:
    """Return the exchanges of all chats, each as JSON, with those that are open."""
    chats = read_chats(database)
    ended = [text for _, _, exchanges in chats for *_, text in exchanges]
    return ended + [exchange for _, exchange, _ in chats if exchange is not None]


def remove_exchanges_stating(database: Database, states: Callable[[str], bool], at: datetime | None) -> None:
    """Remove the exchanges that state what is forgotten."""
    for name, exchange, exchanges in read_chats(database):
        stating = [(start, stop) for start, stop, text in exchanges if states(text)]
        if stating:
            remove_exchanges(database, name, stating)
        if exchange is not None and (stating or states(exchange)):  # its prompt shows the removed exchanges
            removal.remove_runs(database, "run_id = :run", run=EXCHANGE.loads(exchange).run_id)
            end_exchange(database, name, at)


def read_chats(database: Database) -> list[tuple[str, str | None, list[Exchange]]]:
    """Return the name of each chat, its open exchange, and the others."""
    entries: dict[str, list[str]] = {}
    for name, entry in database.all("SELECT chat, entry FROM chat_entries ORDER BY chat, number"):
        entries.setdefault(name, []).append(entry)
    chats = database.all("SELECT name, exchange FROM chats ORDER BY name")
    return [(name, exchange, _exchanges(entries.get(name, ()))) for name, exchange in chats]


def end_exchange(database: Database, name: str, at: datetime | None) -> None:
    """End the open exchange of a chat; the next write of its run is refused."""
    found = database.one("SELECT exchange FROM chats WHERE name = :name AND exchange IS NOT NULL", name=name)
    if found:
        database.run("UPDATE chats SET exchange = NULL, edition = edition + 1 WHERE name = :name", name=name)
        update = "UPDATE runs SET status = 'failed', ended_at = :at WHERE run_id = :run_id AND status = 'open'"
        database.run(update, at=format_time(at), run_id=EXCHANGE.loads(found[0]).run_id)


def _exchanges(entries: Sequence[str]) -> list[Exchange]:
    starts = [number for number, entry in enumerate(entries) if not number or _begins(ENTRY.loads(entry))]
    return [(start, stop, "\n".join(entries[start:stop])) for start, stop in pairwise([*starts, len(entries)])]


def _begins(entry: HistoryEntry) -> bool:
    """Return whether an exchange begins with this entry: a turn of the user without tool results."""
    turn = entry.turn or (entry.record.turn if entry.record else None)
    return turn is not None and turn.role == "user" and not any(isinstance(part, ToolResult) for part in turn.parts)

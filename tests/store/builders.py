"""Runs, replies and other things that are kept: builders, and a look at the files."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from people import GROUP, NOON
from stored_rows import add, on
from tertulia.decisions import Decision
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import PromptRemoved
from tertulia.memory import rules
from tertulia.memory.values import CursorKind
from tertulia.messages import Message, Place, Reply
from tertulia.models.gemini.cache_values import CacheFingerprint, StoredCache
from tertulia.parts import ToolCall
from tertulia.run.journal import Run, ToolRun
from tertulia.store import Store, cursors
from tertulia.store.encoding import dumps
from tertulia.store.messages import MessageRow, insert_own
from tertulia.store.threads import Access
from tertulia.tasks import graph
from tertulia.tasks.task import Task
from tertulia.turns import Prompt, Record, Turn, model

PROMPT = Prompt.of("What was said.", system="Be kind.")


def an_access(store: Store, **changes: Any) -> Access:
    """What members of a store work with, beside its own members."""
    fields: dict[str, Any] = {"facts": rules, "plans": graph, "clear_caches": store.log.clear_cache}
    return Access(store.writer, store.reader, **fields | changes)


def a_run(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "id": "r1", "place": GROUP, "target": "m1", "taken": ("m1",), "began_at": NOON, "horizon": 1,
    }  # fmt: skip
    return Run(**fields | changes)


def a_record(**changes: Any) -> Record:
    fields: dict[str, Any] = {"turn": model("Yes?", by="gemini-3.8-flash"), "at": NOON, "raw": {"candidates": []}}
    return Record(**fields | changes)


def a_cache(label: str = "tertulia me 1", **changes: Any) -> StoredCache:
    print_of = CacheFingerprint(digest=b"d\xff", frame=b"f", length=10, half=b"h")
    fields: dict[str, Any] = {
        "label": label, "account": "gemini:host:key", "model": "gemini-3.8-flash", "fingerprint": print_of,
        "expires_at": NOON + timedelta(hours=1),
    }  # fmt: skip
    return StoredCache(**fields | changes)


def a_tool_run(**changes: Any) -> ToolRun:
    fields: dict[str, Any] = {"step": 0, "number": 0, "call": ToolCall(name="look", id="a"), "began_at": NOON}
    return ToolRun(**fields | changes)


def an_outgoing(text: str = "Yes?", **changes: Any) -> OutboxItem:
    fields: dict[str, Any] = {"id": "o1", "reply": Reply(place=GROUP, text=text), "made_at": NOON}
    return OutboxItem(**fields | changes)


def a_task(**changes: Any) -> Task:
    fields: dict[str, Any] = {"id": "t1", "kind": "send", "place": GROUP, "due_at": NOON, "args": {"text": "hi"}}
    return Task(**fields | changes)


async def skip(store: Store, place: Place, *message_ids: str) -> None:
    """Let messages that wait be not addressed to us."""
    await store.inbox.skip(place, dict.fromkeys(message_ids, Decision(reason="not addressed")), at=NOON)


@asynccontextmanager
async def a_store_of(messages: Iterable[Message]) -> AsyncIterator[Store]:
    """A store in memory that has received these messages."""
    async with Store.open(":memory:") as opened:
        for message in messages:
            await opened.inbox.receive(message, at=NOON)
        yield opened


async def begin(store: Store, run: Run) -> None:
    """Begin a run with a prompt that is of no importance."""
    await store.runs.begin(run, PROMPT, at=NOON)


async def prompt_sent(store: Store, run_id: str, step: int) -> Prompt | None:
    """The prompt of a step; None where it was removed."""
    with suppress(PromptRemoved):
        found = await store.prompts.sent(run_id, step)
        return found.prompt if found else None
    return None


async def add_own(store: Store, message: Message, turns: Sequence[Turn] = ()) -> None:
    """Store a message of the agent, as if it had been sent."""
    row, made = MessageRow(message), dumps(tuple(turns)) if turns else None
    await store.writer.run(lambda database: insert_own(database, row, made))


async def add_episode(store: Store, **columns: Any) -> None:
    """Store an episode of the first place."""
    fields: dict[str, Any] = {
        "place": 1, "title": 1, "start": 0, "stop": 1, "topic": "t", "summary": "s", "importance": 0.5, "people": "[]",
        "tags": "[]",
    }  # fmt: skip
    await on(store, add, "episodes", **fields | columns)
    spoke = """INSERT INTO episode_people (episode, author) SELECT e.id, a.id FROM episodes e, authors a
        WHERE e.episode_id = :name AND a.author_id IN (:people)"""
    named = {"name": columns["episode_id"], "people": json.loads((fields | columns)["people"])}
    await store.writer.run(lambda database: database.run(spoke, **named))


async def set_cursor(store: Store, place: Place, number: int, what: CursorKind = "facts") -> None:
    await store.writer.run(lambda database: cursors.set_cursor(database, place, number, what))


async def cursor(store: Store, place: Place, what: CursorKind = "facts") -> int:
    return await store.reader.run(lambda database: cursors.read_cursor(database, place, what))


async def rows(store: Store, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return these columns of all rows of a table, as they are exported."""
    return [tuple(row[column] for column in columns) async for row in store.export() if row["table"] == table]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def files_hold(folder: Path, words: str) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return any(words in path.name or words.encode() in path.read_bytes() for path in files)

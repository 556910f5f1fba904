"""Prompts as they were sent, with layers stored once and as deltas.

Most of a prompt repeats the one before it: instructions are equal, the history grows at its end. So a layer is stored
once, by the hash of its content. A layer that begins like the last one at the same position of the same place is
stored as a delta: the row of that `base`, the length of the common prefix in bytes, and the suffix. Reading follows the
bases and joins prefixes and suffixes. A chain has at most `_MAX_DEPTH` bases, then a layer is stored whole again. The
content of the last layers is cached for the comparison; without it a layer is stored whole, which costs only space.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from tertulia.errors import PromptRemoved
from tertulia.run.journal import FallbackStep, Run, SentPrompt
from tertulia.store.encoding import LAYER, LEFT_OUT, TOOLS, clean, dump_bytes, dumps, load_settings, validate
from tertulia.store.identities import place_key
from tertulia.store.sqlite.connection import Database, cache_get, cache_put, clear_cache, insert_new_row, insert_row
from tertulia.store.threads import ConnectionThread, Repository
from tertulia.turns import Layer, Prompt

REMOVED = "[removed: it held words of somebody who was forgotten]"

_MAX_DEPTH = 200  # bases in a chain
_MIN_SHARED = 256  # bytes of common prefix from which a delta is stored
CACHE_BYTES = 32 * 2**20  # content of cached layers
PAGE = 1000  # prompts whose age is read at once
RUNS_AT_ONCE = 20  # runs that lose their prompts in one transaction


class LayerBase(NamedTuple):
    """A stored layer that the next one may begin like."""

    row: int
    digest: str
    content: bytes


class PreparedLayer(NamedTuple):
    """A layer about to be stored."""

    name: str
    digest: str
    content: bytes
    base: int | None  # the layer with the common prefix
    shared: int
    seen: bool  # whether it equals the cached one


class PreparedPrompt(NamedTuple):
    """A prompt about to be stored."""

    row: tuple[Any, ...]
    tools: str
    keys: Sequence[tuple[str, int, str]]
    layers: Sequence[PreparedLayer]
    left_out: str | None = None  # as JSON; None: as in the step before


class SqlPrompts(Repository):
    """Implements `engine.store_protocols.PromptStore`."""

    def __init__(self, writer: ConnectionThread, reader: ConnectionThread, *, cache_bytes: int = CACHE_BYTES) -> None:
        super().__init__(writer, reader)
        self._cache_bytes = cache_bytes
        self._last: OrderedDict[tuple[str, int, str], LayerBase] = OrderedDict()
        self._size = 0

    async def sent(self, run_id: str, step: int) -> SentPrompt | None:
        return await self._reader.run(lambda database: _read_sent(database, run_id, step))

    async def sent_by(self, run_id: str | None = None) -> Sequence[SentPrompt]:
        """Return the prompts of a run, of the last one by default; of each step the last."""
        return await self._reader.run(lambda database: _read_run(database, run_id))

    async def runs(self, prefix: str, *, most: int = 10) -> Sequence[str]:
        """Return the ids of the newest runs that begin with *prefix*."""
        select = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? ORDER BY id DESC LIMIT ?"
        values = (len(prefix), prefix, most)
        return await self._reader.run(lambda database: [row for (row,) in database.execute(select, values)])

    async def remove_old(
        self, before: datetime, *, at: datetime, page: int = PAGE, at_once: int = RUNS_AT_ONCE
    ) -> AsyncIterator[int]:
        start: int | None = 0
        while start is not None:
            start, found = await self._reader.run(partial(_read_old, start=start, page=page, before=before))
            for runs in _groups(found, at_once):
                yield await self._writer.run(partial(remove_prompts, runs=runs, at=at))

    def prepare(
        self, run: Run, step: int, prompt: Prompt, *, at: datetime, tried: FallbackStep | None = None
    ) -> PreparedPrompt:
        """Encode a prompt and compare its layers with the cached ones."""
        place = place_key(run.place)
        keys = [(place, position, layer.name) for position, layer in enumerate(prompt.layers)]
        fallback = (clean(tried.fallback), clean(tried.why)) if tried else (None, "")
        return PreparedPrompt(
            row=(run.id, step, at.isoformat(), dumps(prompt.settings), prompt.cached, *fallback, clean(run.model)),
            tools=dumps(prompt.tools),
            keys=keys,
            layers=[self._prepare_layer(key, layer) for key, layer in zip(keys, prompt.layers, strict=True)],
        )

    def cache_layers(self, prepared: PreparedPrompt, rows: Sequence[int]) -> None:
        """Cache the layers that were stored in these rows."""
        for key, row, layer in zip(prepared.keys, rows, prepared.layers, strict=True):
            self._cache_layer(key, LayerBase(row, layer.digest, layer.content))

    def clear_cache(self) -> None:
        """Forget the cached layers."""
        self._last.clear()
        self._size = 0

    def _prepare_layer(self, key: tuple[str, int, str], layer: Layer) -> PreparedLayer:
        content = dump_bytes(layer)
        last = self._last.get(key)
        if last and last.content == content:
            return PreparedLayer(clean(layer.name), last.digest, content, None, 0, seen=True)
        shared = common_prefix(last.content, content) if last else 0
        base = last.row if last and shared >= _MIN_SHARED else None
        return PreparedLayer(clean(layer.name), layer_digest(content), content, base, shared if base else 0, seen=False)

    def _cache_layer(self, key: tuple[str, int, str], base: LayerBase) -> None:
        before = self._last.pop(key, None)
        self._last[key] = base
        self._size += len(base.content) - (len(before.content) if before else 0)
        while self._size > self._cache_bytes:
            _, gone = self._last.popitem(last=False)
            self._size -= len(gone.content)


def insert_prompt(database: Database, prepared: PreparedPrompt) -> list[int]:
    """Store a prompt; return the rows of its layers."""
    insert = """INSERT INTO prompts (run_id, step, at, settings, cached, fallback, why, model, toolset, left_out)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
    row = (*prepared.row, _upsert_toolset(database, prepared.tools), prepared.left_out)
    prompt = insert_row(database, insert, row)
    rows = [_upsert_layer(database, layer) for layer in prepared.layers]
    if rows:
        marks = ", ".join(["(?, ?, ?)"] * len(rows))
        values = [value for position, layer in enumerate(rows) for value in (prompt, position, layer)]
        database.execute(f"INSERT INTO prompt_layers (prompt, position, layer) VALUES {marks}", values)
    return rows


def common_prefix(one: bytes, other: bytes) -> int:
    """Return the number of bytes that both begin with, in whole characters."""
    low, high = 0, min(len(one), len(other))
    first, second = memoryview(one), memoryview(other)
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    while low and low < len(other) and other[low] & 0xC0 == 0x80:
        low -= 1
    return low


def _read_sent(database: Database, run_id: str, step: int) -> SentPrompt | None:
    """Return the last prompt of a step. `left_out` is that of the newest prompt before it which has one."""
    select = """SELECT p.id, p.at, p.model, p.fallback, p.why, (
            SELECT l.left_out FROM prompts l WHERE l.run_id = p.run_id AND l.id <= p.id AND l.left_out IS NOT NULL
            ORDER BY l.id DESC LIMIT 1
        ) FROM prompts p WHERE p.run_id = ? AND p.step = ? ORDER BY p.id DESC LIMIT 1"""
    found = database.execute(select, (run_id, step)).fetchone()
    if found is None:
        _refuse_removed(database, run_id)
        return None
    row, at, model, fallback, why, left = found
    return SentPrompt(
        run_id=run_id,
        step=step,
        at=datetime.fromisoformat(at),
        model=model,
        prompt=read_prompt(database, row),
        left_out=LEFT_OUT.loads(left) if left else (),
        tried=None if fallback is None else validate(FallbackStep(step=step, fallback=fallback, why=why, model=model)),
    )


def _read_run(database: Database, run_id: str | None) -> list[SentPrompt]:
    if run_id is None:
        last = database.execute("SELECT run_id FROM prompts ORDER BY id DESC LIMIT 1").fetchone()
        if last is None:
            return []
        run_id = str(last[0])
    steps = database.execute("SELECT DISTINCT step FROM prompts WHERE run_id = ? ORDER BY step", (run_id,)).fetchall()
    if not steps:
        _refuse_removed(database, run_id)
    return [sent for (step,) in steps if (sent := _read_sent(database, run_id, step))]


def _refuse_removed(database: Database, run_id: str) -> None:
    """Raise `PromptRemoved` for a run whose prompts had become too old."""
    found = database.execute("SELECT prompts_removed_at FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if found and found[0]:
        raise PromptRemoved(
            f"the prompts of run {run_id!r} were removed on {found[0][:10]}: they were older than Behavior.keep_prompts"
        )


def _read_old(
    database: Database, start: int, page: int, before: datetime
) -> tuple[int | None, Iterable[Sequence[str]]]:
    """Return where the next page of prompts starts, and the runs of this page that ended before *before*, by place."""
    select = """SELECT p.id, p.run_id, r.place, coalesce(r.ended_at, r.began_at), r.status = 'open' FROM (
            SELECT id, run_id FROM prompts WHERE id >= ? ORDER BY id LIMIT ?
        ) p JOIN runs r ON r.run_id = p.run_id ORDER BY p.id"""
    rows = database.execute(select, (start, page)).fetchall()
    by_place: dict[int, dict[str, None]] = {}
    for _, run, place, ended_at, is_open in rows:
        if not is_open and datetime.fromisoformat(ended_at) < before:
            by_place.setdefault(place, {})[run] = None
    return (rows[-1][0] + 1 if len(rows) == page else None), [tuple(runs) for runs in by_place.values()]


def _groups(by_place: Iterable[Sequence[str]], size: int) -> Iterator[Sequence[str]]:
    """Yield runs of one place each, at most *size*.

    The layers of a place are deltas of each other, so after a group only one layer at each position is stored whole.
    """
    for runs in by_place:
        yield from (runs[start : start + size] for start in range(0, len(runs), size))


def remove_prompts(database: Database, runs: Sequence[str], at: datetime) -> int:
    """Remove the prompts of runs, and the layers that no other prompt has; return the number of prompts."""
    marks = ", ".join("?" * len(runs))
    prompts = f"SELECT id FROM prompts WHERE run_id IN ({marks})"
    had = database.execute(f"SELECT DISTINCT layer FROM prompt_layers WHERE prompt IN ({prompts})", runs).fetchall()
    database.execute(f"DELETE FROM prompt_layers WHERE prompt IN ({prompts})", runs)
    count = database.execute(f"DELETE FROM prompts WHERE run_id IN ({marks})", runs).rowcount
    database.execute(f"UPDATE runs SET prompts_removed_at = ? WHERE run_id IN ({marks})", (at.isoformat(), *runs))
    used = "SELECT 1 FROM prompt_layers WHERE layer = ? LIMIT 1"
    remove_layers(database, {row for (row,) in had if database.execute(used, (row,)).fetchone() is None})
    clear_cache(database)
    return count


def remove_layers(database: Database, gone: Collection[int]) -> None:
    """Remove layers that no prompt has; the layers based on them are stored whole."""
    select = "SELECT id FROM layers WHERE base = ?"
    based = [row for base in gone for (row,) in database.execute(select, (base,)).fetchall() if row not in gone]
    for row in based:
        content = layer_content(database, row) or b""
        update = "UPDATE layers SET base = NULL, prefix_length = 0, depth = 0, suffix = ? WHERE id = ?"
        database.execute(update, (content.decode(), row))
    database.executemany("UPDATE layers SET base = NULL WHERE id = ?", [(row,) for row in gone])
    database.executemany("DELETE FROM layers WHERE id = ?", [(row,) for row in gone])


def remove_fact_ids(database: Database, places: Iterable[int]) -> None:
    """Remove the ids of facts that were left out of the prompts of *places*; their number stays."""
    select = """SELECT p.id, p.left_out FROM prompts p JOIN runs r ON r.run_id = p.run_id
        WHERE r.place = ? AND p.left_out IS NOT NULL"""
    for place in places:
        for row, text in database.execute(select, (place,)).fetchall():
            left = [replace(one, ids=()) if one.source == "background" else one for one in LEFT_OUT.loads(text)]
            database.execute("UPDATE prompts SET left_out = ? WHERE id = ?", (dumps(left), row))


def last_prompt(database: Database, run_id: str) -> tuple[int, Prompt] | None:
    """Return the last step with a prompt, and that prompt."""
    select = "SELECT step, id FROM prompts WHERE run_id = ? ORDER BY id DESC LIMIT 1"
    found = database.execute(select, (run_id,)).fetchone()
    return None if found is None else (found[0], read_prompt(database, found[1]))


def read_prompt(database: Database, row: int) -> Prompt:
    """Read the prompt of a row."""
    select = "SELECT t.tools, p.settings, p.cached FROM prompts p JOIN toolsets t ON t.id = p.toolset WHERE p.id = ?"
    tools, how, cached = database.execute(select, (row,)).fetchone()
    layers = "SELECT layer FROM prompt_layers WHERE prompt = ? ORDER BY position"
    rows = [layer for (layer,) in database.execute(layers, (row,)).fetchall()]
    return Prompt(
        layers=tuple(_read_layer(database, layer) for layer in rows),
        tools=TOOLS.loads(tools),
        settings=load_settings(how),
        cached=cached,
    )


def layer_content(database: Database, row: int) -> bytes | None:
    """Return a layer's JSON, joined from its bases and suffixes; None if it was removed."""
    links: list[tuple[int, bytes]] = []
    following: int | None = row
    while following is not None:
        select = "SELECT base, prefix_length, suffix, removed FROM layers WHERE id = ?"
        following, shared, rest, removed = database.execute(select, (following,)).fetchone()
        if removed:
            return None
        links.append((shared, rest.encode()))
    content = b""
    for shared, rest in reversed(links):
        content = content[:shared] + rest
    return content


def layer_digest(content: bytes) -> str:
    return blake2b(content, digest_size=32).hexdigest()


def _read_layer(database: Database, row: int) -> Layer:
    content = layer_content(database, row)
    if content is not None:
        return LAYER.loads(content.decode())
    name = database.execute("SELECT name FROM layers WHERE id = ?", (row,)).fetchone()[0]
    return Layer(name=name, instruction=REMOVED)


def _upsert_toolset(database: Database, tools: str) -> int:
    cached: int | None = cache_get(database, ("tools", tools))
    if cached is not None:
        return cached
    name = layer_digest(tools.encode())
    found = database.execute("SELECT id FROM toolsets WHERE hash = ?", (name,)).fetchone()
    if found is None:
        insert = "INSERT INTO toolsets (hash, tools) VALUES (?, ?) RETURNING id"
        found = database.execute(insert, (name, tools)).fetchone()
    cache_put(database, ("tools", tools), found[0])
    return cast("int", found[0])


def _upsert_layer(database: Database, layer: PreparedLayer) -> int:
    cached: int | None = cache_get(database, ("layer", layer.digest))
    return cached or (None if layer.seen else _insert_layer(database, layer)) or _find_layer(database, layer)


def _find_layer(database: Database, layer: PreparedLayer) -> int:
    """Return the row of a layer that was stored before; it is cached, since it is likely to be used again."""
    found = database.execute("SELECT id FROM layers WHERE hash = ?", (layer.digest,)).fetchone()
    row = found[0] if found else _insert_layer(database, layer)
    cache_put(database, ("layer", layer.digest), row)
    return cast("int", row)


def _insert_layer(database: Database, layer: PreparedLayer) -> int | None:
    """Store a new layer; return its row, or None if there is one with the same hash."""
    base, shared, depth = layer.base, layer.shared, _depth(database, layer.base)
    if not 0 < depth <= _MAX_DEPTH:
        base, shared, depth = None, 0, 0
    insert = """INSERT INTO layers (hash, name, base, prefix_length, depth, suffix) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (hash) DO NOTHING"""
    row = (layer.digest, layer.name, base, shared, depth, layer.content[shared:].decode())
    return insert_new_row(database, insert, row)


def _depth(database: Database, base: int | None) -> int:
    """Return the depth of a layer with that base; 0 if the base does not exist."""
    if base is None:
        return 0
    found = database.execute("SELECT depth FROM layers WHERE id = ? AND removed = 0", (base,)).fetchone()
    return found[0] + 1 if found else 0

"""Prompts as they were sent, with layers stored once and as deltas.

Most of a prompt repeats the one before it: instructions are equal, the history grows at its end. So a layer is stored
once, by the hash of its content. A layer that begins like the last one at the same position of the same place is
stored as a delta: the row of that `base`, the length of the common prefix in bytes, and the suffix. Reading follows the
bases and joins prefixes and suffixes. A chain has at most `_MAX_DEPTH` bases, then a layer is stored whole again. The
last layers are cached for the comparison. Where one is missing, or was not stored after all, a layer is stored whole,
which costs only space.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b
from operator import is_
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from tertulia.context.values import LeftOut
from tertulia.errors import PromptRemoved
from tertulia.models.calls import PromptSize
from tertulia.run.journal import FallbackStep, PromptLedger, Run, SentPrompt
from tertulia.store import usage
from tertulia.store.database import Database, insert_into, insert_row
from tertulia.store.encoding import (
    LAYER,
    LEFT_OUT,
    TOOLS,
    Columns,
    clean,
    dump_bytes,
    dumps,
    format_time,
    load_settings,
)
from tertulia.store.identities import place_key
from tertulia.store.threads import Access, Repository, reading
from tertulia.turns import Layer, Prompt

_MAX_DEPTH = 200  # bases in a chain
_MIN_SHARED = 256  # bytes of common prefix from which a delta is stored
_HASHED_AT_ONCE = 2047  # bytes: of more, other threads take the interpreter meanwhile
CACHE_BYTES = 16 * 2**20  # content of cached layers
PAGE = 1000  # prompts whose age is read at once
RUNS_AT_ONCE = 20  # runs that lose their prompts in one transaction

_SIZE = Columns(PromptSize, "tools=tool_tokens stable broken_by cause", "p")
_TRIED = Columns(FallbackStep, "fallback step why model", "p")
_SENT = Columns(SentPrompt, "run_id step at model", "p", size=_SIZE, tried=_TRIED)

# Prompts of a run, in order, each with its tools.
_PROMPTS = f"""SELECT p.id, p.left_out, t.tools, p.settings, p.cached, {_SENT}
    FROM prompts p JOIN toolsets t ON t.id = p.toolset WHERE p.run_id = :run_id ORDER BY p.id"""

# The last prompt of a run.
_LAST_PROMPT = """SELECT p.id, p.step, t.tools, p.settings, p.cached
    FROM prompts p JOIN toolsets t ON t.id = p.toolset WHERE p.run_id = :run_id ORDER BY p.id DESC LIMIT 1"""

# Layers, and all that they begin like: each layer asked for, with its own rows from the first to the last.
_LAYERS = """WITH RECURSIVE links (wanted, row, distance) AS (
        SELECT id, id, 0 FROM layers WHERE id IN (:layers)
        UNION ALL SELECT links.wanted, l.base, links.distance + 1
        FROM links JOIN layers l ON l.id = links.row WHERE l.base IS NOT NULL
    ) SELECT links.wanted, l.prefix_length, l.suffix
    FROM links JOIN layers l ON l.id = links.row ORDER BY links.wanted, links.distance DESC"""

# The row and the depth of a layer.
_FIND_LAYER = "SELECT id, depth FROM layers WHERE hash = :hash"

# A new layer, unless there is one with the same content.
_INSERT_LAYER = """INSERT INTO layers (hash, name, base, prefix_length, depth, suffix)
    VALUES (:hash, :name, :base, :prefix_length, :depth, :suffix) ON CONFLICT (hash) DO NOTHING"""

# A layer that begins like none any more.
_STORE_WHOLE = "UPDATE layers SET base = NULL, prefix_length = 0, depth = 0, suffix = :suffix WHERE id = :id"

_Read = tuple[Prompt, tuple[int, ...], tuple[int, ...]]  # with the tokens of its layers, and of their instructions
_UNREAD = Prompt(layers=())
_Key = tuple[str, int, str]  # place and agent, position and name of a layer


class PreparedLayer(NamedTuple):
    """A layer about to be stored."""

    name: str
    digest: str
    content: bytes
    base: str = ""  # the digest of the layer with the common prefix
    shared: int = 0


class PreparedPrompt(NamedTuple):
    """A prompt about to be stored: its columns, its tools, its layers and its size."""

    columns: dict[str, Any]
    tools: str
    layers: Sequence[PreparedLayer]
    size: PromptSize


class SqlPrompts(Repository):
    """Implements `run.journal.StoredPrompts`."""

    def __init__(self, access: Access, ledger: PromptLedger, *, cache_bytes: int = CACHE_BYTES) -> None:
        super().__init__(access)
        self._ledger = ledger
        self._cache_bytes = cache_bytes
        self._last: OrderedDict[_Key, tuple[Layer, PreparedLayer]] = OrderedDict()  # mostly the next one is equal
        self._size = 0

    @reading
    def sent(self, database: Database, run_id: str, step: int) -> SentPrompt | None:
        found = read_sent(database, run_id, step)
        return found[0] if found else None

    @reading
    def sent_by(self, database: Database, run_id: str | None = None) -> Sequence[SentPrompt]:
        """Return the prompts of a run, of the last one by default; of each step the last."""
        last = run_id or database.value("SELECT run_id FROM prompts ORDER BY id DESC LIMIT 1")
        return read_sent(database, last) if last else []

    @reading
    def runs(self, database: Database, prefix: str, *, most: int = 10) -> Sequence[str]:
        """Return the ids of the newest runs that begin with *prefix*."""
        select = "SELECT run_id FROM runs WHERE substr(run_id, 1, :length) = :prefix ORDER BY id DESC LIMIT :most"
        return database.column(select, length=len(prefix), prefix=prefix, most=most)

    async def remove_old(
        self, before: datetime, *, at: datetime, page: int = PAGE, at_once: int = RUNS_AT_ONCE
    ) -> AsyncIterator[int]:
        start: int | None = 0
        while start is not None:
            start, found = await self._reader.run(partial(_read_old, start=start, page=page, before=before))
            for runs in found:  # deltas are of one place: after a group, one layer at each position is stored whole
                for first in range(0, len(runs), at_once):
                    yield await self._writer.run(partial(remove_prompts, runs=runs[first : first + at_once], at=at))
        await self._writer.run(lambda database: usage.remove_old_calls(database, before))

    def prepare(
        self,
        run: Run,
        step: int,
        prompt: Prompt,
        *,
        at: datetime,
        tried: FallbackStep | None = None,
        left_out: Sequence[LeftOut] = (),
    ) -> PreparedPrompt:
        """Encode a prompt and compare its layers with the cached ones."""
        series = place_key(run.place) + run.agent  # of prompts, each of which begins like the one before
        keys = [(series, position, layer.name) for position, layer in enumerate(prompt.layers)]
        size = self._ledger.measure(series, prompt, run.model)
        why = tried or FallbackStep(step=step, fallback="", why="")
        columns = {
            **_SIZE.encode(size),
            **_TRIED.encode(replace(why, step=step, model=run.model)),
            "fallback": clean(why.fallback) or None,
            "run_id": run.id,
            "at": at.isoformat(),
            "settings": dumps(prompt.settings),
            "cached": prompt.cached,
            "left_out": dumps(left_out) if left_out else None,  # None: as in the step before
        }
        layers = [self._prepare_layer(key, layer) for key, layer in zip(keys, prompt.layers, strict=True)]
        return PreparedPrompt(columns, dumps(prompt.tools), layers, size)

    def clear_cache(self) -> None:
        """Forget the cached layers."""
        self._last.clear()
        self._size = 0
        self._ledger.clear()

    def _prepare_layer(self, key: _Key, layer: Layer) -> PreparedLayer:
        before, last = self._last.pop(key, (None, None))
        prepared = last if last and before and _is_same(before, layer) else _encode_layer(layer, last)
        self._last[key] = layer, prepared
        self._size += len(prepared.content) - (len(last.content) if last else 0)
        while self._size > self._cache_bytes:
            _, (_, gone) = self._last.popitem(last=False)
            self._size -= len(gone.content)
        return prepared


def _encode_layer(layer: Layer, last: PreparedLayer | None) -> PreparedLayer:
    """Encode a layer, and compare it with the last one."""
    content = dump_bytes(layer)
    if last and last.content == content:
        return last
    shared = common_prefix(last.content, content) if last else 0
    base, shared = (last.digest, shared) if last and shared >= _MIN_SHARED else ("", 0)
    return PreparedLayer(clean(layer.name), layer_digest(content), content, base, shared)


def _is_same(one: Layer, other: Layer) -> bool:
    """Return whether two layers have the same turns: equal ones may hold 1 and 1.0."""
    if one.instruction != other.instruction or len(one.turns) != len(other.turns):
        return False
    return all(map(is_, one.turns, other.turns))


def insert_prompt(database: Database, prepared: PreparedPrompt) -> None:
    """Store a prompt."""
    toolset = _upsert_toolset(database, prepared.tools)
    prompt = insert_row(database, "prompts", **prepared.columns, toolset=toolset)
    rows = [_upsert_layer(database, layer) for layer in prepared.layers]
    sizes = zip(rows, prepared.size.layers, prepared.size.instructions, strict=True)
    database.many(
        insert_into("prompt_layers", "prompt", "position", "layer", "tokens", "instruction"),
        [
            {"prompt": prompt, "position": position, "layer": layer, "tokens": tokens, "instruction": instruction}
            for position, (layer, tokens, instruction) in enumerate(sizes)
        ],
    )


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


def read_sent(database: Database, run_id: str, step: int | None = None) -> list[SentPrompt]:
    """Return the last prompt of each step, or of one. What is left out of a prompt is as in the one before it, where
    it does not say it itself.
    """
    left: tuple[LeftOut, ...] = ()
    last: dict[int, tuple[int, Sequence[Any], SentPrompt]] = {}
    for row, left_out, tools, settings, cached, *columns in database.all(_PROMPTS, run_id=run_id):
        left = LEFT_OUT.loads(left_out) if left_out else left
        sent = _SENT.decode(columns, prompt=_UNREAD, left_out=left)
        last[sent.step] = row, (tools, settings, cached), sent
    wanted = [last[number] for number in sorted(last) if step in (None, number)]
    if not last:
        _refuse_removed(database, run_id)
    prompts = _read_prompts(database, {row: columns for row, columns, _ in wanted})
    found: list[SentPrompt] = []
    for row, _, sent in wanted:
        prompt, tokens, instructions = prompts[row]
        size = replace(sent.size, layers=tokens, instructions=instructions)
        found.append(replace(sent, prompt=prompt, size=size))
    return found


def _refuse_removed(database: Database, run_id: str) -> None:
    """Raise `PromptRemoved` for a run whose prompts had become too old, or showed what was forgotten."""
    found = database.one("SELECT prompts_removed_at, forgotten FROM runs WHERE run_id = :run_id", run_id=run_id)
    if found and found[1]:
        raise PromptRemoved(f"the prompts of run {run_id!r} were removed by a forget")
    if found and found[0]:
        raise PromptRemoved(
            f"the prompts of run {run_id!r} were removed on {found[0][:10]}: they were older than Behavior.keep_prompts"
        )


def _read_old(
    database: Database, start: int, page: int, before: datetime
) -> tuple[int | None, Iterable[Sequence[str]]]:
    """Return where the next page of prompts starts, and the runs of this page that ended before *before*, by place."""
    select = """SELECT p.id, p.run_id, r.place, r.status, coalesce(r.ended_at, r.began_at)
        FROM (SELECT id, run_id FROM prompts WHERE id >= :start ORDER BY id LIMIT :page) p
        JOIN runs r ON r.run_id = p.run_id ORDER BY p.id"""
    rows = database.all(select, start=start, page=page)
    by_place: dict[int, dict[str, None]] = {}
    for _, run, place, status, ended_at in rows:
        if status != "open" and datetime.fromisoformat(ended_at) < before:
            by_place.setdefault(place, {})[run] = None
    return (rows[-1][0] + 1 if len(rows) == page else None), [tuple(runs) for runs in by_place.values()]


def remove_prompts(database: Database, runs: Sequence[str], at: datetime | None) -> int:
    """Remove the prompts and calls of runs, too old *at* a moment, and unused layers; return how many prompts."""
    of_runs = "DELETE FROM prompt_layers WHERE prompt IN (SELECT id FROM prompts WHERE run_id IN (:runs))"
    had = set(database.column(f"{of_runs} RETURNING layer", runs=runs))
    count = database.run("DELETE FROM prompts WHERE run_id IN (:runs)", runs=runs)
    usage.remove_calls(database, runs)
    database.run("DELETE FROM recalled WHERE run_id IN (:runs)", runs=runs)
    update = "UPDATE runs SET prompts_removed_at = :at WHERE run_id IN (:runs)"
    database.run(update, at=format_time(at), runs=runs)
    unused = """SELECT l.id FROM layers l WHERE l.id IN (:layers)
        AND NOT EXISTS (SELECT 1 FROM prompt_layers p WHERE p.layer = l.id)"""
    remove_layers(database, database.column(unused, layers=had))
    database.cache.clear()
    return count


def remove_layers(database: Database, gone: Collection[int]) -> None:
    """Remove layers that no prompt has; the layers based on them are stored whole."""
    select = "SELECT id FROM layers WHERE base IN (:gone) AND id NOT IN (:gone)"
    based = database.column(select, gone=gone)
    contents = layer_contents(database, based)
    whole = [{"suffix": content.decode(), "id": row} for row, content in contents.items()]
    database.many(_STORE_WHOLE, whole)
    database.run("UPDATE layers SET base = NULL WHERE id IN (:gone)", gone=gone)
    database.run("DELETE FROM layers WHERE id IN (:gone)", gone=gone)


def last_prompt(database: Database, run_id: str) -> tuple[int, Prompt] | None:
    """Return the last step with a prompt, and that prompt."""
    found = database.one(_LAST_PROMPT, run_id=run_id)
    if found is None:
        return None
    row, step, *columns = found
    return step, _read_prompts(database, {row: columns})[row][0]


def _read_prompts(database: Database, rows: Mapping[int, Sequence[Any]]) -> dict[int, _Read]:
    """Return prompts by their rows, which are given with tools, settings and cache."""
    select = """SELECT prompt, layer, tokens, instruction FROM prompt_layers
        WHERE prompt IN (:prompts) ORDER BY prompt, position"""
    used = database.all(select, prompts=list(rows))
    contents = layer_contents(database, {layer for _, layer, *_ in used})
    layers = {layer: LAYER.loads(content.decode()) for layer, content in contents.items()}
    found: dict[int, _Read] = {}
    for row, (tools, settings, cached) in rows.items():
        own = [one[1:] for one in used if one[0] == row]
        prompt = Prompt(
            layers=tuple(layers[layer] for layer, *_ in own),
            tools=TOOLS.loads(tools),
            settings=load_settings(settings),
            cached=cached,
        )
        found[row] = prompt, tuple(tokens for _, tokens, _ in own), tuple(one for *_, one in own)
    return found


def layer_contents(database: Database, rows: Collection[int]) -> dict[int, bytes]:
    """Return the JSON of layers, joined from their bases and suffixes."""
    contents = dict.fromkeys(rows, b"")
    for row, shared, suffix in database.all(_LAYERS, layers=list(rows)):
        contents[row] = contents[row][:shared] + suffix.encode()
    return contents


def layer_digest(content: bytes) -> str:
    made = blake2b(digest_size=32)
    for start in range(0, len(content), _HASHED_AT_ONCE):
        made.update(content[start : start + _HASHED_AT_ONCE])
    return made.hexdigest()


def _upsert_toolset(database: Database, tools: str) -> int:
    cached: int | None = database.cache.get(("tools", tools))
    if cached is not None:
        return cached
    name = layer_digest(tools.encode())
    found: int | None = database.value("SELECT id FROM toolsets WHERE hash = :hash", hash=name)
    row = found or insert_row(database, "toolsets", hash=name, tools=tools)
    database.cache.put(("tools", tools), row)
    return row


def _upsert_layer(database: Database, layer: PreparedLayer) -> int:
    """Return the row of a layer, which is stored if it is new. One whose base is gone, or whose chain is too long, is
    stored whole.
    """
    if known := database.cache.get(("layer", layer.digest)):
        return cast("int", known[0])
    base, depth = _find_layer(database, layer.base) if layer.base else (None, 0)
    if depth >= _MAX_DEPTH:
        base = None
    shared = layer.shared if base else 0
    depth = depth + 1 if base else 0
    row = database.insert_new(
        _INSERT_LAYER,
        hash=layer.digest,
        name=layer.name,
        base=base,
        prefix_length=shared,
        depth=depth,
        suffix=layer.content[shared:].decode(),
    )
    if row is None:
        return cast("int", _find_layer(database, layer.digest)[0])
    database.cache.put(("layer", layer.digest), (row, depth))
    return row


def _find_layer(database: Database, digest: str) -> tuple[int | None, int]:
    """Return the row and the depth of a layer; None and 0 if it is not stored."""
    known = database.cache.get(("layer", digest))
    if known is None and (known := database.one(_FIND_LAYER, hash=digest)):
        database.cache.put(("layer", digest), known)
    return known or (None, 0)

"""The cache ledger: how long the stable prefix of each request is, and which layer ended it. Pure."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from operator import add

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.jsonio import dumps
from tertulia.models.base import Usage
from tertulia.models.calls import PromptSize
from tertulia.parts import Text
from tertulia.prompt import forms
from tertulia.tokens import ESTIMATOR, grown_tokens, layer_tokens, part_tokens, tool_tokens, turn_tokens
from tertulia.turns import Layer, Prompt, ToolSpec, Turn
from tertulia.value_cache import cached

MAX_ENTRIES = 100
MAX_PLACES = 64
_SAMPLE = 200  # characters by which a place in a text is found again
CUT = "the window was cut at its start"
REMOVED = "something in it was deleted, hidden or forgotten"
CHANGED = "something in it was edited, or is shown in other words"
HISTORY = "history"  # the turns of the static layer: it has an instruction too
STATE = "it tells the latest state: the time, memories, files, tasks"

Piece = tuple[str, Turn | str | tuple[ToolSpec, ...]]  # the layer it belongs to, and what it is


class LayerEntry(Struct, frozen=True, kw_only=True):
    name: str
    fingerprint: str
    tokens: int


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """One request: its layers, and the length of its stable prefix."""

    layers: tuple[LayerEntry, ...]
    tokens: int
    stable: int  # tokens of the prefix that it shares with the request before it
    broken_by: str | None = (
        None  # the first layer of the request before that is not repeated, or `history`; None: all are
    )
    reported: Usage | None = None  # by the service

    @property
    def share(self) -> float:
        """The share of the stable prefix in the request."""
        return self.stable / self.tokens if self.tokens else 0.0


class Ledgers:
    """The last prompts of places, to which the next ones are compared; of the *most* places that were used last."""

    def __init__(self, most: int = MAX_PLACES) -> None:
        self._most = most
        self._last: OrderedDict[str, tuple[str, tuple[Piece, ...], list[int]]] = OrderedDict()

    def measure(self, place: str, prompt: Prompt, model: str) -> PromptSize:
        """Return the size of a prompt that is about to be sent, and what of it repeats the one before."""
        pieces = tuple(_pieces(prompt))
        model_before, before, tokens = self._last.pop(place, ("", (), []))
        same = _count_same(before, pieces)
        common = _common_prefix(before, pieces, same)  # first: of a piece that has grown it counts only the rest
        tokens = [*tokens[:same], *(_tokens(piece) for _, piece in pieces[same:])]
        self._last[place] = model, pieces, tokens
        if len(self._last) > self._most:
            self._last.popitem(last=False)
        size = _size(prompt, iter(tokens))
        if not before:
            return replace(size, cause="nothing to compare with: the first request, or the first since a start")
        if model != model_before:
            return replace(size, broken_by="model", cause="another model is asked")
        broken = _first_broken(before, pieces, same)
        broken_by = before[broken][0] if broken < len(before) else None
        cause = _cause(before, pieces, broken) if broken_by else ""
        return replace(size, stable=sum(tokens[:same]) + common, broken_by=broken_by, cause=cause)

    def clear(self) -> None:
        """Forget the prompts: they may hold what was forgotten."""
        self._last.clear()


def _size(prompt: Prompt, tokens: Iterator[int]) -> PromptSize:
    """Return the size of a prompt by the *tokens* of its pieces."""
    tools = next(tokens) if prompt.tools else 0
    instructions = tuple([next(tokens) if layer.instruction else 0 for layer in prompt.layers])
    turns = [sum(islice(tokens, len(layer.turns))) for layer in prompt.layers]
    return PromptSize(tools=tools, layers=tuple(map(add, instructions, turns)), instructions=instructions)


def _cause(before: tuple[Piece, ...], now: tuple[Piece, ...], at: int) -> str:
    """Return in words why the piece of *before* at this place is not repeated."""
    layer, old = before[at]
    new = now[at][1] if at < len(now) else None
    if layer == "tools" or isinstance(new, tuple):
        return "the tools are others"
    if isinstance(old, str):
        return "its instruction changed"
    if layer == "dynamic":
        return STATE
    if layer in ("trigger", "run"):
        return "another message is answered"
    if new is None:
        return "nothing of it is left"
    is_start = all(isinstance(piece, str) or _is_past(piece) for name, piece in before[:at] if name == layer)
    if is_start and _is_past(new) and not _is_past(old):
        return CUT
    if new in [piece for _, piece in before[at:]]:
        return CUT if is_start else REMOVED
    if isinstance(old, Turn) and isinstance(new, Turn) and not _is_past(old):
        return _turn_cause(old, new, is_start=is_start)
    return CHANGED


def _is_past(piece: object) -> bool:
    """Return whether a piece is the summary of what was said before the window, which stays where that is cut."""
    return isinstance(piece, Turn) and any(isinstance(part, Text) and forms.PAST in part.text for part in piece.parts)


def _turn_cause(old: Turn, new: Turn, *, is_start: bool) -> str:
    """Return why a history that is one turn does not go on as before: of a text, or with a part for each message."""
    if is_start and len(old.parts) == len(new.parts) == 1:
        return _text_cause(old.text, new.text)
    start = _shared_parts(old, new)
    following = new.parts[start : start + 1]
    if following and following[0] not in old.parts[start:]:
        return CHANGED
    return CUT if is_start and not start else REMOVED


def _text_cause(old: str, new: str) -> str:
    """Return why a history that is one text does not begin as before."""
    start = _common_length(old, new)
    following = new[start : start + _SAMPLE]
    if not following:
        return REMOVED
    if following in old[start:]:
        return CUT if start < _SAMPLE else REMOVED
    return CHANGED


class Ledger:
    """The requests of one conversation, the newest last."""

    def __init__(self) -> None:
        self.entries: deque[LedgerEntry] = deque(maxlen=MAX_ENTRIES)
        self.prompt: Prompt | None = None  # the last one
        self._last: tuple[Piece, ...] = ()

    def record_request(self, prompt: Prompt) -> LedgerEntry:
        """Add a request that is about to be sent."""
        pieces = tuple(_pieces(prompt))
        before, same = self._last, _count_same(self._last, pieces)
        broken, common = _first_broken(before, pieces, same), _common_prefix(before, pieces, same)
        layers = layer_entries(prompt)
        entry = LedgerEntry(
            layers=layers,
            tokens=sum(layer.tokens for layer in layers),
            stable=sum(_tokens(piece) for _, piece in pieces[:same]) + common,
            broken_by=before[broken][0] if broken < len(before) else None,
        )
        self.entries.append(entry)
        self.prompt, self._last = prompt, pieces
        return entry

    def record_usage(self, usage: Usage) -> None:
        """Add the usage that the service reported for the last request."""
        if self.entries:
            self.entries[-1] = replace(self.entries[-1], reported=usage)


def _pieces(prompt: Prompt) -> Iterator[Piece]:
    """Yield the pieces of a prompt in the order a service reads them: tools, instruction, turns."""
    if prompt.tools:
        yield "tools", prompt.tools
    for layer in prompt.layers:
        if layer.instruction:
            yield layer.name, layer.instruction
    for layer in prompt.layers:
        for turn in layer.turns:
            yield HISTORY if layer.name == "static" else layer.name, turn


def _count_same(before: tuple[Piece, ...], now: tuple[Piece, ...]) -> int:
    """Return with how many equal pieces two prompts begin."""
    for at, (old, new) in enumerate(zip(before, now, strict=False)):
        if old[1] is not new[1] and old[1] != new[1]:
            return at
    return min(len(before), len(now))


def _first_broken(before: tuple[Piece, ...], now: tuple[Piece, ...], same: int) -> int:
    """Return the place in *before* of the first piece that is not repeated: what only grew at its end is."""
    has_grown = same < min(len(before), len(now)) and _has_grown(before[same][1], now[same][1])
    return same + has_grown


def _has_grown(old: Turn | str | tuple[ToolSpec, ...], new: Turn | str | tuple[ToolSpec, ...]) -> bool:
    """Return whether a turn has become longer at its end."""
    if not isinstance(old, Turn) or not isinstance(new, Turn) or old.role != new.role or not old.parts:
        return False
    shared = _shared_parts(old, new)
    if shared < len(old.parts) - 1 or len(new.parts) < len(old.parts):
        return False
    last, other = old.parts[-1], new.parts[len(old.parts) - 1]
    return last == other or (isinstance(last, Text) and isinstance(other, Text) and other.text.startswith(last.text))


def _common_prefix(before: tuple[Piece, ...], now: tuple[Piece, ...], at: int) -> int:
    """Return the tokens of the common prefix of two pieces that differ, if there are two."""
    if at >= min(len(before), len(now)):
        return 0
    old, new = before[at][1], now[at][1]
    match old, new:
        case str(), str():
            return _common_words(old, new)
        case Turn(), Turn() if old.role == new.role:
            return _common_parts(old, new)
    return 0


def _common_parts(old: Turn, new: Turn) -> int:
    shared = _shared_parts(old, new)
    if shared == len(old.parts):
        return grown_tokens(new, old)
    tokens = sum(map(part_tokens, old.parts[:shared]))
    if shared < len(new.parts):
        one, other = old.parts[shared], new.parts[shared]
        if isinstance(one, Text) and isinstance(other, Text):
            tokens += _common_words(one.text, other.text)
    return tokens


def _shared_parts(old: Turn, new: Turn) -> int:
    """Return with how many equal parts two turns begin."""
    pairs = zip(old.parts, new.parts, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(old.parts), len(new.parts)))


def _common_words(old: str, new: str) -> int:
    low = _common_length(old, new)
    return ESTIMATOR.text(new[:low]) if low else 0


def _common_length(old: str, new: str) -> int:
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old.startswith(new[:middle]) else (low, middle - 1)
    return low


def _tokens(piece: Turn | str | tuple[ToolSpec, ...]) -> int:
    match piece:
        case str():
            return _text_tokens(piece)
        case Turn():
            return turn_tokens(piece)
    return sum(map(tool_tokens, piece))


def layer_entries(prompt: Prompt) -> tuple[LayerEntry, ...]:
    """Return name, fingerprint and tokens of the tools and layers of a prompt, in order."""
    return tuple(_layers(prompt))


@lru_cache(64)
def _text_tokens(text: str) -> int:
    """Return the tokens of an instruction, which mostly comes again."""
    return ESTIMATOR.text(text)


def _layers(prompt: Prompt) -> Iterator[LayerEntry]:
    if prompt.tools:
        encoded = dumps(msgspec.to_builtins(prompt.tools))
        yield LayerEntry(name="tools", fingerprint=_digest([encoded]), tokens=_tokens(prompt.tools))
    for layer in prompt.layers:
        yield LayerEntry(name=layer.name, fingerprint=_fingerprint(layer), tokens=layer_tokens(layer))


def _fingerprint(layer: Layer) -> str:
    return _digest([layer.instruction.encode("utf-8", "replace"), *map(_turn_digest, layer.turns)])


def _turn_digest(turn: Turn) -> bytes:
    return cached(turn, "digest", lambda one: blake2b(dumps(msgspec.to_builtins(one)), digest_size=16).digest())


def _digest(pieces: Iterable[bytes]) -> str:
    whole = blake2b(digest_size=8)
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()

"""The cache ledger: how long the stable prefix of each request is, and which layer ended it. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import zip_longest

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.jsonio import dumps
from tertulia.models.base import Usage
from tertulia.parts import Part, Text
from tertulia.tokens import ESTIMATOR, layer_tokens, part_tokens, tool_tokens, turn_tokens
from tertulia.turns import Layer, Prompt, ToolSpec, Turn
from tertulia.value_cache import cached

MAX_ENTRIES = 100

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
    broken_by: str | None = None  # the first layer of the previous request that is not repeated; None: all are
    reported: Usage | None = None  # by the service

    @property
    def share(self) -> float:
        """The share of the stable prefix in the request."""
        return self.stable / self.tokens if self.tokens else 0.0


class Ledger:
    """The requests of one conversation, the newest last."""

    def __init__(self) -> None:
        self.entries: deque[LedgerEntry] = deque(maxlen=MAX_ENTRIES)
        self.prompt: Prompt | None = None  # the last one
        self._last: tuple[Piece, ...] = ()

    def record_request(self, prompt: Prompt) -> LedgerEntry:
        """Add a request that is about to be sent."""
        pieces = tuple(_pieces(prompt))
        stable, broken_by = _stable_prefix(self._last, pieces)
        layers = layer_entries(prompt)
        entry = LedgerEntry(
            layers=layers, tokens=sum(layer.tokens for layer in layers), stable=stable, broken_by=broken_by
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
            yield layer.name, turn


def _stable_prefix(before: tuple[Piece, ...], now: tuple[Piece, ...]) -> tuple[int, str | None]:
    """Return the tokens of the common prefix, and the layer of *before* in which it ends."""
    tokens = 0
    for old, new in zip_longest(before, now):
        if old is None:
            return tokens, None
        if new is None or (old[1] is not new[1] and old[1] != new[1]):
            return tokens + (_common_prefix(old[1], new[1]) if new else 0), old[0]
        tokens += _tokens(new[1])
    return tokens, None


def _common_prefix(old: Turn | str | tuple[ToolSpec, ...], new: Turn | str | tuple[ToolSpec, ...]) -> int:
    """Return the tokens of the common prefix of two different pieces."""
    match old, new:
        case str(), str():
            return _common_words(old, new)
        case Turn(), Turn() if old.role == new.role:
            return _common_parts(old.parts, new.parts)
    return 0


def _common_parts(old: tuple[Part, ...], new: tuple[Part, ...]) -> int:
    tokens = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            if isinstance(one, Text) and isinstance(other, Text):
                tokens += _common_words(one.text, other.text)
            return tokens
        tokens += part_tokens(one)
    return tokens


def _common_words(old: str, new: str) -> int:
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old.startswith(new[:middle]) else (low, middle - 1)
    return ESTIMATOR.text(new[:low]) if low else 0


def _tokens(piece: Turn | str | tuple[ToolSpec, ...]) -> int:
    match piece:
        case str():
            return ESTIMATOR.text(piece)
        case Turn():
            return turn_tokens(piece)
    return sum(map(tool_tokens, piece))


def layer_entries(prompt: Prompt) -> tuple[LayerEntry, ...]:
    """Return name, fingerprint and tokens of the tools and layers of a prompt, in order."""
    return tuple(_layers(prompt))


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

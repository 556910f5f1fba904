"""The part of a prompt that an explicit cache of Gemini's can hold, and the rest that is sent beside it. Pure."""

from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import NothingToSend
from palaver.models.gemini.encode import encode_cache, encode_turn
from palaver.turns import Layer, Prompt, Turn
from palaver.value_cache import cached
from palaver.wire.repair import repair


class CacheContent(Struct, frozen=True, kw_only=True):
    """The content of a cache, with its digests."""

    model: str
    prompt: Prompt
    frame: bytes  # digest of model, instruction and tools
    digest: bytes  # … and of the turns

    @property
    def contents(self) -> bytes:
        """The turns as they are sent."""
        return b",".join(encode_turn(turn, model=self.model) for turn in self.prompt.turns)


class CacheFingerprint(Struct, frozen=True, kw_only=True):
    """What is remembered of the content of a cache: enough to recognize it, and content that has grown out of it."""

    digest: bytes
    frame: bytes
    length: int
    half: bytes  # digest of the first half of the contents

    def is_prefix_of(self, content: CacheContent) -> bool:
        """Return whether *content* is the same with more turns. The first half decides: the end of a history
        may move.
        """
        if self.frame != content.frame or not self.length:
            return False
        contents = content.contents
        return self.length < len(contents) and _digest(contents[: self.length // 2]) == self.half


def cache_content(prompt: Prompt, model: str) -> CacheContent | None:
    """Return what a cache can hold: the leading static layer and the tools; None if the service would refuse it.

    A request with a cache can have no instruction in other layers, and no tool choice but `auto`.
    """
    if prompt.cached or not prompt.layers or prompt.layers[0].name != "static":
        return None
    if any(layer.instruction for layer in prompt.layers[1:]):
        return None
    if prompt.tools and prompt.settings.tool_choice not in {None, "auto"}:
        return None
    static = prompt.layers[0]
    if not _needs_no_repair(static, model):
        return None
    bare = Prompt(layers=(replace(static, turns=()),), tools=prompt.tools)
    frame = _digest(encode_cache(bare, model=model, ttl=0))
    digest = _digest(frame + b"".join(_turn_digest(turn, model) for turn in static.turns))
    whole = Prompt(layers=(static,), tools=prompt.tools)
    return CacheContent(model=model, prompt=whole, frame=frame, digest=digest)


def rest_of_prompt(prompt: Prompt, model: str) -> Prompt | None:
    """Return what is sent beside a cache of the first layer; None if the prompt cannot be split there.

    The service checks the rest by itself. So the split is legal only if repair leaves the cached turns as they are, and
    the rest alone needs no repair.
    """
    static = prompt.layers[0].turns
    try:
        whole, receipts = repair(prompt.turns, model, wire="gemini")
        rest = whole[len(static) :]
        if whole[: len(static)] != static or (static and repair(rest, model, wire="gemini")[1]):
            return None
    except NothingToSend:
        return None
    layers = (Layer(name="buffered", turns=rest),) if receipts else prompt.layers[1:]
    return replace(prompt, layers=layers)


def fingerprint_of(content: CacheContent) -> CacheFingerprint:
    contents = content.contents
    half = _digest(contents[: len(contents) // 2])
    return CacheFingerprint(digest=content.digest, frame=content.frame, length=len(contents), half=half)


def _needs_no_repair(layer: Layer, model: str) -> bool:
    """Return whether the turns of a layer are sent as they are; turns that need repair are not cached."""
    try:
        return not layer.turns or repair(layer.turns, model, wire="gemini")[0][: len(layer.turns)] == layer.turns
    except NothingToSend:
        return False


def _turn_digest(turn: Turn, model: str) -> bytes:
    """Return the digest of a turn as it is sent; cached on the turn."""
    return cached(turn, f"digest gemini {model}", lambda one: _digest(encode_turn(one, model=model)))


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()

"""What of a prompt can live in an explicit cache of Gemini's, and what goes beside it. Pure."""

from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import NothingToSend
from palaver.models.gemini.encode import encode_cache, encode_turn
from palaver.turns import Layer, Prompt, Turn
from palaver.value_cache import cached
from palaver.wire.repair import repair


class CacheContent(Struct, frozen=True, kw_only=True):
    """What would live in a cache, and what it is known by."""

    model: str
    prompt: Prompt
    frame: bytes  # digest of model, instruction and tools
    digest: bytes  # … and of the turns

    @property
    def contents(self) -> bytes:
        """The turns as they are sent."""
        return b",".join(encode_turn(turn, model=self.model) for turn in self.prompt.turns)


class CacheFingerprint(Struct, frozen=True, kw_only=True):
    """What is remembered of what lives in a cache: enough to know it, and what has grown out of it."""

    digest: bytes
    frame: bytes
    length: int
    half: bytes  # digest of the first half of the contents

    def grew_into(self, held: CacheContent) -> bool:
        """Whether *held* is the same with more turns. Half is enough to tell: what closes a history may move."""
        if self.frame != held.frame or not self.length:
            return False
        contents = held.contents
        return self.length < len(contents) and _digest(contents[: self.length // 2]) == self.half


def cache_content(prompt: Prompt, model: str) -> CacheContent | None:
    """What of the prompt can live in a cache: the leading static layer and the tools, where nothing forbids it.

    Beside a cache go no instruction of other layers and no choice of tools but the model's own.
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
    """What goes beside a cache of the first layer; None unless the whole, as it can be sent, legally parts there.

    What is sent is judged by itself, so the rest must need no more repair than the whole does.
    """
    held = prompt.layers[0].turns
    try:
        whole, receipts = repair(prompt.turns, model, wire="gemini")
        rest = whole[len(held) :]
        if whole[: len(held)] != held or (held and repair(rest, model, wire="gemini")[1]):
            return None
    except NothingToSend:
        return None
    layers = (Layer(name="buffered", turns=rest),) if receipts else prompt.layers[1:]
    return replace(prompt, layers=layers)


def fingerprint_of(held: CacheContent) -> CacheFingerprint:
    contents = held.contents
    half = _digest(contents[: len(contents) // 2])
    return CacheFingerprint(digest=held.digest, frame=held.frame, length=len(contents), half=half)


def _needs_no_repair(layer: Layer, model: str) -> bool:
    """Whether the layer's turns go out as they are; what must be repaired is not cached."""
    try:
        return not layer.turns or repair(layer.turns, model, wire="gemini")[0][: len(layer.turns)] == layer.turns
    except NothingToSend:
        return False


def _turn_digest(turn: Turn, model: str) -> bytes:
    """Of the turn as it is sent; cached."""
    return cached(turn, f"digest gemini {model}", lambda one: _digest(encode_turn(one, model=model)))


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()

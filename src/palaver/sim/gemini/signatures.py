"""Thought signatures: issued, and recognised when they come back."""

import base64
import binascii
import hashlib
import hmac
from typing import Any

import orjson

from palaver.sim.gemini.rules.conversation import current_turn, sayings
from palaver.sim.gemini.rules.generations import GEMMA, bare, generation
from palaver.sim.gemini.rules.reading import Reading

Wire = dict[str, Any]

_HEAD = b"\x12"  # as protobuf begins: base64 of it starts with an E
_SIZE = 32
_DUMMIES = (b"skip_thought_signature_validator", b"context_engineering_is_the_way_to_go")


class Signatures:
    """Signs parts for models, with a secret made from a seed."""

    def __init__(self, seed: int) -> None:
        self._secret = hashlib.sha256(f"palaver gemini sim {seed}".encode()).digest()

    def sign(self, model: str, part: Wire) -> str:
        """The signature of *part* as *model* would issue it, in standard base64."""
        of_model = self._tag(bare(model).encode())
        of_content = self._tag(_content(part))
        seal = self._tag(of_model + of_content)
        return base64.b64encode(_HEAD + of_model + of_content + seal).decode()

    def objection(self, signature: str, model: str, part: Wire) -> str | None:
        """What the service says to *signature* on *part*, if it does not take it."""
        if signature.encode() in _DUMMIES:
            return None
        decoded = _decoded(signature)
        if decoded in _DUMMIES:
            return None
        body = decoded[len(_HEAD) :]
        of_model, of_content, seal = body[:_SIZE], body[_SIZE : 2 * _SIZE], body[2 * _SIZE :]
        if not hmac.compare_digest(seal, self._tag(of_model + of_content)):
            return "Corrupted thought signature."
        if of_model != self._tag(bare(model).encode()):
            return "Invalid thought signature."
        return None if of_content == self._tag(_content(part)) else "Corrupted thought signature."

    def objection_to(self, contents: list[Wire], model: str) -> str | None:
        """What the service says to the signed calls of the current turn."""
        if generation(model) == "2.0" or generation(model) in GEMMA:
            return None
        for said in current_turn(sayings(contents)):
            for _, part in said.calls:
                signature = part.get("thoughtSignature")
                objection = self.objection(signature, model, part) if signature else None
                if objection:
                    return objection
        return None

    def _tag(self, data: bytes) -> bytes:
        return hmac.digest(self._secret, data, "sha256")


def _decoded(signature: str) -> bytes:
    standard = signature.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error:
        return b""


def _content(part: Wire) -> bytes:
    """What a signature vouches for: a call's name and arguments, or a text."""
    read = Reading().read_one("part", part, "")
    if "functionCall" not in read:
        return orjson.dumps(read.get("text", ""))
    call = read["functionCall"]
    return orjson.dumps([call.get("name", ""), _plain(call.get("args", {}))], option=orjson.OPT_SORT_KEYS)


def _plain(value: object) -> object:
    """*value* with whole numbers written one way."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value

"""Thought signatures as Gemini's models issue them, on its own endpoint and on the OpenAI-compatible one. Pure.

A signature is the base64 of three HMACs: of the model, of the signed content, and of both together. The last one tells
our own signatures from foreign ones; the first two tell which of ours does not fit.
"""

import base64
import hashlib
import hmac

_HEAD = b"\x12"  # protobuf messages begin like this: the base64 starts with an E
_SIZE = hashlib.sha256().digest_size
_DUMMIES = frozenset({b"skip_thought_signature_validator", b"context_engineering_is_the_way_to_go"})
CORRUPTED = "Corrupted thought signature."


def missing_signature(function: str, position: int) -> str:
    """Return the service's words for a call without a signature; *position* counts the contents from 1."""
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
        " correctly, and missing thought_signature may lead to degraded model performance. Additional data, function"
        f" call `default_api:{function}` , position {position}. Please refer to"
        " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )


class Signatures:
    """Issues signatures with a secret, and recognises them later."""

    def __init__(self, secret: str) -> None:
        self._secret = hashlib.sha256(secret.encode()).digest()
        self._adopted: dict[bytes, str] = {}

    def sign(self, model: str, content: bytes) -> str:
        """Issue the signature of *model* for *content*, in standard base64."""
        of_model, of_content = self._mac(model.encode()), self._mac(content)
        return base64.b64encode(_HEAD + of_model + of_content + self._mac(of_model + of_content)).decode()

    def adopt(self, signature: str, model: str) -> None:
        """Accept a foreign signature from now on as issued by *model*."""
        if decoded := _decode(signature):
            self._adopted[decoded] = model

    def objection(self, signature: str, model: str, content: bytes | None = None) -> str | None:
        """Return the service's words against *signature*, or None. Without *content* a signature of any content will
        do.
        """
        decoded = _decode(signature)
        if signature.encode() in _DUMMIES or decoded in _DUMMIES:
            return None
        if decoded in self._adopted:
            return None if self._adopted[decoded] == model else "Invalid thought signature."
        body = decoded[len(_HEAD) :]
        of_model, of_content, seal = body[:_SIZE], body[_SIZE : 2 * _SIZE], body[2 * _SIZE :]
        if not hmac.compare_digest(seal, self._mac(of_model + of_content)):
            return CORRUPTED
        if of_model != self._mac(model.encode()):
            return "Invalid thought signature."
        return None if content is None or of_content == self._mac(content) else CORRUPTED

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self._secret, data, "sha256")


def _decode(signature: str) -> bytes:
    """Decode either alphabet of base64, padded or not; empty if it is none."""
    standard = signature.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        return b""

"""Thought signatures on tool calls, as Gemini issues and demands them through its OpenAI-compatible endpoint."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any

from palaver.sim.openai.refusals import Refusal

DUMMIES = frozenset({b"skip_thought_signature_validator", b"context_engineering_is_the_way_to_go"})
VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
MARK = b"\x12"
MAC = hashlib.sha256().digest_size
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly,"
    " and missing thought_signature may lead to degraded model performance. Additional data, function call"
    " `default_api:{name}` , position {position}. Please refer to"
    " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)

Message = Mapping[str, Any]


def signs(model: str) -> bool:
    """Whether *model* puts signatures on its calls: Gemini from 2.5 on."""
    return _version(model) >= (2, 5)


def demands(model: str) -> bool:
    """Whether *model* refuses calls of the current turn without their signature: Gemini from 3 on."""
    return _version(model) >= (3, 0)


def _version(model: str) -> tuple[int, int]:
    name = model.rpartition("/")[2]
    if not name.startswith("gemini-") or name == "gemini-pro":
        return (0, 0)
    found = VERSION.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (3, 7)


def signature_on(call: Message) -> str | None:
    match call:
        case {"extra_content": {"google": {"thought_signature": str(signature)}}}:
            return signature or None
    return None


class Signatures:
    """Issues signatures that it can tell from others' later, even after a restart with the same seed."""

    def __init__(self, seed: int) -> None:
        self._key = f"palaver {seed}".encode()
        self._adopted: dict[bytes, str] = {}

    def issue(self, model: str, occasion: str) -> str:
        content = f"{model}\n{occasion}".encode()
        return base64.b64encode(MARK + self._mac(content) + content).decode()

    def adopt(self, signature: str, model: str) -> None:
        """Count a signature that a script brought along as issued to *model*."""
        if decoded := _decoded(signature):
            self._adopted[decoded] = model

    def refusal(self, messages: Sequence[Message], model: str) -> Refusal | None:
        """Why *model* refuses the calls since the user's last message, or None."""
        for index, message in _current_turn(messages):
            calls = message.get("tool_calls")
            if not calls or message["role"] != "assistant":
                continue
            signature = signature_on(calls[0])
            if signature is None:
                name = (calls[0].get("function") or {}).get("name", "")
                return _refused(MISSING.format(name=name, position=_content_index(messages, index) + 1))
            if wrong := self._wrong(signature, model):
                return _refused(wrong)
        return None

    def _wrong(self, signature: str, model: str) -> str | None:
        decoded = _decoded(signature)
        if signature.encode() in DUMMIES or decoded in DUMMIES:
            return None
        issued_to = self._issued_to(decoded or b"")
        if issued_to is None:
            return "Corrupted thought signature."
        return None if issued_to == model else "Invalid thought signature."

    def _issued_to(self, decoded: bytes) -> str | None:
        if decoded in self._adopted:
            return self._adopted[decoded]
        mac, content = decoded[len(MARK) : len(MARK) + MAC], decoded[len(MARK) + MAC :]
        if not hmac.compare_digest(mac, self._mac(content)):
            return None
        return content.decode().partition("\n")[0]

    def _mac(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, "sha256")


def _decoded(signature: str) -> bytes | None:
    standard = signature.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _current_turn(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    last = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=-1)
    return [(index, message) for index, message in enumerate(messages) if index > last]


def _content_index(messages: Sequence[Message], index: int) -> int:
    """Where the message stands among Gemini's contents, which hold no instructions and join the results of a step."""
    roles = [message["role"] for message in messages[:index] if message["role"] not in ("system", "developer")]
    return sum(role != "tool" or before != "tool" for before, role in zip(["", *roles], roles, strict=False))


def _refused(message: str) -> Refusal:
    return Refusal("signature", 400, message, "invalid_request_error", None, None)

"""Thought signatures on tool calls: which models issue them, and which calls are refused without one. Pure."""

import re
from collections.abc import Sequence

from palaver.sim.openai.errors import Refusal, refusal
from palaver.sim.openai.settings import Object
from palaver.sim.signatures import Signatures, missing_signature

VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")


def signs(model: str) -> bool:
    """Tell whether *model* signs its calls: Gemini from 2.5 on."""
    return _version(model) >= (2, 5)


def demands(model: str) -> bool:
    """Tell whether *model* refuses unsigned calls of the current turn: Gemini from 3 on."""
    return _version(model) >= (3, 0)


def _version(model: str) -> tuple[int, int]:
    name = model.rpartition("/")[2]
    if not name.startswith("gemini-") or name == "gemini-pro":
        return (0, 0)
    found = VERSION.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (3, 7)


def signature_on(call: Object) -> str | None:
    match call:
        case {"extra_content": {"google": {"thought_signature": str(signature)}}}:
            return signature or None
    return None


def signature_refusal(messages: Sequence[Object], model: str, signatures: Signatures) -> Refusal | None:
    """Why *model* refuses the calls since the user's last message, or None."""
    last = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=-1)
    for index, message in enumerate(messages[last + 1 :], start=last + 1):
        calls = message.get("tool_calls")
        if not calls or message["role"] != "assistant":
            continue
        signature = signature_on(calls[0])
        if signature is None:
            name = (calls[0].get("function") or {}).get("name", "")
            return refusal("signature", missing_signature(name, _content_index(messages, index) + 1))
        if objection := signatures.objection(signature, model):
            return refusal("signature", objection)
    return None


def _content_index(messages: Sequence[Object], index: int) -> int:
    """The place of a message among Gemini's contents, which hold no instructions and join the results of a step."""
    roles = [message["role"] for message in messages[:index] if message["role"] not in ("system", "developer")]
    return sum(role != "tool" or before != "tool" for before, role in zip(["", *roles], roles, strict=False))

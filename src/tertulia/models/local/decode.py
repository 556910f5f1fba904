"""From llama.cpp's chunks to those of an OpenAI-compatible stream: JSON choices become replies and calls. Pure."""

import json
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia import errors
from tertulia.json_schema import validator
from tertulia.jsonio import count_or_zero, dumps, list_or_empty, loads, object_or_empty
from tertulia.models.base import Response
from tertulia.models.openai.decode import decode_response, in_band_error, merge_chunks
from tertulia.turns import Prompt

Chunk = dict[str, Any]
Check = Callable[[str], str]  # the fault of a text; empty if it fits

_REPLY = re.compile(r'\s*\{\s*"reply"\s*:\s*"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt])*)')
_HALF = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u[dD][89abAB][0-9a-fA-F]{2}$"
)  # a first surrogate whose second is still to come


class CallChoice(Struct, frozen=True, kw_only=True):
    name: str
    args: dict[str, Any]


class ReplyChoice(Struct, frozen=True, kw_only=True):
    text: str


def decode_chunk(data: bytes, *, about: str) -> Chunk:
    """Decode a chunk; raise the error that it may be."""
    chunk = loads(data)
    if not isinstance(chunk, dict):
        raise errors.ResponseUnreadable(f"{about} answered with no object")
    if chunk.get("error"):
        raise in_band_error(chunk, about=about)
    return chunk


def refused_tokens(data: bytes) -> int:
    """Return the number of tokens of a request that was refused as too long; else 0."""
    if b"exceed_context_size_error" not in data:
        return 0
    return count_or_zero(object_or_empty(object_or_empty(loads(data)).get("error")).get("n_prompt_tokens"))


def is_progress(chunk: Chunk) -> bool:
    """Return whether the chunk only reports progress of reading the prompt."""
    return "prompt_progress" in chunk


def respond(chunks: list[Chunk], *, model: str) -> Response:
    return decode_response(merge_chunks(chunks), model=model)


def answer_check(schema: dict[str, Any]) -> Check:
    """Return a check of texts against a schema: llguidance enforces nothing if it cannot read the schema.

    Raise InvalidValue for a schema that cannot be read here either.
    """
    fits = validator(schema)

    def fault_of(text: str) -> str:
        try:
            fits(loads(text))
        except errors.ResponseUnreadable:
            return "the answer is no JSON"
        except (ValueError, RecursionError) as error:
            return f"the answer does not fit its schema: {error}"
        return ""

    return fault_of


def check_response(response: Response, fault_of: Check) -> Response:
    """Mark a complete response as malformed if it does not fit the answer schema."""
    if response.finish.outcome != "complete" or response.function_calls:
        return response
    why = fault_of(response.text)
    return replace(response, finish=replace(response.finish, outcome="malformed", message=why)) if why else response


class ChoiceDecoder:
    """Decodes chunks whose content is a choice in JSON into chunks with the text of the reply, or the call."""

    def __init__(self, prompt: Prompt) -> None:
        self._names = {tool.name for tool in prompt.tools}
        self._text = ""  # the JSON so far
        self._sent = 0  # characters of the reply that were passed on

    def __call__(self, chunk: Chunk) -> Chunk:
        choice = object_or_empty(next(iter(list_or_empty(chunk.get("choices"))), None))
        piece = object_or_empty(choice.get("delta")).get("content")
        self._text += piece if isinstance(piece, str) else ""
        if not choice:
            return chunk
        ended = choice.get("finish_reason")
        delta = self._new_text(reply_so_far(self._text))
        if not ended:
            return {**chunk, "choices": [{**choice, "delta": delta}]}
        match parse_choice(self._text, names=self._names):
            case CallChoice(name=name, args=args):
                function = {"name": name, "arguments": dumps(args).decode()}
                delta = {"tool_calls": [{"index": 0, "type": "function", "function": function}]}
            case ReplyChoice(text=text):
                delta = self._new_text(text) or delta
            case None if ended == "stop" and not self._sent:
                return {**chunk, "choices": [{**choice, "finish_reason": "error"}], "malformed": self._text}
        return {**chunk, "choices": [{**choice, "delta": delta}]}

    def _new_text(self, reply: str) -> dict[str, Any]:
        new = reply[self._sent :]
        self._sent = max(self._sent, len(reply))
        return {"content": new} if new else {}


def reply_so_far(text: str) -> str:
    """Return the text of a reply whose JSON may be unfinished; empty if it is no reply."""
    found = _REPLY.match(text)
    if not found:
        return ""
    whole = _HALF.sub(r"\1", found[1])
    words: str = json.loads(f'"{whole}"', strict=False)
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parse_choice(text: str, *, names: set[str]) -> CallChoice | ReplyChoice | None:
    """Parse the choice of the model; None if the text is not a choice."""
    try:
        chosen = loads(text)
    except errors.ResponseUnreadable:
        return None
    match chosen:
        case {"tool": str(name), "args": dict(args), **rest} if name in names and not rest:
            return CallChoice(name=name, args=args)
        case {"reply": reply, **rest} if not rest:
            return ReplyChoice(text=reply if isinstance(reply, str) else dumps(reply).decode())
        case _:
            return None

"""Keys taken out of what a service sent: some repeat them, in errors and in answers. Pure.

A key is found as it is, with characters escaped as JSON or an address escapes them (also twice, in JSON within JSON),
wrapped over lines, and in base64, wherever in it the key begins.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from palaver.models.base import Response

HIDDEN = b"***"
IN_REFUSAL = 4  # characters from which on a key is taken out of a refusal …
IN_ANSWER = 12  # … and of an answer: servers that want none are given words like `ollama`

_SECRET = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)  # a header or a field of an address that is one
_ESCAPES = (b"\\u00", b"\\U00", b"%", b"\\/", b'\\"', b"\\\\")
_WRAPPED = rb"(?:\\+[nr]|\s){0,8}?"

E = TypeVar("E", bound=BaseException)


class Mask:
    """Hides some keys."""

    def __init__(self, keys: Iterable[str], *, shortest: int) -> None:
        found = [key.encode() for key in keys if len(key) >= shortest]
        self._pattern = re.compile(b"|".join(map(_forms, found))) if found else None
        self._pieces = tuple(piece for key in found for piece in _pieces(key))

    def __call__(self, data: bytes) -> bytes:
        """*data* without the keys; long bodies are first searched for what any form of a key holds."""
        if self._pattern is None or not any(piece in data for piece in (*self._pieces, *_ESCAPES)):
            return data
        return self._pattern.sub(HIDDEN, data)

    def text(self, text: str) -> str:
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def error(self, error: E) -> E:
        """The error, which will be shown as the cause of ours, with its words masked."""
        error.args = tuple(self.text(arg) if isinstance(arg, str) else arg for arg in error.args)
        return error

    def response(self, response: Response) -> Response:
        """A response put together from pieces, over which a key may have been spread."""
        if self._pattern is None:
            return response
        try:
            written = msgspec.json.encode(response)
        except (msgspec.MsgspecError, ValueError, TypeError):
            return response  # halves of characters: no key is among them that JSON could hold
        masked = self(written)
        return response if masked == written else msgspec.json.decode(masked, type=Response)


NOTHING = Mask((), shortest=0)


def secrets_in(headers: Mapping[str, str], address: str) -> tuple[str, ...]:
    """What in the headers and the address of a request nobody else may know."""
    parts = urlsplit(address)
    fields = [*headers.items(), *parse_qsl(parts.query), ("key", parts.password or "")]
    return tuple(value.removeprefix("Bearer ").strip() for name, value in fields if value and _SECRET.search(name))


@lru_cache(maxsize=64)
def mask_of(keys: tuple[str, ...], shortest: int) -> Mask:
    return Mask(keys, shortest=shortest)


def _forms(key: bytes) -> bytes:
    escaped = _WRAPPED.join(_character(char) for char in key)
    encoded = {piece for start in range(3) for piece in _encoded(key, start)}
    return b"|".join([escaped, *(re.escape(piece) for piece in sorted(encoded))])


def _character(char: int) -> bytes:
    forms = [re.escape(bytes([char])), rb"\\+[uU]00(?i:%02x)" % char, rb"%%(?:25)*(?i:%02x)" % char]
    if char in b'"/\\':
        forms.insert(0, rb"\\+" + re.escape(bytes([char])))
    return b"(?:%b)" % b"|".join(forms)


def _encoded(key: bytes, start: int) -> Iterable[bytes]:
    """Base64 of anything in which *key* begins *start* bytes after a full group: what depends on the key alone."""
    first, end = -(-start * 8 // 6), (start + len(key)) * 8 // 6
    for encode in (b64encode, urlsafe_b64encode):
        if end - first >= IN_ANSWER:
            yield encode(bytes(start) + key)[first:end]


def _pieces(key: bytes) -> Iterable[bytes]:
    """What is in data that hold the key unescaped in any form: of a key over two lines a third is whole."""
    third = max(1, len(key) // 3)
    yield from (key[at : at + third] for at in (0, third, 2 * third))
    yield from (piece for start in range(3) for piece in _encoded(key, start))

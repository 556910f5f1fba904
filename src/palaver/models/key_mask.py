"""Keys taken out of what a service sent: some repeat them, in errors and in answers. Pure.

A key is found as it is, with characters escaped as JSON or an address escapes them (also twice, in JSON within JSON),
wrapped over lines, and in base64, wherever in it the key begins.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from palaver.models.base import Response

REPLACEMENT = b"***"
MIN_KEY_IN_REFUSAL = 4  # characters from which on a key is taken out of a refusal …
MIN_KEY_IN_ANSWER = 12  # … and of an answer: servers that want none are given words like `ollama`

_SECRET_NAME = re.compile(
    r"auth|key|token|secret|cookie", re.IGNORECASE
)  # a header or a field of an address that is one
_ESCAPES = (b"\\u00", b"\\U00", b"%", b"\\/", b'\\"', b"\\\\")
_BREAK = re.compile(rb"\\{1,8}[nr]|\s")
_PARTIAL_ESCAPE = re.compile(
    rb"(?:\\{1,8}(?:[uU]0{0,2}[0-9a-fA-F]?)?|%(?:25){0,4}2?[0-9a-fA-F]?)?"
)  # nothing, or of an escape
_MAX_CHARACTER_BYTES = 90  # bytes: eight line breaks and a character, each behind eight backslashes
_LINE_BREAKS = rb"(?:\\{1,8}[nr]|\s){0,8}?"

E = TypeVar("E", bound=BaseException)


class Mask:
    """Hides some keys."""

    def __init__(self, keys: Iterable[str], *, shortest: int) -> None:
        found = [key.encode() for key in keys if len(key) >= shortest]
        self._pattern = re.compile(b"|".join(map(_key_pattern, found))) if found else None
        self._pieces = tuple(piece for key in found for piece in _probes(key))
        self._encoded = tuple({piece for key in found for start in range(3) for piece in _base64_forms(key, start)})
        self._steps = [[re.compile(_character_pattern(char)) for char in key] for key in found]
        first = b"|".join([rb"[\\%]", *(re.escape(key[:1]) for key in found)])
        self._first = re.compile(first) if found else None
        self._longest = max(map(len, found), default=0) * _MAX_CHARACTER_BYTES

    def __call__(self, data: bytes) -> bytes:
        """*data* without the keys; long bodies are first searched for what any form of a key holds."""
        if self._pattern is None or not any(piece in data for piece in (*self._pieces, *_ESCAPES)):
            return data
        return self._pattern.sub(REPLACEMENT, data)

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

    def beginning(self, data: bytes) -> int:
        """Where in *data* something begins that may become a key with what comes next; its length where nothing does.

        Only what is left open at the end counts: keys that are whole are hidden before.
        """
        if self._first is None:
            return len(data)
        for found in self._first.finditer(data, max(0, len(data) - self._longest)):
            if any(_may_become_key(data, found.start(), key) for key in self._steps):
                return min(found.start(), *(_overlap_start(data, piece) for piece in self._encoded))
        return min((_overlap_start(data, piece) for piece in self._encoded), default=len(data))


class StreamMask:
    """Hides the keys of a mask in a text that comes in pieces: what may become a key is held back until it is known."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, text: str) -> str:
        """What may be shown by now."""
        if self._mask is NO_MASK:
            return text
        data = self._mask(self._held + text.encode("utf-8", "surrogatepass"))
        end = self._mask.beginning(data)
        self._held = data[end:]
        return data[:end].decode("utf-8", "surrogatepass")

    def flush(self) -> str:
        """The rest, which has become no key."""
        rest, self._held = self._held, b""
        return rest.decode("utf-8", "surrogatepass")


NO_MASK = Mask((), shortest=0)


def secrets_in(headers: Mapping[str, str], address: str) -> tuple[str, ...]:
    """What in the headers and the address of a request nobody else may know."""
    parts = urlsplit(address)
    fields = [*headers.items(), *parse_qsl(parts.query), ("key", parts.password or "")]
    return tuple(value.removeprefix("Bearer ").strip() for name, value in fields if value and _SECRET_NAME.search(name))


@lru_cache(maxsize=64)
def mask_for(keys: tuple[str, ...], shortest: int) -> Mask:
    return Mask(keys, shortest=shortest)


def _key_pattern(key: bytes) -> bytes:
    escaped = _LINE_BREAKS.join(_character_pattern(char) for char in key)
    encoded = {piece for start in range(3) for piece in _base64_forms(key, start)}
    return b"|".join([escaped, *(re.escape(piece) for piece in sorted(encoded))])


def _character_pattern(char: int) -> bytes:
    forms = [rb"\\{1,8}[uU]00(?i:%02x)" % char, rb"%%(?:25){0,4}(?i:%02x)" % char, re.escape(bytes([char]))]
    if char in b'"/\\':
        forms.insert(0, rb"\\{1,8}" + re.escape(bytes([char])))
    return b"(?:%b)" % b"|".join(forms)


def _may_become_key(data: bytes, start: int, steps: Sequence[re.Pattern[bytes]]) -> bool:
    """Whether *data* ends within a form of a key that begins at *start*, with or without line breaks in it.

    All ways to read it are followed side by side, a character of the key at a time: `%` may be itself or an escape.
    """
    places = {start}
    for number, step in enumerate(steps):
        if number:
            places = {after for place in places for after in _after_breaks(data, place)}
        if any(_PARTIAL_ESCAPE.fullmatch(data, place) for place in places):
            return True
        literal = {place + 1 for place in places if step.fullmatch(data, place, place + 1)}
        places = literal | {found.end() for place in places if (found := step.match(data, place))}
        if not places:
            return False
    return False


def _after_breaks(data: bytes, place: int) -> Iterable[int]:
    """The places after no line break, after one, and so on."""
    yield place
    for _ in range(8):
        found = _BREAK.match(data, place)
        if found is None:
            return
        place = found.end()
        yield place


def _overlap_start(data: bytes, piece: bytes) -> int:
    """Where the beginning of *piece* stands at the end of *data*; the length of *data* where it does not."""
    start = max(0, len(data) - len(piece) + 1)
    while (start := data.find(piece[:1], start)) >= 0:
        if piece.startswith(data[start:]):
            return start
        start += 1
    return len(data)


def _base64_forms(key: bytes, start: int) -> Iterable[bytes]:
    """Base64 of anything in which *key* begins *start* bytes after a full group: what depends on the key alone."""
    first, end = -(-start * 8 // 6), (start + len(key)) * 8 // 6
    for encode in (b64encode, urlsafe_b64encode):
        if end - first >= MIN_KEY_IN_ANSWER:
            yield encode(bytes(start) + key)[first:end]


def _probes(key: bytes) -> Iterable[bytes]:
    """What is in data that hold the key unescaped in any form: of a key over two lines a third is whole."""
    third = max(1, len(key) // 3)
    yield from (key[at : at + third] for at in (0, third, 2 * third))
    yield from (piece for start in range(3) for piece in _base64_forms(key, start))

"""Masking of API keys in what a service sent: some services repeat them, in errors and in answers. Pure.

Which forms of a key are found: the key as it is; with characters escaped as JSON or a URL escapes them, also twice
(JSON within JSON); wrapped over lines; and in base64. Base64 encodes groups of three bytes, so a key looks different
for each of the three places in a group where it can begin; of each such text only the characters that depend on the
key alone are searched for (`_base64_forms`), if these are enough to tell.

Which keys are masked: all, however short. One of fewer than `MIN_KEY_IN_WORD` characters is masked where it stands as a
word of its own. A short key of digits is not masked within or as a number of JSON, and no key as the name of a field:
an answer must stay readable. Words that are given to servers which need no key (`PLACEHOLDERS`) are no secrets.

How a stream is masked. A key may be spread over pieces, so a piece cannot be shown before it is known that its end is
not the start of a key. `Mask.open_key_start` finds the first place from which on the text may be an unfinished form of
a key. Everything before it is shown; the rest waits for the next piece (`StreamMask`). All readings of the text are
followed at once, one character of the key at a time, because `%` may be itself or the start of an escape. So no part of
a key is ever shown, and nothing waits for longer than the longest form of a key.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tertulia.models.base import Response

REPLACEMENT = b"***"
MIN_KEY_IN_WORD = 4  # characters of a key that is masked within a word too
MIN_BASE64 = 12  # characters of base64 by which a key is told from other text
PLACEHOLDERS = frozenset(
    "ollama lm-studio lmstudio llama.cpp vllm none null no-key nokey no_key not-needed not_needed unused empty dummy"
    " any fake test example local key api-key api_key apikey token secret x xx xxx - sk-no-key-required".split()
)

_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)  # of a header or a field of a URL
_ESCAPES = (b"\\u00", b"\\U00", b"%", b"\\/", b'\\"', b"\\\\")
_BREAK = re.compile(rb"\\{1,8}[nr]|\s")
# Nothing, or the start of an escape.
_PARTIAL_ESCAPE = re.compile(rb"(?:\\{1,8}(?:[uU]0{0,2}[0-9a-fA-F]?)?|%(?:25){0,4}2?[0-9a-fA-F]?)?")
_MAX_CHARACTER_BYTES = 90  # bytes: eight line breaks and a character, each behind eight backslashes
_LINE_BREAKS = rb"(?:\\{1,8}[nr]|\s){0,8}?"

E = TypeVar("E", bound=BaseException)


class Mask:
    """Replaces keys by `***`."""

    def __init__(self, keys: Iterable[str]) -> None:
        found = [key.encode() for key in keys if key and key.casefold() not in PLACEHOLDERS]
        self._pattern = re.compile(b"|".join(map(_key_pattern, found))) if found else None
        self._probes = tuple(piece for key in found for piece in _probes(key))
        self._base64_forms = tuple(
            {piece for key in found for start in range(3) for piece in _base64_forms(key, start)}
        )
        self._steps = [[re.compile(_character_pattern(char)) for char in key] for key in found]
        first = b"|".join([rb"[\\%]", *(re.escape(key[:1]) for key in found)])
        self._first = re.compile(first) if found else None
        self._longest = max(map(len, found), default=0) * _MAX_CHARACTER_BYTES

    def __call__(self, data: bytes) -> bytes:
        """Mask the keys in *data*. Cheap probes, one of which every form of a key contains, come before the pattern."""
        if self._pattern is None or not any(piece in data for piece in (*self._probes, *_ESCAPES)):
            return data
        return self._pattern.sub(REPLACEMENT, data)

    def text(self, text: str) -> str:
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def error(self, error: E) -> E:
        """Mask the text of an error in place: it is shown as the cause of ours."""
        error.args = tuple(self.text(arg) if isinstance(arg, str) else arg for arg in error.args)
        return error

    def response(self, response: Response) -> Response:
        """Mask a response that was merged from chunks: a key may have been spread over them."""
        if self._pattern is None:
            return response
        try:
            written = msgspec.json.encode(response)
        except (msgspec.MsgspecError, ValueError, TypeError):
            return response  # lone surrogates, which no key can hold
        masked = self(written)
        return response if masked == written else msgspec.json.decode(masked, type=Response)

    def open_key_start(self, data: bytes) -> int:
        """Return where an unfinished key may begin at the end of *data*; its length if none does.

        Complete keys are masked before.
        """
        if self._first is None:
            return len(data)
        encoded = (_overlap_start(data, piece) for piece in self._base64_forms)
        starts = (found.start() for found in self._first.finditer(data, max(0, len(data) - self._longest)))
        begun = (start for start in starts if any(_may_become_key(data, start, key) for key in self._steps))
        return min(next(begun, len(data)), *encoded, len(data))


class StreamMask:
    """Masks keys in a text that comes in pieces: what may become a key is held back until it is decided."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._pending = b""

    def feed(self, text: str) -> str:
        """Add a piece; return what can be shown now."""
        if self._mask is NO_MASK:
            return text
        data = self._mask(self._pending + text.encode("utf-8", "surrogatepass"))
        end = self._mask.open_key_start(data)
        self._pending = data[end:]
        return data[:end].decode("utf-8", "surrogatepass")

    def flush(self) -> str:
        """Return the text that was held back: the stream has ended, so it is not the start of a key."""
        rest, self._pending = self._pending, b""
        return rest.decode("utf-8", "surrogatepass")


NO_MASK = Mask(())


def secrets_in(headers: Mapping[str, str], address: str) -> tuple[str, ...]:
    """Return the secrets in the headers and the URL of a request."""
    parts = urlsplit(address)
    fields = [*headers.items(), *parse_qsl(parts.query), ("key", parts.password or "")]
    return tuple(value.removeprefix("Bearer ").strip() for name, value in fields if value and _SECRET_NAME.search(name))


@lru_cache(maxsize=64)
def mask_for(keys: tuple[str, ...]) -> Mask:
    return Mask(keys)


def _key_pattern(key: bytes) -> bytes:
    escaped = _LINE_BREAKS.join(_character_pattern(char) for char in key)
    escaped += rb"(?!\"\s*:)"
    if key.isdigit() and len(key) < MIN_BASE64:
        return rb"(?<![A-Za-z0-9.+-])%b(?![A-Za-z0-9.]|\s*[,}\]])" % escaped
    if len(key) < MIN_KEY_IN_WORD:
        return rb"(?<![A-Za-z0-9])%b(?![A-Za-z0-9])" % escaped
    encoded = {piece for start in range(3) for piece in _base64_forms(key, start)}
    return b"|".join([escaped, *(re.escape(piece) for piece in sorted(encoded))])


def _character_pattern(char: int) -> bytes:
    forms = [rb"\\{1,8}[uU]00(?i:%02x)" % char, rb"%%(?:25){0,4}(?i:%02x)" % char, re.escape(bytes([char]))]
    if char in b'"/\\':
        forms.insert(0, rb"\\{1,8}" + re.escape(bytes([char])))
    return b"(?:%b)" % b"|".join(forms)


def _may_become_key(data: bytes, start: int, steps: Sequence[re.Pattern[bytes]]) -> bool:
    """Return whether *data* ends within a form of a key that begins at *start*, with or without line breaks in it."""
    positions = {start}
    for number, step in enumerate(steps):
        if number:
            positions = {after for position in positions for after in _after_breaks(data, position)}
        if any(_PARTIAL_ESCAPE.fullmatch(data, position) for position in positions):
            return True
        literal = {position + 1 for position in positions if step.fullmatch(data, position, position + 1)}
        positions = literal | {found.end() for position in positions if (found := step.match(data, position))}
        if not positions:
            return False
    return False


def _after_breaks(data: bytes, position: int) -> Iterable[int]:
    """Yield the positions after no line break, after one, and so on."""
    yield position
    for _ in range(8):
        found = _BREAK.match(data, position)
        if found is None:
            return
        position = found.end()
        yield position


def _overlap_start(data: bytes, piece: bytes) -> int:
    """Return where *data* ends with the start of *piece*; the length of *data* if it does not."""
    start = max(0, len(data) - len(piece) + 1)
    while (start := data.find(piece[:1], start)) >= 0:
        if piece.startswith(data[start:]):
            return start
        start += 1
    return len(data)


def _base64_forms(key: bytes, start: int) -> Iterable[bytes]:
    """Yield the base64 of *key* at byte *start* of a group, without the characters that its neighbours decide."""
    first, end = -(-start * 8 // 6), (start + len(key)) * 8 // 6
    for encode in (b64encode, urlsafe_b64encode):
        if end - first >= MIN_BASE64:
            yield encode(bytes(start) + key)[first:end]


def _probes(key: bytes) -> Iterable[bytes]:
    """Yield texts one of which every unescaped form of a key contains: of a key over two lines one third is whole."""
    third = max(1, len(key) // 3)
    yield from (key[at : at + third] for at in (0, third, 2 * third))
    yield from (piece for start in range(3) for piece in _base64_forms(key, start))

r"""An incremental reader of JSON: values of a document that is too large for memory. Pure.

Telegram Desktop escapes control characters as `\x0B`, which is no JSON. They are read as if they were `\u000B`.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any

from tertulia.errors import InvalidValue

MAX_VALUE = 64 * 1024 * 1024  # characters of one value
_KEPT = 1 << 20  # characters that are consumed before they are removed from the buffer
_NEAR_END = 16  # characters: an error this close to the end of the buffer may only mean that more must be read
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|.)", re.DOTALL)
_BLANK = re.compile(r"[ \t\r\n]*")


class JsonStream:
    """Reads a document from chunks of bytes. What is read is consumed: `keys` and `items` expect each value taken."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.consumed = 0  # bytes taken from the chunks
        self._chunks = iter(chunks)
        self._decode_bytes = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._decode = JSONDecoder(strict=False).raw_decode
        self._text = ""
        self._at = 0
        self._cut_escape = ""  # the start of an escape that goes on in the next chunk
        self._line = 1  # of the start of the buffer
        self._ended = False

    def keys(self) -> Iterator[str]:
        """Yield the keys of the object at this position; the caller takes the value of each."""
        self._expect("{")
        if self._skip("}"):
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._error("a key must be a string")
            self._expect(":")
            yield key
            if not self._skip(","):
                break
        self._expect("}")

    def items(self) -> Iterator[None]:
        """Stop at each item of the array at this position; the caller takes it."""
        self._expect("[")
        if self._skip("]"):
            return
        while True:
            yield None
            if not self._skip(","):
                break
        self._expect("]")

    def value(self) -> Any:
        """Take the value at this position."""
        self.peek()
        while True:
            try:
                found, end = self._decode(self._text, self._at)
                if end < len(self._text) or not self._more():  # a number may go on
                    self._at = end
                    return found
            except JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _NEAR_END
                if not is_cut:
                    raise self._error(error.msg, error.pos) from error
                if not self._more():
                    raise self._error("the file ends too early", error.pos) from error
            except RecursionError as error:
                raise self._error("it is nested too deeply") from error
            if len(self._text) - self._at > MAX_VALUE:
                raise self._error(f"a value has more than {MAX_VALUE:,} characters")

    def peek(self) -> str:
        """Return the next character that is not blank; nothing at the end."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _expect(self, character: str) -> None:
        if not self._skip(character):
            found = self.peek()
            raise self._error(f"{found!r} stands where {character!r} should" if found else "the file ends too early")

    def _skip(self, character: str) -> bool:
        found = self.peek() == character
        self._at += found
        return found

    def _more(self) -> bool:
        """Read at least as many characters as the buffer holds; return whether there are any."""
        if self._ended:
            return False
        self._line += self._text.count("\n", 0, self._at)
        rest = self._text[self._at :]
        wanted = max(1, min(len(rest), _KEPT))
        read: list[str] = []
        while not self._ended and sum(map(len, read)) < wanted:
            read.append(self._next_text())
        self._text, self._at = rest + "".join(read), 0
        return len(self._text) > len(rest)

    def _next_text(self) -> str:
        chunk = next(self._chunks, None)
        self._ended = chunk is None
        self.consumed += len(chunk or b"")
        text = self._cut_escape + self._decode_bytes(chunk or b"", final=self._ended)
        end = len(text)
        while not self._ended and end and "\\" in text[max(0, end - 4) : end]:
            end -= 1
        text, self._cut_escape = text[:end], text[end:]
        return _ESCAPE.sub(_legal_escape, text) if "\\x" in text else text

    def _error(self, what: str, position: int | None = None) -> InvalidValue:
        line = self._line + self._text.count("\n", 0, self._at if position is None else position)
        return InvalidValue(f"line {line}: no JSON that we read: {what}")


def _legal_escape(escape: re.Match[str]) -> str:
    return rf"\u00{escape[1]}" if escape[1] else escape[0]

"""Decoding of a stream: chunks become parts as they arrive, and at the end the whole response.

How it works. Each chunk is decoded by itself, and its text, thoughts and media are yielded at once. Calls are not: they
may come in fragments, and only the whole turn decides the ids of calls that came without one. At the end all chunks are
decoded together, as one body; only that response is stored.
What was yielded before it is a preview.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from tertulia.errors import ResponseUnreadable, TertuliaError
from tertulia.models.base import Finish, Response
from tertulia.models.key_mask import NO_MASK, Mask, StreamMask
from tertulia.parts import Media, Part, Text, Thought

Chunk = dict[str, Any]
_MALFORMED = Finish(outcome="malformed")


class CallUnreadable(ResponseUnreadable):
    """The model wrote a call that its service could not read; `finish` has what it wrote."""

    def __init__(self, message: str, *, finish: Finish = _MALFORMED) -> None:
        super().__init__(message)
        self.finish = finish


async def decode_stream(
    events: AsyncGenerator[Any, None],
    *,
    read: Callable[[Any], Chunk],
    respond: Callable[[list[Chunk]], Response],
    ended: Callable[[list[Chunk]], bool] = lambda _: False,
    mask: Callable[[], Mask] = lambda: NO_MASK,
) -> AsyncIterator[Part | Response]:
    """Yield text, thoughts and media as they arrive, then the calls, then the response.

    A stream that breaks after its first chunk ends in an incomplete response; before it, in the error; one that ends in
    a call which the service could not read, in a malformed one. A stream without a finish reason is incomplete too,
    unless *ended* recognizes its end. Keys are masked, also if they are spread over
    chunks; *mask* is called once the stream is open, because only then the keys of its request are known.
    """
    chunks: list[Chunk] = []
    masked: _MaskedParts | None = None
    broken, malformed = "", None
    try:
        async with aclosing(events):
            async for event in events:
                chunks.append(read(event))
                masked = masked or _MaskedParts(mask())
                for part in respond(chunks[-1:]).parts:
                    for piece in masked.feed(part):
                        yield piece
    except CallUnreadable as error:
        malformed = error.finish
    except TertuliaError as error:
        if not chunks:
            raise
        broken = str(error)
    for piece in masked.flush() if masked else ():
        yield piece
    response = mask().response(respond(chunks))
    if malformed:
        response = replace(response, finish=malformed)
    elif broken or not chunks or not (response.finish.reason or ended(chunks)):
        reason, message = response.finish.reason, broken or "the stream broke off"
        response = replace(response, finish=Finish(outcome="incomplete", reason=reason, message=message))
    for call in response.function_calls:
        yield call
    yield response


class _MaskedParts:
    """Masks keys in parts as they arrive: text that may become a key waits for the next part of its kind."""

    def __init__(self, mask: Mask) -> None:
        self._stream = StreamMask(mask)
        self._last: Text | Thought | None = None

    def feed(self, part: Part) -> Iterator[Part]:
        if not isinstance(part, Text | Thought | Media):
            return
        if type(part) is not type(self._last):
            yield from self.flush()
        if isinstance(part, Media):
            yield part
            return
        self._last = part
        text = self._stream.feed(part.text)
        if text == part.text:
            yield part
        elif text or part.signature:
            yield replace(part, text=text, raw=None)

    def flush(self) -> Iterator[Part]:
        """Yield the text that was held back: it is not the start of a key."""
        text = self._stream.flush()
        if text and self._last is not None:
            yield replace(self._last, text=text, signature=None, raw=None)
        self._last = None

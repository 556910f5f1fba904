"""A stream of chunks as the parts it brings, and at its end the whole response."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from palaver.errors import PalaverError
from palaver.models.base import Finish, Response
from palaver.models.key_mask import NO_MASK, Mask, StreamMask
from palaver.parts import Media, Part, Text, Thought

Chunk = dict[str, Any]


async def decode_stream(
    events: AsyncGenerator[Any, None],
    *,
    read: Callable[[Any], Chunk],
    respond: Callable[[list[Chunk]], Response],
    ended: Callable[[list[Chunk]], bool] = lambda _: False,
    mask: Callable[[], Mask] = lambda: NO_MASK,
) -> AsyncIterator[Part | Response]:
    """Yield words, thoughts and media as they arrive, then the calls, then the response.

    Only the whole turn tells which ids calls without one get, and calls may come in fragments; so they come whole. A
    stream that breaks after something has arrived ends in a response that is incomplete; before that, in the error.
    One that gives no reason for its end is incomplete, too, unless its chunks tell that it has *ended*. Keys that
    *mask* knows once the stream is open are hidden, also where they are spread over chunks.
    """
    chunks: list[Chunk] = []
    shown: _MaskedParts | None = None
    broken = ""
    try:
        async with aclosing(events):
            async for event in events:
                chunks.append(read(event))
                shown = shown or _MaskedParts(mask())
                for part in respond(chunks[-1:]).parts:
                    for piece in shown.pieces(part):
                        yield piece
    except PalaverError as error:
        if not chunks:
            raise
        broken = str(error)
    for piece in shown.rest() if shown else ():
        yield piece
    response = mask().response(respond(chunks))
    if broken or not chunks or not (response.finish.reason or ended(chunks)):
        response = replace(response, finish=_incomplete(response.finish.reason, broken))
    for call in response.function_calls:
        yield call
    yield response


class _MaskedParts:
    """Parts as they are shown while they arrive: what may become a key waits until the next part of its kind."""

    def __init__(self, mask: Mask) -> None:
        self._stream = StreamMask(mask)
        self._last: Text | Thought | None = None

    def pieces(self, part: Part) -> Iterator[Part]:
        if not isinstance(part, Text | Thought | Media):
            return
        if type(part) is not type(self._last):
            yield from self.rest()
        if isinstance(part, Media):
            yield part
            return
        self._last = part
        text = self._stream.feed(part.text)
        if text == part.text:
            yield part
        elif text or part.signature:
            yield replace(part, text=text, raw=None)

    def rest(self) -> Iterator[Part]:
        """What was held back and has become no key."""
        text = self._stream.flush()
        if text and self._last is not None:
            yield replace(self._last, text=text, signature=None, raw=None)
        self._last = None


def _incomplete(reason: str, broken: str) -> Finish:
    return Finish(outcome="incomplete", reason=reason, message=broken or "the stream broke off")

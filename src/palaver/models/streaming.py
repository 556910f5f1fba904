"""A stream of chunks as the parts it brings, and at its end the whole response."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from palaver.errors import PalaverError
from palaver.models.base import Finish, Response
from palaver.parts import Media, Part, Text, Thought

Chunk = dict[str, Any]


async def streamed(
    events: AsyncGenerator[Any, None],
    *,
    read: Callable[[Any], Chunk],
    respond: Callable[[list[Chunk]], Response],
    ended: Callable[[list[Chunk]], bool] = lambda _: False,
    whole: Callable[[Response], Response] = lambda response: response,
) -> AsyncIterator[Part | Response]:
    """Yield words, thoughts and media as they arrive, then the calls, then the response.

    Only the whole turn tells which ids calls without one get, and calls may come in fragments; so they come whole. A
    stream that breaks after something has arrived ends in a response that is incomplete; before that, in the error.
    One that gives no reason for its end is incomplete, too, unless its chunks tell that it has *ended*. What is put
    together from all of them goes through *whole*.
    """
    chunks: list[Chunk] = []
    broken = ""
    try:
        async with aclosing(events):
            async for event in events:
                chunks.append(read(event))
                for part in respond(chunks[-1:]).parts:
                    if isinstance(part, Text | Thought | Media):
                        yield part
    except PalaverError as error:
        if not chunks:
            raise
        broken = str(error)
    response = whole(respond(chunks))
    if broken or not chunks or not (response.finish.reason or ended(chunks)):
        response = replace(response, finish=_incomplete(response.finish.reason, broken))
    for call in response.function_calls:
        yield call
    yield response


def _incomplete(reason: str, broken: str) -> Finish:
    return Finish(outcome="incomplete", reason=reason, message=broken or "the stream broke off")

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from engine.engine_world import Loop
from tertulia.errors import ResponseUnreadable, TimedOut
from tertulia.models.base import Response
from tertulia.models.calls import Call
from tertulia.parts import Part, Text
from tertulia.run.model_calls import AttemptFailed, CallEvent, ModelCalls, RetryWaits
from tertulia.turns import Prompt, model

ASKED = Prompt.of("hi")


class Dripping:
    """A model that says one more word every ten seconds, and ends after some of them."""

    name = "dripping"

    def __init__(self, words: int) -> None:
        self._words = words
        self.closed = False

    async def respond(self, prompt: Prompt) -> Response:
        return [piece async for piece in self.stream(prompt)][-1]  # type: ignore[return-value]

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        try:
            for _ in range(self._words):
                await asyncio.sleep(10)
                yield Text(text="word ")
            yield Response(turn=model("word " * self._words, by=self.name))
        finally:
            self.closed = True


async def read(calls: ModelCalls, asked: Dripping, *, pause: float = 0.0) -> list[CallEvent]:
    """What the reader of an answer gets; without the calls."""
    pieces: list[CallEvent] = []
    async for piece in calls.request(asked, ASKED):
        if not isinstance(piece, Call):
            pieces.append(piece)
            await asyncio.sleep(pause)
    return pieces


@pytest.mark.parametrize("streaming", [False, True])
def test_a_call_has_a_limit_in_all_also_where_something_arrives_now_and_then(streaming: bool) -> None:
    loop, asked = Loop(), Dripping(100)

    with pytest.raises(TimedOut, match=r"^dripping gave no whole answer within 95 seconds$"):
        loop.run(read(ModelCalls(streaming=streaming, retries=0, timeout=95), asked))

    assert (loop.time(), asked.closed) == (95, True)
    loop.close()


def test_a_reader_who_takes_time_does_not_use_up_the_limit() -> None:
    loop = Loop()

    pieces = loop.run(read(ModelCalls(streaming=True, timeout=95), Dripping(9), pause=60))

    assert len(pieces) == 10
    loop.close()


def test_what_took_too_long_is_asked_again_as_often_as_waiting_helps() -> None:
    loop = Loop()

    with pytest.raises(TimedOut):
        loop.run(read(ModelCalls(retries=2, timeout=5), Dripping(1)))

    assert loop.time() == 5 + 1 + 5 + 2 + 5
    loop.close()


def test_what_arrived_before_an_attempt_failed_is_void() -> None:
    loop, asked = Loop(), Dripping(2)
    word = Text(text="word ")

    async def pieces() -> list[CallEvent | str]:
        found: list[CallEvent | str] = []
        with suppress(TimedOut):
            async for piece in ModelCalls(streaming=True, retries=1, timeout=15).request(asked, ASKED):
                found.append(f"call {piece.attempt} {piece.status}" if isinstance(piece, Call) else piece)
        return found

    error = TimedOut("dripping gave no whole answer within 15 seconds")
    (first, failed, waits, void, *rest) = loop.run(pieces())
    assert (first, failed, void, rest) == (word, "call 1 failed", AttemptFailed(), [word, "call 2 failed"])
    assert isinstance(waits, RetryWaits)
    assert (waits.model, waits.seconds, str(waits.error)) == ("dripping", 1.0, str(error))
    loop.close()


async def test_a_call_that_is_stopped_is_told_before_the_cancellation() -> None:
    calls: list[CallEvent] = []

    async def asked() -> None:
        async for piece in ModelCalls().request(Dripping(1), ASKED):
            calls.append(piece)

    asking = asyncio.create_task(asked())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])

    assert (asking.cancelled(), [one.status for one in calls if isinstance(one, Call)]) == (True, ["stopped"])


class Odd:
    """A model that gives what no model gives."""

    name = "odd"

    async def respond(self, prompt: Prompt) -> Response:
        return "Hello."  # type: ignore[return-value]

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield "Hello."  # type: ignore[misc]


@pytest.mark.parametrize("streaming", [False, True])
async def test_what_is_no_response_is_an_error_after_which_another_model_may_be_asked(streaming: bool) -> None:
    with pytest.raises(ResponseUnreadable, match="odd gave a str where a response belongs"):
        async for _ in ModelCalls(streaming=streaming).request(Odd(), ASKED):
            pass

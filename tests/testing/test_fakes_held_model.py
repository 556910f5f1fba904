"""A model waits where it is told to."""

import asyncio

from tertulia.models.base import Response
from tertulia.parts import Text
from tertulia.testing import HeldModel
from tertulia.turns import Prompt


async def test_an_answer_waits_until_it_is_released() -> None:
    model = HeldModel("One.", "Two.")
    answering = asyncio.create_task(model.respond(Prompt.of("hello")))
    await model.asked.wait()

    assert (await model.respond(Prompt.of("hello"))).text == "One."
    model.release()
    assert (await answering).text == "Two."


async def test_a_streamed_answer_waits_after_so_many_words() -> None:
    model, seen = HeldModel("one two three", pieces=2), list[str]()

    async def read() -> None:
        async for piece in model.stream(Prompt.of("hello")):
            seen.append(piece.text if isinstance(piece, Text | Response) else "")

    reading = asyncio.create_task(read())
    while len(seen) < 2:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert seen == ["one ", "two "]
    model.release()
    await reading
    assert seen == ["one ", "two ", "three", "one two three"]

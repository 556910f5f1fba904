"""One run: ask the model, run the tools it calls, ask again, until it answers."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from msgspec.structs import replace

from palaver.agent.toolbox import Toolbox
from palaver.errors import ResponseUnreadable
from palaver.models.base import Model, Response
from palaver.parts import Part
from palaver.turns import Layer, Prompt, Turn, user

STEPS = 10


async def run_agent(
    prompt: Prompt, model: Model, toolbox: Toolbox, *, steps: int = STEPS, streaming: bool = False
) -> AsyncGenerator[Part | Response | Turn, None]:
    """Yield each response as it comes, each turn of tool results as it is known; when streaming, also the pieces.

    After *steps* rounds of tools the model is asked once more, without them. A response that calls a tool which the
    caller is to answer, or that is not valid, ends the run.
    """
    for step in count():
        asked = prompt if step < steps else replace(prompt, tools=())
        response = None
        async with _closing(model.stream(asked) if streaming else _whole(model, asked)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Response):
                    response = piece
                yield piece
        if response is None:
            raise ResponseUnreadable(f"{model.name} ended its stream without a response")
        calls = response.function_calls
        if not calls or not response.valid or step >= steps:
            return
        run = [call for call in calls if not toolbox.leaves(call)]
        results = user(*await toolbox.run(run)) if run else None
        if results is not None:
            yield results
        if results is None or len(run) < len(calls):
            return
        prompt = after(prompt, response.turn, results)


@asynccontextmanager
async def _closing(pieces: AsyncIterator[Part | Response]) -> AsyncIterator[AsyncIterator[Part | Response]]:
    """The pieces, let go of at once when nobody wants more of them."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


async def _whole(model: Model, prompt: Prompt) -> AsyncIterator[Part | Response]:
    yield await model.respond(prompt)


def after(prompt: Prompt, *turns: Turn) -> Prompt:
    """The prompt with more turns at its end."""
    return replace(prompt, layers=(*prompt.layers, Layer(name="run", turns=turns)))

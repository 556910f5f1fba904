"""What the tests of several models share: tools, a loop that calls them, and whole streams."""

from typing import Any

import pytest

from tertulia.errors import TertuliaError
from tertulia.models import Model, Response
from tertulia.parts import Part, ToolResult
from tertulia.turns import Prompt, Settings, ToolSpec, Turn, user

LOOK = ToolSpec(
    name="look",
    description="Looks at a place.",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
COUNT = ToolSpec(
    name="count",
    parameters={"type": "object", "properties": {"upto": {"type": "integer", "minimum": 3}}, "required": ["upto"]},
)
EVERY_SETTING = Settings(
    temperature=0.5,
    top_p=0.9,
    top_k=40,
    max_tokens=100,
    stop=("END",),
    seed=7,
    thinking="low",
    thoughts=True,
    answer={"type": "OBJECT"},
    tool_choice="any",
    safety={"HARASSMENT": "OFF"},
)
HI = Prompt.of("hi")
EVENTS = "content-type: text/event-stream\r\n"
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def streamed(model: Model, prompt: Prompt) -> tuple[list[Part], Response]:
    """The pieces of an answer, and the whole of it."""
    *pieces, whole = [piece async for piece in model.stream(prompt)]
    assert isinstance(whole, Response)
    return [piece for piece in pieces if not isinstance(piece, Response)], whole


async def asked(model: Model, prompt: Prompt, *, stream: bool = False) -> Response:
    return (await streamed(model, prompt))[1] if stream else await model.respond(prompt)


async def failure(model: Model, *, stream: bool, words: str | None = None) -> tuple[type[TertuliaError], float | None]:
    """The error of a question, and the seconds to wait before the next."""
    with pytest.raises(TertuliaError, match=words) as caught:
        await asked(model, HI, stream=stream)
    return type(caught.value), getattr(caught.value, "retry_after", None)


async def step(model: Model, history: list[Turn], *, stream: bool = False, **changes: Any) -> list[Turn]:
    """The history with one more answer, and the results of its calls."""
    prompt = Prompt.of(*history, **{"tools": [LOOK, COUNT], **changes})
    response = await asked(model, prompt, stream=stream)
    assert response.valid
    results = [ToolResult(name=call.name, id=call.id, value={"saw": call.args}) for call in response.function_calls]
    return [*history, response.turn, *([user(*results)] if results else [])]

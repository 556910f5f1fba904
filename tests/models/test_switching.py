"""One conversation, several models: what one made is understood, or left out, by the next."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from models.talk import step
from tertulia.formats.lists import read_genai
from tertulia.models import Gemini, Model, OpenAI, Response
from tertulia.models.gemini.encode import encode_turn
from tertulia.parts import Media, Part, Text, ToolCall
from tertulia.sim import GeminiSim, OpenAISim
from tertulia.sim.behaviours import Actor, Script
from tertulia.turns import Prompt, Turn, user
from tertulia.wire.lint import lint
from tertulia.wire.rules import PLACEHOLDER_SIGNATURE

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture
async def models() -> AsyncIterator[dict[str, Model]]:
    """Models of two services that check what they are sent; a loop of tools takes five steps with either."""
    async with AsyncExitStack() as stack:
        google = await stack.enter_async_context(GeminiSim(behaviour=Actor(steps=5, parallel=2)))
        compatible = await stack.enter_async_context(OpenAISim(behaviour=Actor(steps=5, parallel=2)))
        natives = ["gemini-3.8-flash", "gemini-3.7-flash", "gemini-2.5-flash"]
        others = ["gpt-4o", "gpt-5.6", "compatible-1"]
        made: dict[str, Any] = {name: Gemini(name, key="k", base_url=google.url) for name in natives}
        made |= {name: OpenAI(name, key="k", base_url=compatible.url) for name in others}
        made["gemini by openai"] = OpenAI("gemini-3.8-flash", key="k", base_url=compatible.url)
        for one in made.values():
            await stack.enter_async_context(one)
        yield made
        answered = [one.status for one in google.requests] + [one.status for one in compatible.requests]
        assert {*answered} == {200}


@BOTH
@pytest.mark.parametrize(
    "names",
    [
        ["gemini-3.8-flash", "gpt-4o", "gemini-3.8-flash"],
        ["gemini-3.8-flash", "gemini-3.7-flash", "gemini-3.8-flash"],
        ["gemini-3.8-flash", "compatible-1", "gemini-2.5-flash", "gpt-5.6", "gemini-3.7-flash"],
        ["gpt-4o", "gemini-3.8-flash", "gpt-4o"],
        ["gemini by openai", "gpt-5.6", "gemini by openai"],
        ["gpt-5.6", "gemini by openai", "gemini-2.5-flash"],
    ],
    ids=" ".join,
)
async def test_models_take_turns_in_the_middle_of_a_loop_of_tools(
    models: dict[str, Model], names: list[str], stream: bool
) -> None:
    history: list[Turn] = [user("go on")]

    for name in names:
        history = await step(models[name], history, stream=stream)
        history = msgspec.json.decode(msgspec.json.encode(history), type=list[Turn])

    makers = [models[name].name for name in names]
    assert [turn.model for turn in history if turn.role == "model"] == makers
    assert all(any(isinstance(part, ToolCall) for part in turn.parts) for turn in history if turn.role == "model")


async def talked_in_turns(*, steps: int, openai_parallel: int) -> tuple[list[Turn], GeminiSim, OpenAISim]:
    """Gemini, an OpenAI service and Gemini again answer one after another."""
    async with (
        GeminiSim(behaviour=Actor(steps=steps, parallel=2)) as google,
        OpenAISim(behaviour=Actor(steps=steps, parallel=openai_parallel)) as compatible,
        Gemini("gemini-3.8-flash", key="k", base_url=google.url) as gemini,
        OpenAI("gpt-4o", key="k", base_url=compatible.url) as gpt,
    ):
        history = [user("go on")]
        for one in (gemini, gpt, gemini):
            history = await step(one, history)
    return history, google, compatible


async def test_signatures_are_not_shown_to_others_and_are_still_there_for_their_maker() -> None:
    history, google, compatible = await talked_in_turns(steps=5, openai_parallel=1)

    signature = next(part.signature for part in history[1].parts if isinstance(part, ToolCall))
    assert "signature" not in repr(compatible.requests[0].body)
    signatures = [
        [part.get("thoughtSignature") for part in content["parts"]]
        for content in google.requests[1].body["contents"]
        if content["role"] == "model"
    ]
    assert signatures == [[signature, None], [PLACEHOLDER_SIGNATURE]]


async def test_signatures_in_imported_contents_are_not_shown_to_openai() -> None:
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    result = {"functionResponse": {"name": "f", "response": {"result": 1}}}
    contents = [{"parts": [{"text": "go"}]}, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    turns = read_genai(contents).turns

    async with OpenAISim() as compatible, OpenAI("gpt-4o", key="k", base_url=compatible.url) as gpt:
        await gpt.respond(Prompt.of(*turns))

    body = compatible.requests[0].body
    assert "c2ln" not in repr(body)
    assert lint(body, model="gpt-4o", strict=True) == []
    assert b'"thoughtSignature":"c2ln"' in encode_turn(turns[1], model="gemini-3.8-flash")


NOTED: dict[str, Any] = {"text": "42", "partMetadata": {"a": 1}}
CITED: dict[str, Any] = {"type": "text", "text": "42", "annotations": [{"type": "url_citation"}]}
PICTURE: dict[str, Any] = {
    "inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "hi.png"},
    "partMetadata": {"a": 1},
}


@BOTH
async def test_what_stands_beside_a_field_nobody_knows_is_said_and_goes_back_to_its_maker_alone(stream: bool) -> None:
    thinking = {"text": "hm", "thought": True, "partMetadata": {"a": 1}}
    content = {"role": "model", "parts": [thinking, NOTED, PICTURE]}
    body = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    said = {"role": "assistant", "content": [CITED]}
    async with (
        GeminiSim(behaviour=Script([body, "ok"])) as google,
        OpenAISim(behaviour=Script([said, "ok", "ok"])) as compatible,
        Gemini("gemini-3.8-flash", key="k", base_url=google.url) as gemini,
        OpenAI("compatible-1", key="k", base_url=compatible.url) as gpt,
    ):
        pieces, first = await heard(gemini, [user("go")], stream=stream)
        shown, second = await heard(gpt, [user("go")], stream=stream)
        history = [user("go"), first.turn, user("and you?"), second.turn, user("well?")]
        for one in (gemini, gpt):
            await one.respond(Prompt.of(*history))

    assert (first.text, first.thought_text, second.text) == ("42", "hm", "42")
    if stream:
        assert "".join(part.text for part in pieces if isinstance(part, Text)) == "42"
        assert [part.data for part in pieces if isinstance(part, Media)] == [b"hi"]
        assert "".join(part.text for part in shown if isinstance(part, Text)) == "42"
    [own, others] = [content["parts"] for content in google.requests[1].body["contents"] if content["role"] == "model"]
    assert (own, others) == ([thinking, NOTED, PICTURE], [{"text": "42"}])
    [others, own] = [one["content"] for one in compatible.requests[1].body["messages"] if one["role"] == "assistant"]
    assert (own, others) == ([CITED], "42[photo]")


async def heard(one: Model, turns: list[Turn], *, stream: bool) -> tuple[list[Part], Response]:
    """The pieces of an answer and the whole."""
    if not stream:
        return [], await one.respond(Prompt.of(*turns))
    pieces = [piece async for piece in one.stream(Prompt.of(*turns))]
    [response] = [piece for piece in pieces if isinstance(piece, Response)]
    return [piece for piece in pieces if not isinstance(piece, Response)], response


@pytest.mark.parametrize("change", [{"text": "43"}, {"signature": "c2ln"}, {"raw": None}])
def test_what_was_received_goes_back_only_while_it_says_the_same(change: dict[str, Any]) -> None:
    part = replace(Text(text="42", raw=NOTED), **change)
    sent = {"text": part.text, **({"thoughtSignature": part.signature} if part.signature else {})}

    turn = Turn(role="model", parts=(part,), model="gemini-3.8-flash")

    assert msgspec.json.decode(encode_turn(turn, model="gemini-3.8-flash")) == [{"role": "model", "parts": [sent]}]


async def test_the_whole_loop_ends_in_words_about_all_results() -> None:
    history, *_ = await talked_in_turns(steps=2, openai_parallel=2)

    [text] = [part for part in history[-1].parts if isinstance(part, Text)]
    assert text.text.count("gave") == 4

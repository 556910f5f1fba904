"""Signatures on the calls of Gemini's models are issued, demanded and checked."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from tertulia.sim.openai import Actor, OpenAISim, Script

MODEL = "gemini-3.8-flash"
HI: Any = {"role": "user", "content": "hi"}
TOOLS: Any = [{"type": "function", "function": {"name": name}} for name in ("look", "book")]
CORRUPTED = "Corrupted thought signature."


@pytest.fixture
async def client() -> AsyncIterator[openai.AsyncOpenAI]:
    async with (
        OpenAISim(behaviour=Actor(steps=2, parallel=2)) as sim,
        openai.AsyncOpenAI(base_url=sim.url, api_key="key", max_retries=0) as connected,
    ):
        yield connected


async def ask(client: openai.AsyncOpenAI, messages: Any, model: str = MODEL) -> Any:
    response = await client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    return response.choices[0].message.model_dump(exclude_none=True)


def answered(message: Any) -> list[Any]:
    return [message, *({"role": "tool", "tool_call_id": c["id"], "content": "x"} for c in message["tool_calls"])]


def signed(message: Any, signature: str | None) -> Any:
    calls = [{name: value for name, value in call.items() if name != "extra_content"} for call in message["tool_calls"]]
    if signature is not None:
        calls[0]["extra_content"] = {"google": {"thought_signature": signature}}
    return message | {"tool_calls": calls}


def signature_of(message: Any) -> str:
    return str(message["tool_calls"][0]["extra_content"]["google"]["thought_signature"])


async def refusal(client: openai.AsyncOpenAI, messages: Any, model: str = MODEL) -> Any:
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(client, messages, model)
    return caught.value.response.json()[0]["error"]


async def test_the_first_call_of_a_message_is_signed_and_goes_back(client: openai.AsyncOpenAI) -> None:
    first = await ask(client, [HI])
    second = await ask(client, [HI, *answered(first)])
    last = await ask(client, [HI, *answered(first), *answered(second)])

    assert [("extra_content" in call) for call in first["tool_calls"]] == [True, False]
    assert signature_of(first) != signature_of(second)
    assert last["content"].startswith("Here is what I found: ")


async def test_a_streamed_call_is_signed_too(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model=MODEL, messages=[HI], tools=TOOLS, stream=True)
    calls = [call async for chunk in stream for call in chunk.choices[0].delta.tool_calls or ()]

    assert (calls[0].model_extra or {})["extra_content"]["google"]["thought_signature"]


async def test_other_models_do_not_sign(client: openai.AsyncOpenAI) -> None:
    message = await ask(client, [HI], model="gpt-4o")

    assert "extra_content" not in message["tool_calls"][0]


async def test_a_missing_signature_is_refused_in_geminis_words(client: openai.AsyncOpenAI) -> None:
    message = signed(await ask(client, [HI]), None)
    instruction = {"role": "system", "content": "Be kind."}

    error = await refusal(client, [instruction, HI, *answered(message)])

    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert "is missing a thought_signature in functionCall parts." in error["message"]
    assert "function call `default_api:look` , position 2. Please" in error["message"]


async def test_the_position_counts_the_results_of_a_step_as_one(client: openai.AsyncOpenAI) -> None:
    first = await ask(client, [HI])
    second = signed(await ask(client, [HI, *answered(first)]), None)

    error = await refusal(client, [HI, *answered(first), *answered(second)])

    assert ", position 4." in error["message"]


async def test_earlier_turns_and_earlier_models_need_no_signature(client: openai.AsyncOpenAI) -> None:
    message = signed(await ask(client, [HI]), None)

    await ask(client, [HI, *answered(message), HI])
    await ask(client, [HI, *answered(message)], model="gemini-2.5-flash")


@pytest.mark.parametrize("signature", ["made up", "bWFkZSB1cA==", "Ã"])
async def test_a_signature_of_others_is_refused(client: openai.AsyncOpenAI, signature: str) -> None:
    message = signed(await ask(client, [HI]), signature)

    assert (await refusal(client, [HI, *answered(message)]))["message"] == CORRUPTED


async def test_a_signature_for_another_model_is_refused(client: openai.AsyncOpenAI) -> None:
    message = await ask(client, [HI], model="gemini-2.5-flash")

    assert (await refusal(client, [HI, *answered(message)]))["message"] == "Invalid thought signature."


@pytest.mark.parametrize("dummy", ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"])
async def test_dummies_are_taken_bare_and_in_base64(client: openai.AsyncOpenAI, dummy: str) -> None:
    message = await ask(client, [HI])

    for signature in (dummy, base64.b64encode(dummy.encode()).decode()):
        await ask(client, [HI, *answered(signed(message, signature))])


async def test_either_alphabet_of_base64_is_read(client: openai.AsyncOpenAI) -> None:
    message = await ask(client, [HI])
    safe = signature_of(message).replace("+", "-").replace("/", "_")

    await ask(client, [HI, *answered(signed(message, safe))])


async def test_a_signature_that_a_script_brought_is_known() -> None:
    call: Any = {"function": {"name": "look", "arguments": "{}"}}
    call["extra_content"] = {"google": {"thought_signature": "b3du"}}

    async with (
        OpenAISim(behaviour=Script([{"content": None, "tool_calls": [call]}, "done"])) as sim,
        openai.AsyncOpenAI(base_url=sim.url, api_key="key", max_retries=0) as client,
    ):
        message = await ask(client, [HI])
        last = await ask(client, [HI, *answered(message)])

    assert (signature_of(message), last["content"]) == ("b3du", "done")

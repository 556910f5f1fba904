"""The real OpenAI client, with and without asyncio, against the simulator."""

import asyncio
import json
import math
from contextlib import suppress
from operator import mul
from typing import Any

import openai
import pytest

from tertulia.sim.openai import Actor, Echo, OpenAISim, Script

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city", "days"],
}
TOOLS: Any = [
    {"type": "function", "function": {"name": "weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "book", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "noop"}},
]
ANSWER = "You said “hi”, and I have thought about it: there is more to say on that than fits here."
HI: Any = [{"role": "user", "content": "hi"}]


def a_client(sim: OpenAISim, key: str = "key", **changes: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=sim.url, api_key=key, max_retries=0, **changes)


async def test_a_question_is_answered(client: openai.AsyncOpenAI) -> None:
    response = await client.chat.completions.create(model="gpt-4o", messages=HI)

    assert response.choices[0].message.content == ANSWER
    assert response.choices[0].finish_reason == "stop"


async def test_the_client_without_asyncio_is_answered_too(sim: OpenAISim) -> None:
    def talk() -> tuple[str | None, str, list[str]]:
        with openai.OpenAI(base_url=sim.url, api_key="key", max_retries=0) as client:
            response = client.chat.completions.create(model="gpt-4o", messages=HI)
            with client.chat.completions.create(model="gpt-4o", messages=HI, stream=True) as stream:
                text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
            return response.choices[0].message.content, text, [model.id for model in client.models.list()]

    answer, streamed, models = await asyncio.to_thread(talk)

    assert answer == streamed == ANSWER
    assert "compatible-1" in models


async def test_a_loop_of_tools_runs_in_steps_then_ends(client: openai.AsyncOpenAI) -> None:
    messages: Any = [*HI]
    called = []
    while True:
        response = await client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
        message = response.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        assert response.choices[0].finish_reason == "tool_calls"
        called.append([call.function.name for call in message.tool_calls if call.type == "function"])
        results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
        messages.extend(results)

    assert called == [["weather", "book"], ["noop", "weather"]]
    assert message.content == (
        "Here is what I found: weather gave sunny; book gave sunny; noop gave sunny; weather gave sunny."
    )


async def test_calls_have_ids_and_fitting_arguments(client: openai.AsyncOpenAI) -> None:
    response = await client.chat.completions.create(model="gpt-4o", messages=HI, tools=TOOLS)

    calls = response.choices[0].message.tool_calls or []
    assert [len(call.id) for call in calls] == [29, 29]
    assert calls[0].id.startswith("call_")
    assert calls[0].type == "function"
    arguments = json.loads(calls[0].function.arguments)
    assert arguments["city"] in ("Oslo", "Rome")
    assert arguments["days"] >= 1


async def test_a_streamed_tool_call_adds_up_to_the_unary_one(client: openai.AsyncOpenAI) -> None:
    unary = await client.chat.completions.create(model="gpt-4o", messages=HI, tools=TOOLS)
    async with client.chat.completions.stream(model="gpt-4o", messages=HI, tools=TOOLS) as stream:
        streamed = await stream.get_final_completion()

    def functions(message: Any) -> list[tuple[str, str]]:
        return [(call.function.name, call.function.arguments) for call in message.tool_calls]

    assert functions(streamed.choices[0].message) == functions(unary.choices[0].message)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"tool_choice": "none"}, []),
        ({"tool_choice": "auto"}, ["weather", "book"]),
        ({"tool_choice": "required"}, ["weather", "book"]),
        ({"parallel_tool_calls": False}, ["weather"]),
        ({"tool_choice": {"type": "function", "function": {"name": "noop"}}}, ["noop"]),
    ],
)
async def test_the_choice_of_tools_is_respected(
    client: openai.AsyncOpenAI, changes: dict[str, Any], names: list[str]
) -> None:
    response = await client.chat.completions.create(model="gpt-4o", messages=HI, tools=TOOLS, **changes)

    calls = response.choices[0].message.tool_calls or []
    assert [call.function.name for call in calls if call.type == "function"] == names


async def test_an_answer_in_json_fits_the_schema(client: openai.AsyncOpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER, "strict": True}}

    response = await client.chat.completions.create(model="gpt-4o", messages=HI, response_format=form)

    assert json.loads(response.choices[0].message.content or "")["city"] in ("Oslo", "Rome")


async def test_any_json_is_an_object(client: openai.AsyncOpenAI) -> None:
    response = await client.chat.completions.create(
        model="gpt-4o", messages=HI, response_format={"type": "json_object"}
    )

    assert json.loads(response.choices[0].message.content or "") == {"answer": "hi"}


async def test_the_token_limit_and_stop_sequences_end_the_text(client: openai.AsyncOpenAI) -> None:
    short = await client.chat.completions.create(model="gpt-4o", messages=HI, max_completion_tokens=2)
    stopped = await client.chat.completions.create(model="gpt-4o", messages=HI, stop=[" said"])

    assert (short.choices[0].message.content, short.choices[0].finish_reason) == ("You said", "length")
    assert short.usage is not None
    assert short.usage.completion_tokens == 2
    assert (stopped.choices[0].message.content, stopped.choices[0].finish_reason) == ("You", "stop")


async def test_several_choices_are_numbered(client: openai.AsyncOpenAI) -> None:
    response = await client.chat.completions.create(model="gpt-4o", messages=HI, n=3)

    assert [choice.index for choice in response.choices] == [0, 1, 2]


async def test_a_long_prompt_is_cached_until_it_was_idle_too_long() -> None:
    messages: Any = [{"role": "system", "content": "word " * 1000}, *HI]

    async with OpenAISim() as sim, a_client(sim) as client:

        async def cached(**changes: Any) -> Any:
            response = await client.chat.completions.create(model="gpt-4o", messages=messages, **changes)
            assert response.created == int(sim.clock())
            assert response.usage is not None
            assert response.usage.prompt_tokens_details is not None
            return response.usage.prompt_tokens_details.cached_tokens

        counts = [await cached(), await cached(temperature=1), await cached(prompt_cache_key="other")]
        sim.clock.advance(11 * 60)
        counts.append(await cached())

    assert counts == [0, 1152, 0, 0]


async def test_models_that_think_count_it(client: openai.AsyncOpenAI) -> None:
    counted = {}
    for model in ("o3-mini", "gpt-6-sol", "gpt-4o", "mistral-large-latest"):
        response = await client.chat.completions.create(model=model, messages=HI)
        assert response.usage is not None
        assert response.usage.completion_tokens_details is not None
        counted[model] = response.usage.completion_tokens_details.reasoning_tokens

    assert counted == {"o3-mini": 64, "gpt-6-sol": 64, "gpt-4o": 0, "mistral-large-latest": 0}


async def test_models_that_think_are_told_how_hard(client: openai.AsyncOpenAI) -> None:
    response = await client.chat.completions.create(model="o3-mini", messages=HI, reasoning_effort="low")

    assert response.usage is not None
    assert response.usage.completion_tokens_details is not None
    assert response.usage.completion_tokens_details.reasoning_tokens == 32


async def test_the_key_must_be_good(sim: OpenAISim) -> None:
    async with a_client(sim, key="sk-invalid-key") as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.chat.completions.create(model="gpt-4o", messages=HI)

    assert caught.value.code == "invalid_api_key"
    assert "Incorrect API key provided: sk-inval****-key." in caught.value.message


async def test_only_the_given_keys_are_good() -> None:
    async with OpenAISim(keys=frozenset({"one"})) as sim:
        async with a_client(sim, key="one") as client:
            await client.chat.completions.create(model="gpt-4o", messages=HI)
        async with a_client(sim, key="two") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()


async def test_an_unknown_model_is_not_found(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        await client.chat.completions.create(model="gpt-9", messages=HI)
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("gpt-9")

    assert caught.value.body == {
        "message": "The model `gpt-9` does not exist or you do not have access to it.",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    }


async def test_the_models_that_are_given_are_served_alone() -> None:
    async with OpenAISim(models=["gpt-5.6", "text-embedding-3-small"]) as sim, a_client(sim) as client:
        listed = [model.id async for model in client.models.list()]
        await client.chat.completions.create(model="gpt-5.6", messages=HI)
        await client.embeddings.create(model="text-embedding-3-small", input="x")
        with pytest.raises(openai.NotFoundError, match="The model `gpt-4o` does not exist"):
            await client.chat.completions.create(model="gpt-4o", messages=HI)
        with pytest.raises(openai.NotFoundError, match="The model `text-embedding-3-small` does not exist"):
            await client.chat.completions.create(model="text-embedding-3-small", messages=HI)
        with pytest.raises(openai.NotFoundError, match="The model `text-embedding-3-large` does not exist"):
            await client.embeddings.create(model="text-embedding-3-large", input="x")

    assert listed == ["gpt-5.6", "text-embedding-3-small"]


async def test_any_model_will_do_where_none_are_given() -> None:
    async with OpenAISim(models=None, behaviour=Echo()) as sim, a_client(sim) as client:
        response = await client.chat.completions.create(model="anything/at-all", messages=HI)
        model = await client.models.retrieve("anything")

    assert (response.choices[0].message.content, response.model, model.id) == ("hi", "anything/at-all", "anything")


async def test_a_broken_rule_is_refused_and_recorded(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    orphan: Any = [*HI, {"role": "tool", "tool_call_id": "a", "content": "x"}]

    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="gpt-4o", messages=orphan)

    assert (caught.value.param, caught.value.code) == ("messages.[1].role", None)
    (received,) = sim.requests
    assert (received.method, received.path, received.status) == ("POST", "/v1/chat/completions", 400)
    assert received.rule == "orphan-result"
    assert received.body["messages"] == orphan
    assert "authorization" not in received.headers


@pytest.mark.parametrize(
    ("strict", "audio", "good"),
    [
        (True, "input_audio", (True, False)),
        (True, "audio_url", (False, True)),
        (True, "both", (True, True)),
        (True, "none", (False, False)),
        (False, "input_audio", (True, True)),
        (False, "audio_url", (False, True)),
    ],
)
async def test_a_server_takes_the_forms_of_sounds_that_it_is_started_with(
    strict: bool, audio: Any, good: tuple[bool, bool]
) -> None:
    inside = {"type": "input_audio", "input_audio": {"data": "eA==", "format": "mp3"}}
    by_address = {"type": "audio_url", "audio_url": {"url": "https://example.com/a.ogg"}}
    async with OpenAISim(strict=strict, audio=audio) as sim, a_client(sim) as client:
        for part in (inside, by_address):
            messages: Any = [{"role": "user", "content": [part]}]
            with suppress(openai.BadRequestError):
                await client.chat.completions.create(model="compatible-1", messages=messages)

    assert tuple(request.status == 200 for request in sim.requests) == good


async def test_embeddings_are_unit_vectors_nearer_for_texts_alike(client: openai.AsyncOpenAI) -> None:
    texts = ["the cat sat on the mat", "the cat sat on a mat", "quarterly revenue report"]

    encoded = await client.embeddings.create(model="text-embedding-3-small", input=texts)
    plain = await client.embeddings.create(
        model="text-embedding-3-small", input=texts[0], encoding_format="float", dimensions=256
    )

    one, two, three = (entry.embedding for entry in encoded.data)
    assert [len(one), len(plain.data[0].embedding)] == [1536, 256]
    assert math.hypot(*one) == pytest.approx(1, abs=1e-6)
    assert sum(map(mul, one, two)) > 0.7 > 0.3 > sum(map(mul, one, three))
    assert encoded.usage.prompt_tokens > 0


async def test_embeddings_of_nothing_are_refused(client: openai.AsyncOpenAI) -> None:
    nothings: list[str | list[str]] = ["", [], [""]]
    for nothing in nothings:
        with pytest.raises(openai.BadRequestError):
            await client.embeddings.create(model="text-embedding-3-small", input=nothing)


async def test_a_script_gives_its_lines_in_order_in_every_shape() -> None:
    whole = {"id": "mine", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "in "}}]},
        {"choices": [{"index": 0, "delta": {"content": "pieces"}, "finish_reason": "length"}]},
    ]
    message = {"content": None, "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}
    script = Script(["text", message, whole, chunks])

    async with OpenAISim(behaviour=script) as sim, a_client(sim) as client:
        answers = [await client.chat.completions.create(model="gpt-4o", messages=HI) for _ in range(4)]
        with pytest.raises(openai.InternalServerError, match="The script has ended after 4 answers"):
            await client.chat.completions.create(model="gpt-4o", messages=HI)

    assert answers[0].choices[0].message.content == "text"
    assert [call.id[:5] for call in answers[1].choices[0].message.tool_calls or []] == ["call_"]
    assert answers[1].choices[0].finish_reason == "tool_calls"
    assert (answers[2].id, answers[2].choices) == ("mine", [])
    assert (answers[3].choices[0].message.content, answers[3].choices[0].finish_reason) == ("in pieces", "length")


async def test_an_actor_can_be_told_how_often_to_call() -> None:
    async with OpenAISim(behaviour=Actor(steps=0)) as sim, a_client(sim) as client:
        response = await client.chat.completions.create(model="gpt-4o", messages=HI, tools=TOOLS)

    assert response.choices[0].message.tool_calls is None

"""Faults spoil the answers they were asked to spoil, and no others."""

import asyncio
from typing import Any

import openai
import pytest

from tertulia.sim.openai import (
    ContentFilter,
    ContextTooLong,
    CutStream,
    Empty,
    ErrorFrame,
    Fault,
    Hang,
    Internal,
    MalformedCall,
    MaxTokens,
    ModelRefusal,
    OpenAISim,
    Overloaded,
    Quota,
    RateLimited,
    Script,
)

HI: Any = [{"role": "user", "content": "hi"}]
ANSWER = "You said “hi”, and I have thought about it: there is more to say on that than fits here."
TOOLS: Any = [{"type": "function", "function": {"name": "look"}}]


async def ask(client: openai.AsyncOpenAI, **changes: Any) -> Any:
    return await client.chat.completions.create(model="gpt-4o", messages=HI, **changes)


async def streamed(client: openai.AsyncOpenAI, received: list[str]) -> None:
    async with await ask(client, stream=True) as stream:
        async for chunk in stream:
            received.append(chunk.choices[0].delta.content)


async def test_a_rate_limit_says_how_long_to_wait(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(RateLimited(retry_after=1.5))

    with pytest.raises(openai.RateLimitError) as caught:
        await ask(client)

    headers = caught.value.response.headers
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("2", "1500")
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert (caught.value.type, caught.value.code) == ("requests", "rate_limit_exceeded")


async def test_a_rate_limit_may_not_say_how_long(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(RateLimited(retry_after=None))

    with pytest.raises(openai.RateLimitError) as caught:
        await ask(client)

    assert "retry-after" not in caught.value.response.headers


@pytest.mark.parametrize(
    ("fault", "status", "kind", "code"),
    [
        (Quota(), 429, "insufficient_quota", "insufficient_quota"),
        (Internal(), 500, "server_error", None),
        (Overloaded(), 503, "server_error", None),
        (ContextTooLong(), 400, "invalid_request_error", "context_length_exceeded"),
        (ErrorFrame(), 500, "server_error", None),
    ],
)
async def test_errors_have_their_status_and_code(
    sim: OpenAISim, client: openai.AsyncOpenAI, fault: Fault, status: int, kind: str, code: str | None
) -> None:
    sim.fail(fault)

    with pytest.raises(openai.APIStatusError) as caught:
        await ask(client)

    assert (caught.value.status_code, caught.value.type, caught.value.code) == (status, kind, code)
    assert (sim.requests[0].status, sim.requests[0].rule) == (status, "fault")


async def test_a_fault_lasts_as_often_as_told_and_the_client_tries_again(sim: OpenAISim) -> None:
    sim.fail(RateLimited(0.001), times=2)

    async with openai.AsyncOpenAI(base_url=sim.url, api_key="key", max_retries=2) as client:
        response = await ask(client)

    assert response.choices[0].message.content == ANSWER
    assert [received.status for received in sim.requests] == [429, 429, 200]


@pytest.mark.parametrize(
    ("fault", "content", "refusal", "reason"),
    [
        (Empty(), None, None, "stop"),
        (Empty(""), "", None, "stop"),
        (ContentFilter(), None, None, "content_filter"),
        (MaxTokens(), "", None, "length"),
        (ModelRefusal("No."), None, "No.", "stop"),
    ],
)
async def test_answers_may_lack_a_text(
    sim: OpenAISim, client: openai.AsyncOpenAI, fault: Fault, content: str | None, refusal: str | None, reason: str
) -> None:
    sim.fail(fault, times=2)

    choice = (await ask(client)).choices[0]
    async with client.chat.completions.stream(model="gpt-4o", messages=HI) as stream:
        events = [event async for event in stream if event.type == "chunk"]

    assert (choice.message.content, choice.message.refusal, choice.finish_reason) == (content, refusal, reason)
    assert events[-1].chunk.choices[0].finish_reason == reason


async def test_arguments_may_be_broken(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(MalformedCall())

    response = await ask(client, tools=TOOLS)

    function = response.choices[0].message.tool_calls[0].function
    assert (function.name, function.arguments) == ("look", '{"query": "unfinis')


async def test_a_stream_may_break_off(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    received: list[str] = []
    sim.fail(CutStream(after=2))

    with pytest.raises(openai.APIConnectionError):
        await streamed(client, received)

    assert received == ["", "You said “hi"]


async def test_a_body_may_break_off(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(CutStream())

    with pytest.raises(openai.APIConnectionError):
        await ask(client)


async def test_a_stream_may_end_in_an_error(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    received: list[str] = []
    sim.fail(ErrorFrame(after=1))

    with pytest.raises(openai.APIError, match="The server had an error"):
        await streamed(client, received)

    assert received == [""]


async def test_hanging_ends_when_the_client_leaves(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(Hang(3600))

    with pytest.raises(openai.APITimeoutError):
        await ask(client, timeout=0.05)
    response = await ask(client)

    assert response.choices[0].message.content == ANSWER


async def test_hanging_ends_when_the_simulator_stops() -> None:
    sim = OpenAISim()
    sim.fail(Hang(3600))
    async with asyncio.timeout(5), openai.AsyncOpenAI(base_url="http://unset", api_key="key", max_retries=0) as client:
        async with sim:
            request = asyncio.create_task(ask(client.with_options(base_url=sim.url)))
            await sim.until(bool)
        with pytest.raises(openai.InternalServerError):
            await request


async def test_hanging_for_a_while_ends_in_the_answer(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(Hang(0.01))

    assert (await ask(client)).choices[0].message.content == ANSWER


async def test_a_refused_request_leaves_the_fault_for_the_next(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(
        Empty(
            "",
        )
    )

    with pytest.raises(openai.BadRequestError):
        await ask(client, temperature=3)

    assert (await ask(client)).choices[0].message.content == ""


async def test_a_fault_that_replaces_the_answer_leaves_the_script_alone() -> None:
    async with OpenAISim(behaviour=Script(["first"])) as sim:
        sim.fail(Empty())
        async with openai.AsyncOpenAI(base_url=sim.url, api_key="key", max_retries=0) as client:
            answers = [(await ask(client)).choices[0].message.content for _ in range(2)]

    assert answers == [None, "first"]


async def test_faults_of_the_server_strike_embeddings_too(sim: OpenAISim, client: openai.AsyncOpenAI) -> None:
    sim.fail(Overloaded())

    with pytest.raises(openai.InternalServerError):
        await client.embeddings.create(model="text-embedding-3-small", input="x")

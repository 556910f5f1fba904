"""OpenAI-compatible services through the user's own openai client: the same requests, answers and errors."""

import traceback
from collections.abc import AsyncIterator
from typing import Any

import openai
import orjson
import pytest

from models.stub import answer, answering
from models.talk import BOTH, EVENTS, HI, LOOK, asked, failure, step, streamed
from tertulia import errors
from tertulia.models import Finish, OpenAI
from tertulia.models.openai.vendors import VENDORS
from tertulia.parts import Text, Thought, ToolCall
from tertulia.sim import openai as sims
from tertulia.sim.openai import Actor, OpenAISim, Script
from tertulia.turns import Prompt, Settings, Turn, model, user

GPT = "gpt-4o"


@pytest.fixture
async def client(sim: OpenAISim) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=sim.url, api_key="key", max_retries=0) as connected:
        yield connected


@BOTH
async def test_a_request_and_its_answer_are_the_same_as_over_our_own_http(
    sim: OpenAISim, client: openai.AsyncOpenAI, stream: bool
) -> None:
    settings = Settings(temperature=0.5, top_p=0.9, max_tokens=50, stop=("END",), seed=7, tool_choice="none")
    prompt = Prompt.of("hi there", system="Be kind.", tools=[LOOK], settings=settings)

    theirs = await asked(OpenAI(GPT, client=client), prompt, stream=stream)
    async with OpenAI(GPT, key="k", base_url=sim.url) as gpt:
        ours = await asked(gpt, prompt, stream=stream)

    assert (theirs.turn, theirs.usage, theirs.finish) == (ours.turn, ours.usage, ours.finish)
    assert sim.requests[0].body == sim.requests[1].body


@BOTH
@pytest.mark.parametrize("name", [GPT, "gemini-3.8-flash"])
async def test_a_loop_of_tools_with_every_signature_accepted(name: str, stream: bool) -> None:
    history = [user("go on")]
    async with (
        OpenAISim(behaviour=Actor(steps=2, parallel=2)) as sim,
        openai.AsyncOpenAI(base_url=sim.url, api_key="key") as client,
    ):
        for _ in range(3):
            history = await step(OpenAI(name, client=client), history, stream=stream)

    assert [received.status for received in sim.requests] == [200] * 3
    signed = [bool(part.signature) for part in history[1].parts if isinstance(part, ToolCall)]
    assert signed == [name.startswith("gemini"), False]


async def test_fields_the_sdk_does_not_know_are_kept() -> None:
    message = {"content": "Yes.", "reasoning_content": "hm"}
    chunks = [
        {"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]},
    ]
    said = (Thought(text="hm", field="reasoning_content"), Text(text="Yes."))
    async with (
        OpenAISim(behaviour=Script([message, chunks])) as sim,
        openai.AsyncOpenAI(base_url=sim.url, api_key="key") as client,
    ):
        for stream in (False, True):
            response = await asked(OpenAI("compatible-1", client=client), HI, stream=stream)
            assert response.parts == said


@BOTH
@pytest.mark.parametrize(
    ("fault", "kind", "retry_after"),
    [
        (sims.RateLimited(1.5), errors.RateLimited, 1.5),
        (sims.Quota(), errors.QuotaExhausted, None),
        (sims.Internal(), errors.ServiceFault, None),
        (sims.Overloaded(), errors.Overloaded, None),
        (sims.ContextTooLong(), errors.ContextTooLong, None),
    ],
)
async def test_an_error_of_the_service_is_ours(
    sim: OpenAISim, client: openai.AsyncOpenAI, stream: bool, fault: sims.Fault, kind: type[Exception], retry_after: Any
) -> None:
    sim.fail(fault)

    assert await failure(OpenAI(GPT, client=client), stream=stream) == (kind, retry_after)


@BOTH
async def test_a_bad_key_and_an_unknown_model(sim: OpenAISim, client: openai.AsyncOpenAI, stream: bool) -> None:
    with pytest.raises(errors.ModelUnknown, match="gpt-9"):
        await asked(OpenAI("gpt-9", client=client), HI, stream=stream)
    with pytest.raises(errors.KeyRefused, match="Incorrect API key"):
        await asked(OpenAI(GPT, client=client.with_options(api_key="bad-key")), HI, stream=stream)


@BOTH
@pytest.mark.parametrize(
    ("fault", "finish"),
    [
        (sims.Empty(), Finish(outcome="empty", reason="stop")),
        (sims.ContentFilter(), Finish(outcome="blocked", reason="content_filter")),
        (sims.MaxTokens(), Finish(outcome="cut", reason="length")),
    ],
)
async def test_an_answer_without_content_is_an_outcome(
    sim: OpenAISim, client: openai.AsyncOpenAI, stream: bool, fault: sims.Fault, finish: Finish
) -> None:
    sim.fail(fault)

    response = await asked(OpenAI(GPT, client=client), HI, stream=stream)

    assert (response.turn, response.finish) == (Turn(role="model", parts=(), model=GPT), finish)


@pytest.mark.parametrize("fault", [sims.CutStream(after=2), sims.ErrorFrame(after=2)])
async def test_a_stream_that_breaks_leaves_what_arrived(
    sim: OpenAISim, client: openai.AsyncOpenAI, fault: sims.Fault
) -> None:
    sim.fail(fault)

    pieces, whole = await streamed(OpenAI(GPT, client=client), Prompt.of("one two three four five"))

    assert pieces == [Text(text="one two thre")]
    assert (whole.turn, whole.finish.outcome) == (model("one two thre", by=GPT), "incomplete")


@BOTH
async def test_an_answer_that_breaks_at_once_is_a_lost_connection(
    sim: OpenAISim, client: openai.AsyncOpenAI, stream: bool
) -> None:
    sim.fail(sims.CutStream(after=0))

    with pytest.raises(errors.ConnectionLost):
        await asked(OpenAI(GPT, client=client), HI, stream=stream)


@pytest.mark.parametrize("rest", [b'data: {"choi\n\n', b"data: <html>\n\n", b"data: 5\n\n"])
async def test_a_stream_with_an_event_that_is_no_json_leaves_what_arrived(rest: bytes) -> None:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]}
    body = b"data: %b\n\n" % orjson.dumps(chunk) + rest
    async with (
        answering(answer(body, headers=EVENTS)) as stub,
        openai.AsyncOpenAI(base_url=stub.url, api_key="key", max_retries=0) as client,
    ):
        pieces, whole = await streamed(OpenAI(GPT, client=client), HI)

    assert (pieces, whole.finish.outcome) == ([Text(text="half")], "incomplete")


async def test_an_answer_that_is_no_json_is_unreadable() -> None:
    async with (
        answering(answer(b"<html>", headers="content-type: application/json\r\n")) as stub,
        openai.AsyncOpenAI(base_url=stub.url, api_key="key", max_retries=0) as client,
    ):
        with pytest.raises(errors.ResponseUnreadable):
            await OpenAI(GPT, client=client).respond(HI)


async def test_an_error_in_the_middle_of_a_stream_keeps_its_code() -> None:
    body = b'data: {"error":{"message":"slow down","code":429}}\n\n'
    async with (
        answering(answer(body, headers=EVENTS)) as stub,
        openai.AsyncOpenAI(base_url=stub.url, api_key="key", max_retries=0) as client,
    ):
        with pytest.raises(errors.RateLimited, match="slow down"):
            await streamed(OpenAI(GPT, client=client), HI)


@BOTH
async def test_a_service_that_hangs_is_left_in_time(sim: OpenAISim, client: openai.AsyncOpenAI, stream: bool) -> None:
    sim.fail(sims.Hang())

    with pytest.raises(errors.TimedOut):
        await asked(OpenAI(GPT, client=client.with_options(timeout=0.05)), HI, stream=stream)


async def test_the_address_of_the_client_tells_the_vendor() -> None:
    async with openai.AsyncOpenAI(base_url="https://api.mistral.ai/v1", api_key="key") as client:
        assert OpenAI("mistral-large-latest", client=client).vendor == VENDORS["mistral"]
        assert OpenAI("mistral-large-latest", client=client, vendor="vllm").vendor == VENDORS["vllm"]


def test_what_is_no_client_is_an_invalid_value() -> None:
    with pytest.raises(errors.InvalidValue, match=r"client= takes an openai\.AsyncOpenAI"):
        OpenAI(GPT, client=object())


async def test_a_key_that_the_service_repeats_is_in_no_error_and_no_answer() -> None:
    key = "sk-secret/key-0123"
    refused = b'{"error": {"message": "no such key: sk-secret\\/key-0123"}}'
    async with answering(answer(refused, status="400 Bad Request")) as stub:
        client = openai.AsyncOpenAI(base_url=stub.url, api_key=key, max_retries=0)
        with pytest.raises(errors.TertuliaError) as caught:
            await OpenAI(GPT, client=client).respond(HI)
        told = "".join(traceback.format_exception(caught.value))

    assert "no such key: ***" in str(caught.value)
    assert key not in told
    assert "sk-secret\\/" not in told


@BOTH
async def test_a_key_that_the_service_repeats_in_a_good_answer_is_hidden(stream: bool) -> None:
    key = "sk-secret/key-0123"
    said = {"content": f"you sent {key}"}
    choice = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": {"role": "assistant", **said}}
    body = orjson.dumps({"id": "1", "object": "x", "created": 1, "model": GPT, "choices": [choice]})
    events = b"data: " + body + b"\n\ndata: [DONE]\n\n"
    sent = answer(events, headers=EVENTS) if stream else answer(body, headers="content-type: application/json\r\n")
    async with answering(sent) as stub:
        client = openai.AsyncOpenAI(base_url=stub.url, api_key=key, max_retries=0)
        response = await asked(OpenAI(GPT, client=client), HI, stream=stream)

    assert response.text == "you sent ***"
    assert key not in repr(response)

"""Gemini through the user's own google-genai client: the same requests, answers and errors."""

import sys
import traceback
from collections.abc import AsyncIterator
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import httpx2
import orjson
import pytest
from google import genai
from google.genai import types
from google.genai.errors import ClientError
from msgspec.structs import replace

from models.gemini.reading import OUTCOMES
from models.stub import answer, answering
from models.talk import BOTH, EVENTS, EVERY_SETTING, HI, LOOK, asked, failure, step, streamed
from tertulia import errors
from tertulia.models import Finish, Gemini
from tertulia.models.gemini import sdk
from tertulia.models.key_mask import NO_MASK
from tertulia.parts import Media, Opaque, Text, Thought, ToolCall, ToolResult
from tertulia.sim import gemini as sims
from tertulia.sim.gemini import Actor, GeminiSim, Script
from tertulia.turns import Prompt, Settings, ToolSpec, Turn, model, user

FLASH = "gemini-3.8-flash"
JSON = "content-type: application/json\r\n"


async def a_client(url: str, key: str = "k", **options: Any) -> AsyncIterator[genai.Client]:
    client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url, **options))
    try:
        yield client
    finally:
        await client.aio.aclose()
        client.close()


@pytest.fixture
async def client(sim: GeminiSim) -> AsyncIterator[genai.Client]:
    async for connected in a_client(sim.url):
        yield connected


@BOTH
async def test_an_answer_is_the_same_as_over_our_own_http(sim: GeminiSim, client: genai.Client, stream: bool) -> None:
    prompt = Prompt.of("hi there", system="Be kind.", settings=Settings(thoughts=True, thinking="low"))

    theirs = await asked(Gemini(FLASH, client=client), prompt, stream=stream)
    async with Gemini(FLASH, key="k", base_url=sim.url) as gemini:
        ours = await asked(gemini, prompt, stream=stream)

    assert (theirs.turn, theirs.usage, theirs.finish) == (ours.turn, ours.usage, ours.finish)
    assert theirs.thought_signatures == (sim.sign(FLASH, {"text": "hi there"}),)
    assert [received.status for received in sim.requests] == [200, 200]


async def test_every_setting_arrives(sim: GeminiSim, client: genai.Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "const": "b"}}}
    settings = replace(EVERY_SETTING, answer=schema, tool_choice="auto")
    odd = ToolSpec(name="odd", parameters=schema)
    prompt = Prompt.of("hi", system="Be kind.", tools=[LOOK, odd], settings=settings)

    await Gemini(FLASH, client=client).respond(prompt)
    async with Gemini(FLASH, key="k", base_url=sim.url) as gemini:
        await gemini.respond(prompt)

    theirs, ours = (received.body for received in sim.requests)
    config = theirs["generationConfig"]
    assert config.pop("thinkingConfig") == {"include_thoughts": True, "thinking_level": "LOW"}
    assert ours["generationConfig"].pop("thinkingConfig") == {"includeThoughts": True, "thinkingLevel": "LOW"}
    assert {**config, "topK": int(config["topK"])} == ours["generationConfig"]
    assert (theirs["contents"], theirs["safetySettings"], theirs["toolConfig"]) == (
        ours["contents"],
        ours["safetySettings"],
        ours["toolConfig"],
    )
    assert theirs["systemInstruction"]["parts"] == ours["systemInstruction"]["parts"]
    assert [tool["name"] for tool in theirs["tools"][0]["functionDeclarations"]] == ["look", "odd"]


@BOTH
@pytest.mark.parametrize("name", [FLASH, "gemini-2.5-flash"])
async def test_a_loop_of_tools_with_every_signature_accepted(name: str, stream: bool) -> None:
    history = [user("go on")]
    async with GeminiSim(behaviour=Actor(steps=2, parallel=2)) as sim:
        async for client in a_client(sim.url):
            for _ in range(3):
                history = await step(Gemini(name, client=client), history, stream=stream)

    assert [received.status for received in sim.requests] == [200] * 3
    assert [type(part) for part in history[1].parts] == [ToolCall, ToolCall]


async def test_a_placeholder_for_a_foreign_signature_is_accepted(sim: GeminiSim, client: genai.Client) -> None:
    history = [
        user("go on"),
        model(ToolCall(name="look", id="a", signature="foreign"), ToolCall(name="look", id="b"), by="gpt-5.6"),
        user(ToolResult(name="look", id="a", value=1), ToolResult(name="look", id="b", value=2)),
    ]

    response = await Gemini(FLASH, client=client).respond(Prompt.of(*history))

    assert response.finish.outcome == "complete"
    assert [received.status for received in sim.requests] == [200]


async def test_pictures_arrive_as_the_bytes_they_are(sim: GeminiSim, client: genai.Client) -> None:
    photo = Media(media_kind="photo", unique_id="u", mime="image/png", data=b"\xfb\xff\xfe")
    history = [
        user(photo, "what is it?"),
        model(ToolCall(name="look", id="a", signature="c2lnbg=="), by="gpt-5.6"),
        user(ToolResult(name="look", id="a", value={}, media=(photo,))),
    ]

    await Gemini(FLASH, client=client).respond(Prompt.of(*history))

    contents = sim.requests[0].body["contents"]
    result = contents[2]["parts"][0]["functionResponse"]
    assert sim.requests[0].status == 200
    assert contents[0]["parts"][0]["inlineData"]["data"] in ("+//+", "-__-")
    assert (result["parts"][0].get("inlineData") or result["parts"][0]["inline_data"])["data"] in ("+//+", "-__-")


SIGNED = "EpMBCpABAb4+9vvPm/xy"
ODD_PARTS: list[dict[str, Any]] = [
    {"text": "hm", "thought": True},
    {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": SIGNED},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
    {"inlineData": {"mimeType": "image/png", "data": "+//+"}},
    {"functionCall": {"name": "look", "args": {"a": {"in_snake": [1, None, "ї"]}}}, "thoughtSignature": SIGNED},
    {"text": "", "thoughtSignature": SIGNED},
]


@BOTH
async def test_every_kind_of_part_is_read(stream: bool) -> None:
    chunk = {"candidates": [{"content": {"role": "model", "parts": ODD_PARTS}, "finishReason": "STOP"}]}
    async with GeminiSim(behaviour=Script([chunk])) as sim:
        async for client in a_client(sim.url):
            response = await asked(Gemini(FLASH, client=client), HI, stream=stream)

    call = response.function_calls[0]
    assert response.parts == (
        Thought(text="hm"),
        Opaque(raw=ODD_PARTS[1]),
        Opaque(raw=ODD_PARTS[2]),
        Media(media_kind="photo", unique_id=response.parts[3].unique_id, mime="image/png", data=b"\xfb\xff\xfe"),  # type: ignore[union-attr]
        ToolCall(name="look", args={"a": {"in_snake": [1, None, "ї"]}}, id=call.id, signature=SIGNED),
        Text(text="", signature=SIGNED),
    )


@BOTH
@pytest.mark.parametrize(
    ("fault", "kind", "retry_after"),
    [
        (sims.RateLimited(retry_after=41.5), errors.RateLimited, 41.5),
        (sims.RateLimited(), errors.RateLimited, None),
        (sims.RateLimited(daily=True), errors.QuotaExhausted, None),
        (sims.Internal(), errors.ServiceFault, None),
        (sims.Overloaded(), errors.Overloaded, None),
        (sims.Deadline(), errors.TimedOut, None),
    ],
)
async def test_an_error_of_the_service_is_ours(
    sim: GeminiSim, client: genai.Client, stream: bool, fault: sims.Fault, kind: type[Exception], retry_after: Any
) -> None:
    sim.fail(fault)

    assert await failure(Gemini(FLASH, client=client), stream=stream) == (kind, retry_after)


def test_an_error_of_a_stream_call_that_the_sdk_has_not_read_is_read() -> None:
    """With aiohttp the SDK hands the body on as text, since its content type is that of events."""
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "47s"}
    body = {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [retry]}}
    text = orjson.dumps(body).decode()

    for unread in ({"message": text, "status": "Too Many Requests"}, {"message": f"[{text}]"}, body, [body]):
        with pytest.raises(errors.RateLimited) as caught, sdk.as_our_errors(FLASH, NO_MASK):
            raise ClientError(429, unread)
        assert caught.value.retry_after == 47.0


@BOTH
async def test_a_bad_key_and_an_unknown_model(sim: GeminiSim, client: genai.Client, stream: bool) -> None:
    with pytest.raises(errors.ModelUnknown, match="gemini-9"):
        await asked(Gemini("gemini-9", client=client), HI, stream=stream)
    async for stranger in a_client(sim.url, "bad-key"):
        with pytest.raises(errors.KeyRefused, match="API key not valid"):
            await asked(Gemini(FLASH, client=stranger), HI, stream=stream)


@BOTH
@pytest.mark.parametrize(
    ("fault", "finish"),
    OUTCOMES,
)
async def test_an_answer_without_content_is_an_outcome(
    sim: GeminiSim, client: genai.Client, stream: bool, fault: sims.Fault, finish: Finish
) -> None:
    sim.fail(fault)

    response = await asked(Gemini(FLASH, client=client), HI, stream=stream)

    assert (response.finish, response.turn) == (finish, Turn(role="model", parts=(), model=FLASH))


@pytest.mark.filterwarnings("ignore:.*is not a valid FinishReason")
async def test_a_reason_that_the_sdk_does_not_know_is_kept(sim: GeminiSim, client: genai.Client) -> None:
    sim.fail(sims.Finish("NEWEST"))

    response = await Gemini(FLASH, client=client).respond(HI)

    assert response.finish == Finish(outcome="other", reason="NEWEST")


@pytest.mark.parametrize("fault", [sims.CutStream(after=1), sims.ErrorFrame(after=1)])
async def test_a_stream_that_breaks_leaves_what_arrived(
    sim: GeminiSim, client: genai.Client, fault: sims.Fault
) -> None:
    sim.fail(fault)

    pieces, whole = await streamed(Gemini(FLASH, client=client), Prompt.of("one two three four five six seven eight"))

    assert len(pieces) == 1
    assert (whole.parts, whole.finish.outcome) == (tuple(pieces), "incomplete")


@pytest.mark.parametrize("rest", [b'data: {"candidates": [{"con', b"<html>"])
async def test_a_stream_that_ends_in_half_an_event_leaves_what_arrived(rest: bytes) -> None:
    half = b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"half"}]}}]}\r\n\r\n'
    async with answering(answer(half + rest, headers=EVENTS, framed=False)) as stub:
        async for client in a_client(stub.url):
            pieces, whole = await streamed(Gemini(FLASH, client=client), HI)

    assert (pieces, whole.finish.outcome) == ([Text(text="half")], "incomplete")


@BOTH
async def test_an_answer_that_cannot_be_read_is_unreadable(stream: bool) -> None:
    async with answering(answer(b"<html>")) as stub:
        async for client in a_client(stub.url):
            with pytest.raises(errors.ResponseUnreadable):
                await asked(Gemini(FLASH, client=client), HI, stream=stream)


@BOTH
async def test_a_service_that_hangs_is_left_in_time(sim: GeminiSim, stream: bool) -> None:
    sim.fail(sims.Hang())
    async for client in a_client(sim.url, timeout=50):
        with pytest.raises(errors.TimedOut):
            await asked(Gemini(FLASH, client=client), HI, stream=stream)


@BOTH
async def test_no_server_is_a_lost_connection(stream: bool) -> None:
    async with answering() as stub:
        url = stub.url
    async for client in a_client(url):
        with pytest.raises(errors.ConnectionLost):
            await asked(Gemini(FLASH, client=client), HI, stream=stream)


@BOTH
async def test_a_client_with_another_transport_is_as_good(sim: GeminiSim, stream: bool) -> None:
    sim.fail(sims.RateLimited(retry_after=2))
    async for client in a_client(sim.url, async_client_args={"transport": httpx2.AsyncHTTPTransport()}):
        with pytest.raises(errors.RateLimited) as caught:
            await asked(Gemini(FLASH, client=client), HI, stream=stream)
        assert caught.value.retry_after == 2.0
        assert (await asked(Gemini(FLASH, client=client), HI, stream=stream)).text == "hi"


async def test_a_client_on_the_older_httpx_fails_with_our_errors_too(sim: GeminiSim) -> None:
    httpx = pytest.importorskip("httpx")
    async with httpx.AsyncClient() as older:
        async for client in a_client(sim.url, httpx_async_client=older, timeout=50):
            gemini = Gemini(FLASH, client=client)
            sim.fail(sims.Hang())
            with pytest.raises(errors.TimedOut):
                await gemini.respond(HI)
            sim.fail(sims.CutStream(after=1))
            assert (
                await asked(gemini, Prompt.of("one two three four five six"), stream=True)
            ).finish.outcome == "incomplete"


def test_errors_of_aiohttp_are_lost_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    class ClientError(Exception):
        """As aiohttp's, which is no OSError; the SDK talks through it where it is installed."""

    monkeypatch.setitem(sys.modules, "aiohttp", cast("ModuleType", SimpleNamespace(ClientError=ClientError)))

    with pytest.raises(errors.ConnectionLost), sdk.as_our_errors(FLASH, NO_MASK):
        raise ClientError("payload is not completed")


def test_what_is_no_client_is_an_invalid_value() -> None:
    with pytest.raises(errors.InvalidValue, match=r"client= takes a google\.genai\.Client"):
        Gemini(FLASH, client=object())


@BOTH
async def test_a_key_that_the_service_repeats_in_a_good_answer_is_hidden(stream: bool) -> None:
    key = "AIza-secret/key-0123"
    said = {"content": {"role": "model", "parts": [{"text": f"you sent {key}"}]}, "finishReason": "STOP"}
    body = orjson.dumps({"candidates": [said]})
    sent = answer(b"data: " + body + b"\r\n\r\n", headers=EVENTS) if stream else answer(body, headers=JSON)
    async with answering(sent) as stub:
        async for client in a_client(stub.url, key):
            response = await asked(Gemini(FLASH, client=client), HI, stream=stream)

    assert response.text == "you sent ***"
    assert key not in repr(response)


@BOTH
async def test_a_key_that_the_service_repeats_in_an_error_is_hidden(stream: bool) -> None:
    key = "AIza-secret/key-0123"
    body = b'{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no such key: AIza-secret\\/key-0123"}}'
    async with answering(answer(body, status="400 Bad Request", headers=JSON)) as stub:
        async for client in a_client(stub.url, key):
            with pytest.raises(errors.TertuliaError) as caught:
                await asked(Gemini(FLASH, client=client), HI, stream=stream)
    told = "".join(traceback.format_exception(caught.value))

    assert "no such key: ***" in str(caught.value)
    assert "AIza-secret" not in told

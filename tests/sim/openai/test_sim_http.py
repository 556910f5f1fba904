"""What the simulator puts on the socket: frames, headers and envelopes."""

import json
from typing import Any

import httpx2
import pytest

from tertulia.sim.openai import OpenAISim, RateLimited, Script

HI: Any = [{"role": "user", "content": "hi"}]
KEY = {"authorization": "Bearer key"}
CALLS = {
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"where":"behind you"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "noop", "arguments": "{}"}},
    ],
}


async def post(url: str, body: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        content = body if isinstance(body, bytes) else json.dumps(body)
        return await client.post(url, content=content, headers=KEY if headers is None else headers)


def frames(response: httpx2.Response) -> list[Any]:
    *whole, last = response.text.split("\n\n")
    assert last == ""
    assert whole[-1] == "data: [DONE]"
    return [json.loads(frame.removeprefix("data: ")) for frame in whole[:-1]]


async def test_a_stream_begins_with_the_role_and_ends_with_the_reason() -> None:
    body = {"model": "gpt-4o", "messages": HI, "stream": True}

    async with OpenAISim(behaviour=Script(["Привет, как дела?"])) as sim:
        response = await post(f"{sim.url}/chat/completions", body)

    chunks = frames(response)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Привет, как "},
        {"content": "дела?"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert {(chunk["object"], chunk["id"]) for chunk in chunks} == {("chat.completion.chunk", chunks[0]["id"])}
    assert "usage" not in chunks[0]


async def test_a_streamed_call_gives_its_name_once_and_its_arguments_in_fragments() -> None:
    body = {"model": "gpt-4o", "messages": HI, "stream": True}

    async with OpenAISim(behaviour=Script([CALLS])) as sim:
        chunks = frames(await post(f"{sim.url}/chat/completions", body))

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": None, "refusal": None}
    assert [call for delta in deltas for call in delta.get("tool_calls", ())] == [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"where":"be'}},
        {"index": 0, "function": {"arguments": 'hind you"}'}},
        {"index": 1, "id": "call_2", "type": "function", "function": {"name": "noop", "arguments": ""}},
        {"index": 1, "function": {"arguments": "{}"}},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_usage_comes_in_a_chunk_of_its_own_when_asked_for() -> None:
    body = {"model": "gpt-4o", "messages": HI, "stream": True, "stream_options": {"include_usage": True}}

    async with OpenAISim() as sim:
        *chunks, last = frames(await post(f"{sim.url}/chat/completions", body))

    assert {chunk["usage"] for chunk in chunks} == {None}
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == last["usage"]["prompt_tokens"] + last["usage"]["completion_tokens"]


async def test_scripted_chunks_go_out_as_they_stand() -> None:
    chunks: list[dict[str, Any]] = [{"odd": 1}, {"choices": []}]

    async with OpenAISim(behaviour=Script([chunks])) as sim:
        response = await post(f"{sim.url}/chat/completions", {"model": "gpt-4o", "messages": HI, "stream": True})

    assert frames(response) == chunks


@pytest.mark.parametrize("prefix", ["", "/v1", "/v1beta/openai", "/some/proxy/v1"])
async def test_endpoints_stand_under_any_prefix(prefix: str) -> None:
    async with OpenAISim() as sim:
        root = sim.url.removesuffix("/v1")
        response = await post(f"{root}{prefix}/chat/completions", {"model": "gpt-4o", "messages": HI})

    assert response.status_code == 200


async def test_every_answer_has_an_id_of_its_own_and_the_limits() -> None:
    async with OpenAISim() as sim:
        one, two = [await post(f"{sim.url}/chat/completions", {"model": "gpt-4o", "messages": HI}) for _ in range(2)]

    assert one.headers["x-request-id"].startswith("req_")
    assert one.headers["x-request-id"] != two.headers["x-request-id"]
    assert (one.headers["x-ratelimit-remaining-requests"], two.headers["x-ratelimit-remaining-requests"]) == (
        "9999",
        "9998",
    )


@pytest.mark.parametrize(
    ("path", "body", "status", "rule"),
    [
        ("/chat/completions", b"{", 400, "json"),
        ("/chat/completions", b"", 400, "json"),
        ("/chat/completions", {"messages": HI}, 400, "model"),
        ("/chat/completions", {"model": "gpt-9"}, 404, "model"),
        ("/completions", {}, 404, "url"),
        ("/models", {}, 405, "method"),
        ("/embeddings", [], 400, "input"),
    ],
)
async def test_errors_have_the_envelope(path: str, body: Any, status: int, rule: str) -> None:
    async with OpenAISim() as sim:
        response = await post(sim.url + path, body)

    assert response.status_code == sim.requests[0].status == status
    assert sim.requests[0].rule == rule
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


async def test_a_key_is_needed() -> None:
    async with OpenAISim() as sim:
        response = await post(f"{sim.url}/chat/completions", {"model": "gpt-4o", "messages": HI}, headers={})

    assert response.status_code == 401
    assert response.json()["error"]["message"].startswith("You didn't provide an API key.")


async def test_geminis_own_endpoint_answers_errors_as_a_list() -> None:
    async with OpenAISim(errors_as_list=True) as sim:
        url = f"{sim.url}/chat/completions"
        unknown = await post(url, {"model": "gemini-9", "messages": HI})
        bad = await post(url, {"model": "gemini-3.8-flash", "messages": HI}, {"authorization": "Bearer bad"})
        sim.fail(RateLimited(7))
        limited = await post(url, {"model": "gemini-3.8-flash", "messages": HI})

    assert unknown.json()[0]["error"]["status"] == "NOT_FOUND"
    assert bad.json() == [
        {
            "error": {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
            }
        }
    ]
    assert limited.json()[0]["error"]["details"][0]["retryDelay"] == "7s"
    assert "retry-after" not in limited.headers

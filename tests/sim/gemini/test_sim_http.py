"""The simulator's bytes: frames, envelopes, keys, signatures and faults."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import orjson
import pytest

from tertulia.sim.gemini import (
    BlockedPrompt,
    ContentFilter,
    CutStream,
    Deadline,
    Echo,
    Empty,
    EmptyCandidates,
    ErrorFrame,
    Fault,
    Finish,
    GeminiSim,
    Hang,
    Internal,
    MalformedCall,
    MaxTokens,
    Overloaded,
    RateLimited,
    Script,
    UsageOnlyLast,
)

Wire = dict[str, Any]

FLASH = "gemini-3.8-flash"
HELLO: Wire = {"contents": [{"role": "user", "parts": [{"text": "hello out there, how do you do today?"}]}]}

LEVEL = {"thinkingConfig": {"thinkingLevel": "low"}}


@pytest.fixture
async def sim() -> AsyncIterator[GeminiSim]:
    async with GeminiSim(behaviour=Echo()) as running:
        yield running


@pytest.fixture
async def client(sim: GeminiSim) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=sim.url, headers={"x-goog-api-key": "a-key"}, timeout=10) as http:
        yield http


def generate(model: str = FLASH) -> str:
    return f"/v1beta/models/{model}:generateContent"


def stream(model: str = FLASH) -> str:
    return f"/v1beta/models/{model}:streamGenerateContent"


def events(body: bytes) -> list[Wire]:
    frames = body.split(b"\r\n\r\n")
    assert frames.pop() == b""
    assert all(frame.startswith(b"data: ") for frame in frames)
    return [orjson.loads(frame.removeprefix(b"data: ")) for frame in frames]


async def test_a_stream_is_framed_as_the_service_frames_it(client: httpx2.AsyncClient) -> None:
    answer = await client.post(stream(), params={"alt": "sse"}, json=HELLO)

    chunks = events(answer.content)
    assert answer.headers["content-type"] == "text/event-stream"
    assert b"[DONE]" not in answer.content
    assert len({chunk["responseId"] for chunk in chunks}) == 1
    assert all({"candidates", "usageMetadata", "modelVersion", "responseId"} == set(chunk) for chunk in chunks)
    candidates = [chunk["candidates"][0] for chunk in chunks]
    assert ["finishReason" in one for one in candidates] == [False] * (len(chunks) - 1) + [True]
    last = candidates[-1]["content"]["parts"]
    assert last[0]["text"] == ""
    assert base64.b64decode(last[0]["thoughtSignature"], validate=True)


async def test_a_stream_without_events_is_a_list(client: httpx2.AsyncClient) -> None:
    answer = await client.post(stream(), json=HELLO)
    refused = await client.post(stream(), json={})

    assert answer.headers["content-type"].startswith("application/json")
    assert len(answer.json()) > 1
    assert refused.json()[0]["error"]["code"] == 400


async def test_a_whole_response_leaves_out_what_is_zero(client: httpx2.AsyncClient) -> None:
    answer = (await client.post(generate("gemini-2.0-flash"), json=HELLO)).json()

    del answer["responseId"]
    assert answer == {
        "candidates": [
            {
                "content": {"parts": [{"text": HELLO["contents"][0]["parts"][0]["text"]}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 10,
            "totalTokenCount": 20,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
        },
        "modelVersion": "gemini-2.0-flash",
    }


async def test_keys_are_asked_for_before_anything_else(sim: GeminiSim) -> None:
    async with httpx2.AsyncClient(base_url=sim.url) as http:
        nobody = await http.post(stream("none"), params={"alt": "sse"}, content=b"{")
        wrong = await http.post(generate(), headers={"x-goog-api-key": "bad-key"}, json=HELLO)
        right = await http.post(generate(), params={"key": "good"}, json=HELLO)

    assert [one.status_code for one in (nobody, wrong, right)] == [403, 400, 200]
    assert nobody.headers["content-type"].startswith("application/json")
    assert nobody.json()["error"]["message"].startswith("Method doesn't allow unregistered callers")
    assert wrong.json()["error"]["details"][0]["reason"] == "API_KEY_INVALID"
    assert "key" not in sim.requests[2].query
    assert "x-goog-api-key" not in sim.requests[1].headers


async def test_only_listed_keys_are_good() -> None:
    async with GeminiSim(keys=frozenset({"mine"})) as sim, httpx2.AsyncClient(base_url=sim.url) as http:
        statuses = [
            (await http.post(generate(), headers={"x-goog-api-key": key}, json=HELLO)).status_code
            for key in ("mine", "yours")
        ]

    assert statuses == [200, 400]


async def test_errors_of_streams_are_events_by_name_and_json_by_nature(client: httpx2.AsyncClient) -> None:
    answer = await client.post(stream("none"), params={"alt": "sse"}, json=HELLO)

    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/event-stream")
    message = (
        "models/none is not found for API version v1beta, or is not supported for generateContent."
        " Call ModelService.ListModels to see the list of available models and their supported methods."
    )
    assert answer.json() == {"error": {"code": 404, "message": message, "status": "NOT_FOUND"}}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v2/models", 404),
        ("GET", "/v1/models/none", 404),
        ("POST", "/v1/models/gemini-1.5-pro:generateContent", 404),
        ("POST", "/v1/models/gemini-embedding-001:generateContent", 404),
        ("POST", f"/v1/models/{FLASH}:embedContent", 404),
        ("PUT", "/v1/files/x", 404),
        ("PUT", "/v1/cachedContents/x", 404),
        ("GET", "/v1/models?pageSize=x", 400),
    ],
)
async def test_paths_that_lead_nowhere(client: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    assert (await client.request(method, path, json={})).status_code == status


async def test_any_model_will_do_where_none_are_given() -> None:
    async with GeminiSim(models=None, behaviour=Echo()) as sim, httpx2.AsyncClient(base_url=sim.url) as http:
        new = await http.post(generate("gemini-5-neon"), params={"key": "k"}, json=HELLO)
        old = await http.post(
            generate("gemini-2.5-nano"), params={"key": "k"}, json=HELLO | {"generationConfig": LEVEL}
        )
        listed = await http.get("/v1beta/models", params={"key": "k"})

    assert (new.status_code, new.json()["modelVersion"]) == (200, "gemini-5-neon")
    assert old.json()["error"]["message"] == "Thinking level is not supported for this model."
    assert f"models/{FLASH}" in [model["name"] for model in listed.json()["models"]]


async def test_what_is_not_json_is_refused(client: httpx2.AsyncClient, sim: GeminiSim) -> None:
    answer = await client.post(generate(), content=b"{")

    assert answer.json()["error"]["message"].startswith("Invalid JSON payload received.")
    assert sim.requests[0].rule == "json"


async def test_a_request_to_count_may_be_whole(client: httpx2.AsyncClient) -> None:
    whole = {"generateContentRequest": HELLO | {"system_instruction": {"parts": [{"text": "12345678"}]}}}
    answer = await client.post(f"/v1/models/{FLASH}:countTokens", json=whole)

    assert answer.json() == {"totalTokens": 12, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}]}


async def test_one_text_is_embedded_alone(client: httpx2.AsyncClient) -> None:
    path = "/v1beta/models/gemini-embedding-2:embedContent"
    answer = await client.post(path, json={"content": {"parts": [{"text": "a"}]}, "outputDimensionality": 256})
    nothing = await client.post(path, json={})

    assert len(answer.json()["embedding"]["values"]) == 256
    assert nothing.status_code == 400


async def test_a_cache_needs_one_lifetime_and_a_whole_model_name(client: httpx2.AsyncClient) -> None:
    big = {"contents": [{"role": "user", "parts": [{"text": "x" * 20_000}]}]}
    twice = {"model": f"models/{FLASH}", "ttl": "1s", "expireTime": "2026-11-16T00:00:00Z"} | big
    bare = {"model": FLASH} | big

    answers = [await client.post("/v1beta/cachedContents", json=body) for body in (twice, bare)]

    assert [one.status_code for one in answers] == [400, 400]
    assert "is already set" in answers[0].json()["error"]["message"]


async def test_a_cache_that_ended_in_the_past_is_made_and_gone(client: httpx2.AsyncClient) -> None:
    big = {"contents": [{"role": "user", "parts": [{"text": "x" * 20_000}]}]}
    body = {"model": f"models/{FLASH}", "expireTime": "2020-01-01T00:00:00Z"} | big

    made = await client.post("/v1beta/cachedContents", json=body)
    gone = await client.get(f"/v1beta/{made.json()['name']}")

    assert (made.status_code, gone.status_code) == (200, 403)


def replayed(part: Wire, signature: str) -> Wire:
    result = {"functionResponse": {"name": "look", "response": {}}}
    return {
        "contents": [
            *HELLO["contents"],
            {"role": "model", "parts": [part | {"thoughtSignature": signature}]},
            {"role": "user", "parts": [result]},
        ]
    }


LOOK: Wire = {"functionCall": {"name": "look", "args": {"at": 1}}}
SKIP = "skip_thought_signature_validator"


@pytest.mark.parametrize(
    ("model", "signed_for", "signed_part", "message"),
    [
        (FLASH, FLASH, LOOK, None),
        (FLASH, "gemini-3.7-flash", LOOK, "Invalid thought signature."),
        (FLASH, FLASH, {"functionCall": {"name": "look", "args": {"at": 2}}}, "Corrupted thought signature."),
        ("gemini-2.5-flash", FLASH, LOOK, "Invalid thought signature."),
        ("gemini-2.0-flash", FLASH, LOOK, None),
    ],
)
async def test_signatures_are_recognised(
    sim: GeminiSim, client: httpx2.AsyncClient, model: str, signed_for: str, signed_part: Wire, message: str | None
) -> None:
    signature = sim.sign(signed_for, signed_part)
    for spelling in (signature, signature.replace("+", "-").replace("/", "_").rstrip("=")):
        answer = await client.post(generate(model), json=replayed(LOOK, spelling))

        assert answer.json().get("error", {}).get("message") == message


@pytest.mark.parametrize(
    ("signature", "status"),
    [
        (SKIP, 200),
        (base64.b64encode(SKIP.encode()).decode(), 200),
        ("context_engineering_is_the_way_to_go", 200),
        ("c2ln", 400),
        ("!", 400),
    ],
)
async def test_dummies_pass_for_signatures_and_others_do_not(
    client: httpx2.AsyncClient, signature: str, status: int
) -> None:
    assert (await client.post(generate(), json=replayed(LOOK, signature))).status_code == status


async def test_calls_are_signed_and_named_as_each_generation_does() -> None:
    calls: list[Wire] = [LOOK, LOOK]
    marks = {}
    async with GeminiSim(behaviour=Script([calls] * 4)) as sim, httpx2.AsyncClient(base_url=sim.url) as http:
        for model in (FLASH, "gemini-2.5-flash", "gemini-2.0-flash"):
            answer = (await http.post(generate(model), params={"key": "k"}, json=HELLO)).json()
            parts = answer["candidates"][0]["content"]["parts"]
            marks[model] = [("id" in part["functionCall"], "thoughtSignature" in part) for part in parts]
        streamed = await http.post(stream(), params={"alt": "sse", "key": "k"}, json=HELLO)

    assert marks == {
        FLASH: [(True, True), (True, False)],
        "gemini-2.5-flash": [(False, True), (False, False)],
        "gemini-2.0-flash": [(False, False), (False, False)],
    }
    parts = [chunk["candidates"][0]["content"]["parts"] for chunk in events(streamed.content)]
    assert [[sorted(part) for part in chunk] for chunk in parts] == [
        [["functionCall", "thoughtSignature"]],
        [["functionCall"]],
        [["text"]],
    ]


@pytest.mark.parametrize(
    ("fault", "status", "state"),
    [
        (RateLimited(), 429, "RESOURCE_EXHAUSTED"),
        (Internal(), 500, "INTERNAL"),
        (Overloaded(), 503, "UNAVAILABLE"),
        (Deadline(), 504, "DEADLINE_EXCEEDED"),
    ],
)
async def test_faults_that_refuse(
    sim: GeminiSim, client: httpx2.AsyncClient, fault: Fault, status: int, state: str
) -> None:
    sim.fail(fault, times=2)
    answers = [await client.post(path, json=HELLO) for path in (generate(), f"/v1/models/{FLASH}:countTokens")]
    after = await client.post(generate(), json=HELLO)

    assert [one.status_code for one in (*answers, after)] == [status, status, 200]
    assert answers[0].json()["error"]["status"] == state


async def test_a_limit_says_when_to_come_back(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(RateLimited(retry_after=41.2, daily=True))
    error = (await client.post(generate(), json=HELLO)).json()["error"]

    _, quota, retry = error["details"]
    assert error["message"].endswith(f"model: {FLASH}\nPlease retry in 41.2s.")
    assert quota["violations"][0]["quotaId"] == "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    assert retry == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "41.2s"}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("fault", "candidates"),
    [
        (Empty(), [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}]),
        (EmptyCandidates(), None),
        (MaxTokens(), [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]),
        (BlockedPrompt("SAFETY"), None),
    ],
)
async def test_faults_that_leave_nothing(
    sim: GeminiSim, client: httpx2.AsyncClient, fault: Fault, candidates: list[Wire] | None, streamed: bool
) -> None:
    sim.fail(fault)
    path = stream() if streamed else generate()
    answer = await client.post(path, params={"alt": "sse"}, json=HELLO)

    body = events(answer.content)[0] if streamed else answer.json()
    assert body.get("candidates") == candidates
    assert "candidatesTokenCount" not in body["usageMetadata"]
    assert body.get("promptFeedback") == ({"blockReason": "SAFETY"} if isinstance(fault, BlockedPrompt) else None)


async def test_faults_that_finish_otherwise(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    reasons = []
    for fault in (ContentFilter(), MalformedCall(), Finish("RECITATION")):
        sim.fail(fault)
        body = (await client.post(generate(), json=HELLO)).json()
        reasons.append((body["candidates"][0]["finishReason"], "parts" in body["candidates"][0].get("content", {})))

    assert reasons == [("SAFETY", False), ("MALFORMED_FUNCTION_CALL", False), ("RECITATION", True)]


async def test_a_stream_is_cut_without_an_end(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(CutStream(after=1))
    async with client.stream("POST", stream(), params={"alt": "sse"}, json=HELLO) as answer:
        pieces = answer.aiter_bytes()
        first = await anext(pieces)
        with pytest.raises(httpx2.RemoteProtocolError):
            await anext(pieces)

    assert len(events(first)) == 1


async def test_an_error_in_a_stream(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(ErrorFrame(after=1))
    chunks = events((await client.post(stream(), params={"alt": "sse"}, json=HELLO)).content)

    assert len(chunks) == 2
    assert chunks[1]["error"]["code"] == 500


async def test_a_last_chunk_with_usage_only(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(UsageOnlyLast())
    chunks = events((await client.post(stream(), params={"alt": "sse"}, json=HELLO)).content)

    assert "candidates" not in chunks[-1]
    assert chunks[-2]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"] == chunks[-2]["usageMetadata"]


async def test_faults_of_streams_wait_for_a_stream(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(ErrorFrame())
    whole = await client.post(generate(), json=HELLO)
    streamed = await client.post(stream(), params={"alt": "sse"}, json=HELLO)

    assert whole.status_code == 200
    assert b'"error"' in streamed.content


async def test_faults_come_in_the_order_they_were_asked_for(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(Empty())
    sim.fail(Internal())
    first = await client.post(generate(), json=HELLO)
    second = await client.post(generate(), json=HELLO)

    assert (first.status_code, second.status_code) == (200, 500)


async def test_a_hanging_request_answers_in_the_end(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(Hang(0.01))

    assert (await client.post(generate(), json=HELLO)).status_code == 200


async def test_hanging_ends_when_the_caller_leaves(sim: GeminiSim, client: httpx2.AsyncClient) -> None:
    sim.fail(Hang(60))
    waiting = asyncio.create_task(client.post(generate(), json=HELLO))
    async with asyncio.timeout(5):
        await sim.until(lambda requests: len(requests) == 1)
        waiting.cancel()
        await sim.until(lambda requests: requests[0].status != 0)

    assert sim.requests[0].status == 499


async def test_hanging_ends_when_the_simulator_stops() -> None:
    async with httpx2.AsyncClient(headers={"x-goog-api-key": "k"}) as http:
        async with GeminiSim() as sim:
            sim.fail(Hang(3_600))
            waiting = asyncio.create_task(http.post(sim.url + generate(), json=HELLO))
            await sim.until(lambda requests: len(requests) == 1)
        answer = await asyncio.gather(waiting, return_exceptions=True)

    assert isinstance(answer[0], httpx2.HTTPError) or answer[0].status_code == 500  # type: ignore[union-attr]


async def test_two_simulators_of_one_seed_say_the_same() -> None:
    bodies = []
    for _ in range(2):
        async with GeminiSim(seed=7) as sim, httpx2.AsyncClient(base_url=sim.url) as http:
            bodies.append((await http.post(generate(), params={"key": "k"}, json=HELLO)).content)

    assert bodies[0] == bodies[1]

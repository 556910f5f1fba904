"""The real SDK against the simulator, over the socket."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import httpx2
import pytest
from google import genai
from google.genai import errors, types

from tertulia.sim.gemini import Actor, Clock, Echo, GeminiSim, Model, Script

T = TypeVar("T")
FLASH = "gemini-3.8-flash"
LONG = "The quick brown fox jumps over the lazy dog. " * 500


@asynccontextmanager
async def talking(sim: GeminiSim, **options: Any) -> AsyncIterator[genai.Client]:
    """A client of *sim* whose errors are parsed on streams too."""
    transport = {"async_client_args": {"transport": httpx2.AsyncHTTPTransport()}}
    http = types.HttpOptions(base_url=sim.url, **(transport | options))
    client = genai.Client(api_key="a-key", http_options=http)
    try:
        yield client
    finally:
        await client.aio.aclose()
        client.close()


async def in_thread(call: Callable[[], T]) -> T:
    return await asyncio.to_thread(call)


def several(*contents: Any) -> list[Any]:
    """Contents of different types, as the SDK takes them."""
    return list(contents)


def a_tool(name: str, **properties: Any) -> types.FunctionDeclaration:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.FunctionDeclaration(name=name, description=name, parameters_json_schema=schema)


async def test_generates_in_a_thread_and_in_the_loop() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        here = await client.aio.models.generate_content(model=FLASH, contents="hello there")
        there = await in_thread(lambda: client.models.generate_content(model=FLASH, contents="hello there"))

    assert (here.text, there.text) == ("hello there", "hello there")
    assert here.model_version == FLASH
    assert here.candidates is not None
    assert here.candidates[0].finish_reason == types.FinishReason.STOP
    usage = here.usage_metadata
    assert usage is not None
    assert (usage.prompt_token_count, usage.candidates_token_count) == (3, 3)
    assert usage.total_token_count == 6 + (usage.thoughts_token_count or 0)


async def test_streams_in_a_thread_and_in_the_loop() -> None:
    text = "one two three four five six seven eight nine ten"
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        stream = await client.aio.models.generate_content_stream(model=FLASH, contents=text)
        here = [chunk async for chunk in stream]
        there = await in_thread(lambda: list(client.models.generate_content_stream(model=FLASH, contents=text)))

    for chunks in (here, there):
        assert len(chunks) > 2
        assert "".join(chunk.text or "" for chunk in chunks) == text
        reasons = [chunk.candidates[0].finish_reason for chunk in chunks if chunk.candidates]
        assert reasons == [None] * (len(chunks) - 1) + [types.FinishReason.STOP]


@pytest.mark.parametrize("model", [FLASH, "gemini-3-flash-preview", "gemini-2.5-flash", "gemini-2.0-flash"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_loop_of_parallel_calls_ends_in_words_about_the_results(model: str, stream: bool) -> None:
    declared = [a_tool("look", place={"type": "string"}), a_tool("count", upto={"type": "integer", "minimum": 3})]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
    contents: list[Any] = [types.UserContent("go on")]
    async with GeminiSim(behaviour=Actor(steps=3, parallel=2)) as sim, talking(sim) as client:
        for _ in range(4):
            said = await _said(client, model, contents, config, stream=stream)
            contents.append(said)
            calls = [part.function_call for part in said.parts or [] if part.function_call]
            if not calls:
                break
            assert len(calls) == 2
            contents.append(types.Content(role="user", parts=[_result(call) for call in calls]))

    last = contents[-1]
    assert len(contents) == 8
    assert "look gave" in "".join(part.text or "" for part in last.parts)
    assert [received.status for received in sim.requests] == [200] * 4


async def _said(
    client: genai.Client, model: str, contents: Any, config: types.GenerateContentConfig, *, stream: bool
) -> types.Content:
    if not stream:
        response = await client.aio.models.generate_content(model=model, contents=contents, config=config)
        assert response.candidates
        content = response.candidates[0].content
        assert content is not None
        return content
    chunks = await client.aio.models.generate_content_stream(model=model, contents=contents, config=config)
    parts = [part async for chunk in chunks for part in (chunk.parts or [])]
    return types.Content(role="model", parts=parts)


def _result(call: types.FunctionCall) -> types.Part:
    response = types.FunctionResponse(id=call.id, name=call.name, response={"saw": call.args})
    return types.Part(function_response=response)


async def test_automatic_function_calling_which_leaves_out_ids_works_where_they_are_not_strict() -> None:
    def look(place: str) -> str:
        """Look at a place."""
        return f"{place} is fine"

    config = types.GenerateContentConfig(tools=[look])
    async with GeminiSim(strict=False) as sim, talking(sim) as client:
        chat = client.aio.chats.create(model=FLASH, config=config)
        answer = await chat.send_message("look around")

    assert answer.text is not None
    assert answer.text.startswith("Here is what I found: look gave ")
    assert len(sim.requests) == 2


async def test_forced_forbidden_and_allowed_calls() -> None:
    tools: list[Any] = [types.Tool(function_declarations=[a_tool("a"), a_tool("b")])]
    async with GeminiSim(behaviour=Actor(steps=1, parallel=2)) as sim, talking(sim) as client:
        called = {}
        for mode, allowed in (("NONE", None), ("ANY", ["b"]), ("AUTO", None)):
            calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=allowed)  # type: ignore[arg-type]
            config = types.GenerateContentConfig(
                tools=tools, tool_config=types.ToolConfig(function_calling_config=calling)
            )
            answer = await client.aio.models.generate_content(model=FLASH, contents="go", config=config)
            called[mode] = [call.name for call in answer.function_calls or []]

    assert called == {"NONE": [], "ANY": ["b", "b"], "AUTO": ["a", "b"]}


async def test_json_answers_fit_their_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "mood": {"enum": ["glad", "sad"]},
            "scores": {"type": "array", "items": {"type": "integer", "minimum": 5, "maximum": 6}, "minItems": 2},
        },
        "required": ["mood", "scores"],
    }
    config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=schema)
    async with GeminiSim() as sim, talking(sim) as client:
        answer = await client.aio.models.generate_content(model=FLASH, contents="go", config=config)

    parsed = answer.parsed if isinstance(answer.parsed, dict) else {}
    assert parsed["mood"] in ("glad", "sad")
    assert len(parsed["scores"]) >= 2
    assert set(parsed["scores"]) <= {5, 6}


async def test_thoughts_are_shown_only_on_request() -> None:
    shown = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
    quiet = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(thinking_budget=0, include_thoughts=True))
    async with GeminiSim(behaviour=Echo(), strict=False) as sim, talking(sim) as client:
        thought = await client.aio.models.generate_content(model=FLASH, contents="hm", config=shown)
        unthought = await client.aio.models.generate_content(model="gemini-2.5-flash", contents="hm", config=quiet)

    assert [part.thought for part in thought.parts or []] == [True, None]
    assert [bool(part.thought_signature) for part in thought.parts or []] == [False, True]
    assert [part.thought for part in unthought.parts or []] == [None]
    assert unthought.usage_metadata is not None
    assert unthought.usage_metadata.thoughts_token_count is None


async def test_limits_and_stop_sequences_end_an_answer() -> None:
    model = "gemini-2.0-flash"
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        short = await client.aio.models.generate_content(
            model=model, contents="a b c d e f g h i j", config=types.GenerateContentConfig(max_output_tokens=2)
        )
        stopped = await client.aio.models.generate_content(
            model=model, contents="before END after", config=types.GenerateContentConfig(stop_sequences=["END"])
        )
        eaten = await client.aio.models.generate_content(
            model=FLASH, contents="hi", config=types.GenerateContentConfig(max_output_tokens=3)
        )

    assert (short.text, stopped.text, eaten.text) == ("a b c d ", "before ", None)
    assert short.candidates
    assert short.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    assert eaten.usage_metadata is not None
    assert eaten.usage_metadata.candidates_token_count is None
    assert eaten.usage_metadata.thoughts_token_count == 3


async def test_tokens_are_counted() -> None:
    async with GeminiSim() as sim, talking(sim) as client:
        text = await client.aio.models.count_tokens(model=FLASH, contents="12345678")
        image = types.Part.from_bytes(data=b"png", mime_type="image/png")
        newer = await client.aio.models.count_tokens(model=FLASH, contents=image)
        older = await client.aio.models.count_tokens(model="gemini-2.5-flash", contents=image)

    assert [one.total_tokens for one in (text, newer, older)] == [2, 1120, 258]


async def test_a_prompt_can_be_too_long() -> None:
    async with GeminiSim(models=[Model(name=FLASH, input_limit=10)]) as sim, talking(sim) as client:
        with pytest.raises(errors.ClientError) as raised:
            await client.aio.models.generate_content(model=FLASH, contents="x" * 44)

    expected = "The input token count (11) exceeds the maximum number of tokens allowed (10)."
    assert raised.value.message == expected


async def test_like_texts_have_like_vectors() -> None:
    async with GeminiSim() as sim, talking(sim) as client:
        texts = several("a cat on the mat", "the cats on the mats", "quarterly revenue forecast")
        found = await client.aio.models.embed_content(model="gemini-embedding-001", contents=texts)
        short = await client.aio.models.embed_content(
            model="gemini-embedding-2", contents="a", config=types.EmbedContentConfig(output_dimensionality=128)
        )
        with pytest.raises(errors.ClientError, match="at most 100 requests can be in one batch"):
            await client.aio.models.embed_content(model="gemini-embedding-001", contents=several("a") * 101)

    first, second, third = [one.values or [] for one in found.embeddings or []]
    assert len(first) == 3072
    assert _dot(first, first) == pytest.approx(1)
    assert _dot(first, second) > _dot(first, third) + 0.2
    assert [len(one.values or []) for one in short.embeddings or []] == [128]


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_a_cache_lives_until_it_expires() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        caches = client.aio.caches
        created = await caches.create(
            model=FLASH, config=types.CreateCachedContentConfig(system_instruction=LONG, ttl="300s", display_name="fox")
        )
        name = created.name or ""
        using = types.GenerateContentConfig(cached_content=name)
        answer = await client.aio.models.generate_content(model=FLASH, contents="hi", config=using)
        updated = await caches.update(name=name, config=types.UpdateCachedContentConfig(ttl="600s"))
        listed = [one.name async for one in await caches.list()]
        with pytest.raises(errors.ClientError, match=r"has to be the same\."):
            await client.aio.models.generate_content(model="gemini-3.7-flash", contents="hi", config=using)
        sim.clock.advance(601)
        with pytest.raises(errors.ClientError) as gone:
            await client.aio.models.generate_content(model=FLASH, contents="hi", config=using)
        with pytest.raises(errors.ClientError, match="CachedContent not found"):
            await caches.get(name=name)

    assert created.usage_metadata is not None
    size = created.usage_metadata.total_token_count
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.cached_content_token_count == size
    assert answer.usage_metadata.prompt_token_count == (size or 0) + 1
    assert updated.expire_time == datetime(2026, 11, 15, 12, tzinfo=UTC) + timedelta(seconds=600)
    assert listed == [name]
    assert (gone.value.code, gone.value.status) == (403, "PERMISSION_DENIED")


async def test_caches_too_small_or_not_supported_are_refused() -> None:
    async with GeminiSim() as sim, talking(sim) as client:
        small = types.CreateCachedContentConfig(contents=several(types.UserContent("12345678")))
        with pytest.raises(errors.ClientError, match="total_token_count=2, min_total_token_count=4096"):
            await client.aio.caches.create(model=FLASH, config=small)
        with pytest.raises(errors.ClientError, match="not supported for createCachedContent"):
            await client.aio.caches.create(model="gemini-4-argon", config=small)


async def test_a_cache_can_be_deleted_once() -> None:
    async with GeminiSim() as sim, talking(sim) as client:
        config = types.CreateCachedContentConfig(system_instruction=LONG)
        name = (await client.aio.caches.create(model=FLASH, config=config)).name or ""
        await client.aio.caches.delete(name=name)
        with pytest.raises(errors.ClientError, match="CachedContent not found"):
            await client.aio.caches.delete(name=name)


async def test_a_prompt_seen_before_is_cached_by_itself() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        counts = []
        for instruction, question in ((LONG, "one"), (LONG, "two"), ("short", "one"), ("x" + LONG, "one")):
            config = types.GenerateContentConfig(system_instruction=instruction)
            answer = await client.aio.models.generate_content(model=FLASH, contents=question, config=config)
            assert answer.usage_metadata is not None
            counts.append(answer.usage_metadata.cached_content_token_count)

    assert counts == [None, int(5625 * 0.95), None, None]


async def test_a_file_is_uploaded_used_and_deleted() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        files = client.aio.files
        upload = types.UploadFileConfig(mime_type="text/plain", display_name="notes", name="my-notes")
        file = await files.upload(file=io.BytesIO(b"some notes"), config=upload)
        answer = await client.aio.models.generate_content(model=FLASH, contents=several(file, "read it"))
        listed = [one.name async for one in await files.list()]
        with pytest.raises(errors.ClientError, match="409"):
            await files.upload(file=io.BytesIO(b"some notes"), config=upload)
        await files.delete(name="my-notes")
        with pytest.raises(errors.ClientError) as gone:
            await client.aio.models.generate_content(model=FLASH, contents=several(file, "read it"))

    assert (file.name, file.size_bytes, file.state) == ("files/my-notes", 10, types.FileState.ACTIVE)
    assert answer.text == "read it"
    assert listed == ["files/my-notes"]
    assert gone.value.code == 403
    assert gone.value.message == "You do not have permission to access the File my-notes or it may not exist."


async def test_a_film_is_processed_first_and_expires_after_two_days() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        config = types.UploadFileConfig(mime_type="video/mp4")
        film = await in_thread(lambda: client.files.upload(file=io.BytesIO(b"film"), config=config))
        name = film.name or ""
        with pytest.raises(errors.ClientError, match="is not in an ACTIVE state and usage is not allowed"):
            await client.aio.models.generate_content(model=FLASH, contents=several(film, "watch"))
        sim.clock.advance(5)
        ready = await client.aio.files.get(name=name)
        await client.aio.models.generate_content(model=FLASH, contents=several(film, "watch"))
        sim.clock.advance(48 * 3600)
        with pytest.raises(errors.ClientError, match="do not have permission"):
            await client.aio.files.get(name=name)

    assert (film.state, ready.state) == (types.FileState.PROCESSING, types.FileState.ACTIVE)


async def test_addresses_elsewhere_are_taken() -> None:
    film = types.Part.from_uri(file_uri="https://www.youtube.com/watch?v=x", mime_type="video/mp4")
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        answer = await client.aio.models.generate_content(model=FLASH, contents=several(film, "watch"))

    assert answer.text == "watch"


async def test_models_are_listed_and_aliases_are_not_on_v1() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        listed = [model.name async for model in await client.aio.models.list()]
        shown = await client.aio.models.get(model=FLASH)
        with pytest.raises(errors.ClientError) as raised:
            await client.aio.models.generate_content(model="gemini-flash-latest", contents="hi")
        async with talking(sim, api_version="v1beta") as beta:
            answer = await beta.aio.models.generate_content(model="gemini-flash-latest", contents="hi")

    assert f"models/{FLASH}" in listed
    assert "models/gemini-2.0-flash" in listed
    assert shown.input_token_limit == 1_048_576
    assert raised.value.code == 404
    assert answer.model_version == FLASH


async def test_any_prefix_serves() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, talking(sim) as client:
        options = types.HttpOptions(base_url=f"{sim.url}/sub/path/", api_version="v1alpha")
        config = types.GenerateContentConfig(http_options=options)
        answer = await client.aio.models.generate_content(model=FLASH, contents="hi", config=config)

    assert answer.text == "hi"
    assert sim.requests[0].path == f"/sub/path/v1alpha/models/{FLASH}:generateContent"


async def test_a_refusal_names_its_rule() -> None:
    async with GeminiSim() as sim, talking(sim) as client:
        contents: Any = [types.UserContent("hi"), types.ModelContent("ho")]
        with pytest.raises(errors.ClientError) as raised:
            await client.aio.models.generate_content(model=FLASH, contents=contents)

    assert raised.value.message == "Requests ending with a model turn are not supported."
    assert [(one.status, one.rule) for one in sim.requests] == [(400, "ends-with-model")]


async def test_errors_of_streams_are_parsed_by_the_sdk() -> None:
    async with GeminiSim() as sim, talking(sim) as client:
        stream = await client.aio.models.generate_content_stream(model="gemini-9-none", contents="hi")
        with pytest.raises(errors.ClientError) as raised:
            await anext(stream)

    assert raised.value.status == "NOT_FOUND"


async def test_a_script_is_played_and_ends_clearly() -> None:
    whole = {"candidates": [{"content": {"role": "model", "parts": [{"text": "whole"}]}, "finishReason": "STOP"}]}
    chunks = [{"candidates": [{"content": {"parts": [{"text": letter}]}}]} for letter in "ab"]
    script = Script(["words", [{"functionCall": {"name": "f", "args": {}}}], whole, chunks])
    async with GeminiSim(behaviour=script, clock=Clock()) as sim, talking(sim) as client:
        answers = [await client.aio.models.generate_content(model=FLASH, contents="go") for _ in range(4)]
        with pytest.raises(errors.ClientError, match="script of the simulator has ended: it holds 4 answers"):
            await client.aio.models.generate_content(model=FLASH, contents="go")

    assert [answer.text for answer in answers] == ["words", None, "whole", "ab"]
    called = (answers[1].parts or [])[0]
    assert called.function_call is not None
    assert len(called.function_call.id or "") == 8
    assert called.thought_signature


async def test_the_history_of_a_streamed_chat_is_taken_with_text_and_call_in_contents_of_their_own() -> None:
    call = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Let me see."}]}}]},
        {"candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP"}]},
    ]
    async with GeminiSim(behaviour=Script([chunks, "A cat."])) as sim, talking(sim) as client:
        chat = client.aio.chats.create(model=FLASH)
        async for _ in await chat.send_message_stream("What is it?"):
            pass
        answer = await chat.send_message(types.Part.from_function_response(name="look", response={"seen": "a cat"}))

    assert answer.text == "A cat."
    sent = [(one["role"], next(iter(one["parts"][0]))) for one in sim.requests[1].body["contents"]]
    assert sent == [("user", "text"), ("model", "text"), ("model", "functionCall"), ("user", "functionResponse")]

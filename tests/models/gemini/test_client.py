"""Gemini as a model against the simulator, over a socket: every endpoint, every fault, whole and in pieces."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.gemini.reading import OUTCOMES
from models.stub import answer, answering
from models.talk import BOTH, EVENTS, HI, LOOK, asked, failure, step, streamed
from tertulia import errors
from tertulia.chat import Chat
from tertulia.models import Finish, Gemini, Response, Scripted
from tertulia.models.base import File
from tertulia.models.gemini.cache_values import Cache
from tertulia.models.gemini.decode import decode_file
from tertulia.parts import Media, Part, Text, Thought, ToolCall, ToolResult
from tertulia.sim import gemini as sims
from tertulia.sim.gemini import Actor, Echo, GeminiSim, Script
from tertulia.turns import Layer, Prompt, Settings, Turn, model, user
from tertulia.type_checks import type_fault

FLASH = "gemini-3.8-flash"
LONG = "The quick brown fox jumps over the lazy dog. " * 500
START = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
async def gemini(sim: GeminiSim) -> AsyncIterator[Gemini]:
    async with Gemini(FLASH, key="k", base_url=sim.url) as connected:
        yield connected


def a_chunk(*parts: Any, **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **candidate}], "responseId": "r"}


def frames(*chunks: Any) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % orjson.dumps(chunk) for chunk in chunks)


# One answer


async def test_an_answer(sim: GeminiSim, gemini: Gemini) -> None:
    response = await gemini.respond(Prompt.of("hi there", system="Be kind.", settings=Settings(thoughts=True)))

    [thought, text] = response.parts
    assert isinstance(thought, Thought)
    assert text == Text(text="hi there", signature=sim.sign(FLASH, {"text": "hi there"}))
    assert (response.text, response.finish) == ("hi there", Finish(outcome="complete", reason="STOP"))
    assert response.turn.model == FLASH
    assert response.usage.input > 0
    assert response.usage.total == response.raw["usageMetadata"]["totalTokenCount"]
    [received] = sim.requests
    assert (received.method, received.path, received.query) == ("POST", f"/v1beta/models/{FLASH}:generateContent", {})
    assert received.body == {
        "contents": [{"role": "user", "parts": [{"text": "hi there"}]}],
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    }


async def test_a_stream_comes_in_pieces_and_then_whole(sim: GeminiSim, gemini: Gemini) -> None:
    text = "one two three four five six seven eight nine ten"

    pieces, whole = await streamed(gemini, Prompt.of(text, settings=Settings(thoughts=True)))

    words = [piece.text for piece in pieces if isinstance(piece, Text)]
    assert len(words) > 2
    assert "".join(words) == text
    assert "".join(piece.text for piece in pieces if isinstance(piece, Thought)) == whole.thought_text != ""
    signature = sim.sign(FLASH, {"text": text})
    assert whole.parts[1:] == (Text(text=text), Text(text="", signature=signature))
    assert whole.finish == Finish(outcome="complete", reason="STOP")
    [received] = sim.requests
    assert (received.path, received.query) == (f"/v1beta/models/{FLASH}:streamGenerateContent", {"alt": "sse"})


async def test_whole_and_streamed_answers_say_the_same(gemini: Gemini) -> None:
    whole, stream = [await asked(gemini, HI, stream=stream) for stream in (False, True)]

    assert (whole.text, whole.finish, whole.thought_signatures) == (
        stream.text,
        stream.finish,
        stream.thought_signatures,
    )
    assert whole.usage == stream.usage


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
@pytest.mark.parametrize("prefix", ["", "/sub/path/"])
async def test_the_version_and_the_base_url_are_ours_to_choose(sim: GeminiSim, version: str, prefix: str) -> None:
    async with Gemini(f"models/{FLASH}", key="k", base_url=sim.url + prefix, api_version=version) as gemini:
        await gemini.respond(HI)

    assert sim.requests[0].path == f"{prefix.rstrip('/')}/{version}/models/{FLASH}:generateContent"


async def test_the_base_url_may_come_from_the_environment(sim: GeminiSim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_GEMINI_BASE_URL", sim.url)

    async with Gemini(FLASH, key="k") as gemini:
        assert (await gemini.respond(HI)).text == "hi"


async def test_the_key_goes_in_a_header_and_nowhere_else() -> None:
    async with (
        answering(answer(orjson.dumps(a_chunk({"text": "x"})))) as stub,
        Gemini(FLASH, key="se-cret", base_url=stub.url) as gemini,
    ):
        await gemini.respond(HI)

    [head] = stub.heads
    assert [line for line in head.split("\r\n") if "se-cret" in line] == ["x-goog-api-key: se-cret"]


@pytest.mark.parametrize("name", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
async def test_the_key_may_come_from_the_environment_and_late(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        GeminiSim(behaviour=Echo(), keys=frozenset({"good"})) as sim,
        Gemini(FLASH, base_url=sim.url) as gemini,
    ):
        with pytest.raises(errors.KeyMissing, match="GEMINI_API_KEY"):
            await gemini.respond(HI)
        monkeypatch.setenv(name, "bad")
        with pytest.raises(errors.KeyRefused, match="API key not valid"):
            await gemini.respond(HI)
        monkeypatch.setenv(name, "good")

        assert (await gemini.respond(HI)).text == "hi"


@BOTH
async def test_a_model_nobody_knows(sim: GeminiSim, stream: bool) -> None:
    async with Gemini("gemini-9-nothing", key="k", base_url=sim.url) as gemini:
        with pytest.raises(errors.ModelUnknown, match="Gemini does not know gemini-9-nothing: models/gemini-9-nothing"):
            await asked(gemini, HI, stream=stream)


async def test_no_turn_is_nothing_to_send(sim: GeminiSim, gemini: Gemini) -> None:
    with pytest.raises(errors.NothingToSend):
        await gemini.respond(Prompt.of(system="Be kind."))

    assert sim.requests == []


# A loop of tools


@BOTH
@pytest.mark.parametrize(
    "name",
    [FLASH, "gemini-4-argon", "gemini-3-flash-preview", "gemini-2.5-flash", "gemini-2.0-flash"],
)
async def test_a_loop_of_tools_ends_in_words_and_every_signature_is_accepted(name: str, stream: bool) -> None:
    history = [user("go on")]
    async with (
        GeminiSim(behaviour=Actor(steps=3, parallel=2)) as sim,
        Gemini(name, key="k", base_url=sim.url) as gemini,
    ):
        for _ in range(4):
            history = await step(gemini, history, stream=stream)
            history = msgspec.json.decode(msgspec.json.encode(history), type=list[Turn])
        history = await step(gemini, [*history, user("and then?")], stream=stream)

    assert [received.status for received in sim.requests] == [200] * 5
    assert [len([part for part in turn.parts if isinstance(part, ToolCall)]) for turn in history[1:7:2]] == [2, 2, 2]
    assert "look gave" in "".join(part.text for part in history[7].parts if isinstance(part, Text))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_call_without_an_id_is_paired_by_ours_and_goes_back_without_one(stream: bool) -> None:
    call = {"functionCall": {"name": "look", "args": {"place": "Lviv"}}, "thoughtSignature": "c2ln"}
    async with (
        GeminiSim(strict=False, behaviour=Script([[{"text": "Look. "}, call, call], "done"])) as sim,
        Gemini("gemini-2.5-flash", key="k", base_url=sim.url) as gemini,
    ):
        history = await step(gemini, [user("go on")], stream=stream)
        results = [part for part in history[-1].parts if isinstance(part, ToolResult)]
        history[-1] = user(*reversed(results))
        with pytest.raises(errors.RequestRefused, match="Corrupted thought signature"):
            await step(gemini, history, stream=stream)

    ids = [part.id for part in history[1].parts if isinstance(part, ToolCall)]
    assert len({*ids}) == 2
    assert all(call_id and call_id.startswith("tertulia-") for call_id in ids)
    contents = sim.requests[1].body["contents"]
    assert [part["functionCall"] for part in contents[1]["parts"] if "functionCall" in part] == [
        call["functionCall"],
        call["functionCall"],
    ]
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "look", "response": {"saw": {"place": "Lviv"}}}} for _ in range(2)
    ]


async def test_the_calls_of_a_stream_have_the_ids_of_the_whole() -> None:
    call = {"functionCall": {"name": "look", "args": {}}}
    chunks = [a_chunk({"text": "Look."}), a_chunk(call), a_chunk(call), a_chunk({"text": ""}, finishReason="STOP")]
    async with answering(answer(frames(*chunks), headers=EVENTS)) as stub:
        pieces, whole = await streamed(Gemini(FLASH, key="k", base_url=stub.url), HI)

    assert [piece for piece in pieces if isinstance(piece, ToolCall)] == list(whole.function_calls)
    assert len({call.id for call in whole.function_calls}) == 2


async def test_a_history_from_elsewhere_is_repaired_before_it_is_sent(sim: GeminiSim, gemini: Gemini) -> None:
    history = [
        model(ToolCall(name="look", id="a", signature="foreign"), ToolCall(name="look", id="a"), by="gpt-5.6"),
        user(ToolResult(name="look", id="a", value=1), "and?"),
    ]

    response = await gemini.respond(Prompt.of(*history))

    assert response.text == "and?"
    assert [received.status for received in sim.requests] == [200]


# What goes wrong


@BOTH
@pytest.mark.parametrize(
    ("fault", "kind", "retry_after", "words"),
    [
        (sims.RateLimited(retry_after=41.5), errors.RateLimited, 41.5, r"slow down \(429\): You exceeded"),
        (sims.RateLimited(), errors.RateLimited, None, "slow down"),
        (sims.RateLimited(daily=True), errors.QuotaExhausted, None, "quota for today"),
        (sims.RateLimited(daily=True, retry_after=3.0), errors.RateLimited, 3.0, "slow down"),
        (sims.Internal(), errors.ServiceFault, None, r"failed \(500\)"),
        (sims.Overloaded(), errors.Overloaded, None, r"busy \(503\)"),
        (sims.Deadline(), errors.TimedOut, None, r"too long \(504\)"),
    ],
)
async def test_an_error_of_the_service_is_ours(
    sim: GeminiSim,
    gemini: Gemini,
    stream: bool,
    fault: sims.Fault,
    kind: type[errors.TertuliaError],
    retry_after: float | None,
    words: str,
) -> None:
    sim.fail(fault)

    assert await failure(gemini, stream=stream, words=words) == (kind, retry_after)
    assert (await asked(gemini, HI, stream=stream)).text == "hi"


@BOTH
@pytest.mark.parametrize(
    ("fault", "finish"),
    [
        *OUTCOMES,
        (
            sims.MalformedCall(),
            Finish(
                outcome="malformed",
                reason="MALFORMED_FUNCTION_CALL",
                message="Malformed function call: print(default_api.look(",
            ),
        ),
    ],
)
async def test_an_answer_without_content_is_an_outcome(
    sim: GeminiSim, gemini: Gemini, stream: bool, fault: sims.Fault, finish: Finish
) -> None:
    sim.fail(fault)

    response = await asked(gemini, HI, stream=stream)

    assert (response.finish, response.turn) == (finish, Turn(role="model", parts=(), model=FLASH))
    assert response.usage.input > 0
    assert not response.valid


@BOTH
@pytest.mark.parametrize(
    ("reason", "outcome"), [("MAX_TOKENS", "cut"), ("RECITATION", "blocked"), ("OTHER", "other"), ("NEWEST", "other")]
)
async def test_an_answer_may_finish_otherwise(
    sim: GeminiSim, gemini: Gemini, stream: bool, reason: str, outcome: Any
) -> None:
    sim.fail(sims.Finish(reason))

    response = await asked(gemini, HI, stream=stream)

    assert (response.text, response.finish) == ("hi", Finish(outcome=outcome, reason=reason))


@pytest.mark.parametrize("fault", [sims.CutStream(after=1), sims.ErrorFrame(after=1)])
async def test_a_stream_that_breaks_leaves_what_arrived(sim: GeminiSim, gemini: Gemini, fault: sims.Fault) -> None:
    sim.fail(fault)
    text = "one two three four five six seven eight nine ten"

    pieces, whole = await streamed(gemini, Prompt.of(text))

    [piece] = pieces
    assert isinstance(piece, Text)
    assert text.startswith(piece.text)
    assert whole.turn == Turn(role="model", parts=(piece,), model=FLASH)
    assert (whole.finish.outcome, whole.finish.reason) == ("incomplete", "")
    assert whole.finish.message
    assert not whole.valid


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(sims.CutStream(after=0), errors.ConnectionLost), (sims.ErrorFrame(after=0), errors.ServiceFault)],
)
async def test_a_stream_that_breaks_before_anything_arrived_is_an_error(
    sim: GeminiSim, gemini: Gemini, fault: sims.Fault, kind: type[Exception]
) -> None:
    sim.fail(fault)

    with pytest.raises(kind):
        await streamed(gemini, HI)


async def test_a_last_chunk_with_nothing_but_usage_spoils_nothing(sim: GeminiSim, gemini: Gemini) -> None:
    sim.fail(sims.UsageOnlyLast())

    whole = await asked(gemini, HI, stream=True)

    assert (whole.text, whole.finish) == ("hi", Finish(outcome="complete", reason="STOP"))
    assert len(whole.thought_signatures) == 1


HALF = a_chunk({"text": "half"})
AN_ERROR = {"error": {"code": 429, "message": "Please retry in 3s.", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (b"", "the stream broke off"),
        (b'data: {"candidates": [{"con', "no JSON"),
        (b"<html>gateway timeout</html>", "no JSON"),
        (frames(AN_ERROR), "slow down"),
        (frames({"error": "bare words"}), "bare words"),
        (frames({"error": {"code": "UNKNOWN", "message": "odd"}}), "odd"),
    ],
)
async def test_a_stream_that_ends_too_soon_is_incomplete(rest: bytes, message: str) -> None:
    async with answering(answer(frames(HALF) + rest, headers=EVENTS, framed=False)) as stub:
        pieces, whole = await streamed(Gemini(FLASH, key="k", base_url=stub.url), HI)

    assert pieces == [Text(text="half")]
    assert (whole.turn, whole.finish.outcome) == (model("half", by=FLASH), "incomplete")
    assert message in whole.finish.message


@BOTH
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (orjson.dumps(AN_ERROR), errors.RateLimited),
        (orjson.dumps([AN_ERROR]), errors.RateLimited),
        (b"<html>", errors.ResponseUnreadable),
        (b'"words"', errors.ResponseUnreadable),
        (b"[1]", errors.ResponseUnreadable),
    ],
)
async def test_a_good_status_with_a_bad_body_is_an_error(stream: bool, body: bytes, kind: type[Exception]) -> None:
    async with answering(answer(body)) as stub, Gemini(FLASH, key="k", base_url=stub.url) as gemini:
        with pytest.raises(kind):
            await asked(gemini, HI, stream=stream)


async def test_a_server_that_answers_a_stream_with_json_is_understood() -> None:
    chunks = [a_chunk({"text": "a"}), a_chunk({"text": "b"}, finishReason="STOP")]
    async with (
        answering(answer(orjson.dumps(chunks)), answer(orjson.dumps(chunks[1]))) as stub,
        Gemini(FLASH, key="k", base_url=stub.url) as gemini,
    ):
        texts = [(await asked(gemini, HI, stream=True)).text for _ in range(2)]

    assert texts == ["ab", "b"]


@BOTH
async def test_a_service_that_hangs_is_left_in_time(sim: GeminiSim, stream: bool) -> None:
    sim.fail(sims.Hang())
    async with Gemini(FLASH, key="k", base_url=sim.url, timeout=0.3) as gemini:
        with pytest.raises(errors.TimedOut, match="no answer in time"):
            await asked(gemini, HI, stream=stream)
        await sim.until(lambda received: any(one.status == 499 for one in received))


async def test_a_stream_left_early_is_closed(sim: GeminiSim, gemini: Gemini) -> None:
    stream = gemini.stream(Prompt.of("one two three four five six seven eight nine ten"))
    first = await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]

    assert isinstance(first, Text)
    assert (await gemini.respond(HI)).text == "hi"


async def test_a_request_that_is_cancelled_leaves_the_model_usable(sim: GeminiSim, gemini: Gemini) -> None:
    sim.fail(sims.Hang())
    task = asyncio.create_task(gemini.respond(HI))
    await sim.until(lambda received: len(received) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await gemini.respond(HI)).text == "hi"


async def test_no_server_is_a_lost_connection() -> None:
    async with answering() as stub:
        url = stub.url
    async with Gemini(FLASH, key="k", base_url=url) as gemini:
        with pytest.raises(errors.ConnectionLost):
            await gemini.respond(HI)


# Counting and embedding


async def test_tokens_are_counted_with_instruction_and_tools(sim: GeminiSim, gemini: Gemini) -> None:
    bare = await gemini.count_tokens(HI)
    full = await gemini.count_tokens(Prompt.of("hi", system="Be kind to everyone.", tools=[LOOK]))
    response = await gemini.respond(Prompt.of("hi", system="Be kind to everyone.", tools=[LOOK]))

    assert 0 < bare < full == response.usage.input
    assert sim.requests[0].path == f"/v1beta/models/{FLASH}:countTokens"
    assert sim.requests[0].body == {
        "generateContentRequest": {
            "model": f"models/{FLASH}",
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        }
    }


@pytest.mark.parametrize("name", ["gemini-embedding-001", "gemini-embedding-2"])
async def test_each_text_has_its_vector(sim: GeminiSim, name: str) -> None:
    texts = [f"text {number % 150}" for number in range(250)]
    async with Gemini(name, key="k", base_url=sim.url) as gemini:
        vectors = await gemini.embed(texts, task="RETRIEVAL_DOCUMENT", dimensions=128)
        assert await gemini.embed([]) == []

    assert [len(received.body["requests"]) for received in sim.requests] == [100, 100, 50]
    assert sim.requests[0].path == f"/v1beta/models/{name}:batchEmbedContents"
    assert sim.requests[0].body["requests"][0] == {
        "model": f"models/{name}",
        "content": {"parts": [{"text": "text 0"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 128,
    }
    assert {len(vector) for vector in vectors} == {128}
    assert vectors[0] == vectors[150] != vectors[1]


async def test_a_model_that_does_not_embed_says_so(gemini: Gemini) -> None:
    with pytest.raises(errors.ModelUnknown):
        await gemini.embed(["a"])


# Explicit caches


async def test_a_cache_from_its_making_to_its_end(sim: GeminiSim, gemini: Gemini) -> None:
    made = await gemini.create_cache(Prompt.of(LONG, system="Be kind.", tools=[LOOK]), ttl=300)

    assert made == Cache(name=made.name, model=FLASH, expires_at=START + timedelta(seconds=300), tokens=made.tokens)
    assert made.tokens > 4096
    await gemini.delete_cache(made.name)
    with pytest.raises(errors.CacheGone, match="CachedContent not found"):
        await gemini.delete_cache(made.name)


@BOTH
async def test_a_prompt_with_a_cache_sends_only_what_is_new(sim: GeminiSim, gemini: Gemini, stream: bool) -> None:
    made = await gemini.create_cache(Prompt.of(LONG, system="Be kind.", tools=[LOOK]))
    layers = (Layer(name="static", instruction="Be kind."), Layer(name="trigger", turns=(user("hi"),)))

    response = await asked(gemini, Prompt(layers=layers, tools=(LOOK,), cached=made.name), stream=stream)

    assert sim.requests[-1].body == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "cachedContent": made.name,
    }
    assert response.usage.cached == made.tokens
    assert response.usage.input > response.usage.cached


@BOTH
async def test_a_cache_that_expired_is_gone(sim: GeminiSim, gemini: Gemini, stream: bool) -> None:
    made = await gemini.create_cache(Prompt.of(LONG), ttl=60)
    sim.clock.advance(61)

    with pytest.raises(errors.CacheGone):
        await asked(gemini, Prompt(layers=HI.layers, cached=made.name), stream=stream)


async def test_a_cache_that_is_too_small_is_refused(gemini: Gemini) -> None:
    with pytest.raises(errors.RequestRefused, match="too small"):
        await gemini.create_cache(HI)


# Files


@BOTH
async def test_a_chat_goes_on_after_its_files_are_gone_and_names_them_no_more(
    sim: GeminiSim, gemini: Gemini, stream: bool
) -> None:
    files = [await gemini.upload(b"\x89PNG", mime="image/png") for _ in range(2)]
    photos = [
        Media(media_kind="photo", unique_id=one.name, mime=one.mime, uri=one.uri, rendered_text="A cat.")
        for one in files
    ]
    chat = Chat(gemini)

    async def sent(*message: Part | str) -> Response:
        if not stream:
            response: Response = await chat.send_message([*message])
            return response
        pieces = [piece async for piece in chat.send_message_stream([*message])]
        assert isinstance(pieces[-1], Response)
        return pieces[-1]

    await sent(*photos, "What is it?")
    sim.clock.advance(timedelta(hours=49).total_seconds())
    before = len(sim.requests)
    answers = [await sent(word) for word in ("Still?", "And now?")]

    assert [one.text for one in answers] == ["Still?", "And now?"]
    asked = sim.requests[before:]
    assert [one.status for one in asked] == [403, 403, 200, 200]
    words = [{"text": one.words} for one in photos]
    assert [one.body["contents"][0]["parts"][:2] for one in asked[2:]] == [words, words]
    assert chat.history[0].parts[:2] == tuple(photos)


async def test_a_file_that_is_not_ready_is_not_taken_for_dead() -> None:
    photo = Media(media_kind="photo", unique_id="u", mime="image/png", uri="https://e.test/v1beta/files/slow")
    chat = Chat(Scripted(errors.FileGone("The File slow is not in an ACTIVE state", file="slow", for_now=True), "Yes."))

    with pytest.raises(errors.FileGone):
        await chat.send_message([photo, "What is it?"])
    await chat.send_message([photo, "And now?"])

    assert chat.history[0] == user(photo, "And now?")
    assert isinstance(chat.model, Scripted)
    assert chat.model.prompts[1].turns == (user(photo, "And now?"),)


async def test_a_file_from_its_upload_to_its_end(sim: GeminiSim, gemini: Gemini) -> None:
    file = await gemini.upload(b"\x89PNG", mime="image/png", title="A cat")

    assert file == File(
        name=file.name,
        uri=f"{sim.url}/v1beta/{file.name}",
        mime="image/png",
        state="ACTIVE",
        expires_at=START + timedelta(hours=48),
        size=4,
    )
    assert await gemini.get_file(file.name) == file
    photo = Media(media_kind="photo", unique_id="u", mime=file.mime, uri=file.uri)
    assert (await gemini.respond(Prompt.of(user(photo, "what is it?")))).text == "what is it?"
    await gemini.delete_file(file.name)
    with pytest.raises(errors.FileGone, match="permission to access the File"):
        await gemini.get_file(file.name)
    with pytest.raises(errors.FileGone):
        await gemini.respond(Prompt.of(user(photo)))
    assert sim.requests[0].body == {"file": {"displayName": "A cat"}}
    assert sim.requests[0].headers["x-goog-upload-header-content-length"] == "4"


async def test_a_file_of_the_same_name_type_and_size_is_uploaded_once(sim: GeminiSim, gemini: Gemini) -> None:
    name = "files/p-1"

    files = [await gemini.upload(b"%PDF-1", mime="application/pdf", name=name) for _ in range(2)]

    assert files[0] == files[1]
    assert files[0].name == name
    assert [one.status for one in sim.requests] == [200, 200, 409, 200]


async def test_a_name_that_another_file_has_is_refused(sim: GeminiSim, gemini: Gemini) -> None:
    await gemini.upload(b"%PDF-1", mime="application/pdf", name="files/p-1")
    async with Gemini(FLASH, key="another", base_url=sim.url) as stranger:
        await stranger.upload(b"x", mime="image/png", name="files/p-2")

    sim.files.unreadable = True
    with pytest.raises(errors.FileGone, match=r"files/p-3: the service could not read the file"):
        await gemini.upload(b"y", mime="image/png", name="files/p-3")
    sim.files.unreadable = False

    for data, mime, name in (
        (b"%PDF-12", "application/pdf", "files/p-1"),  # longer
        (b"%PDF-1", "image/png", "files/p-1"),
        (b"x", "image/png", "files/p-2"),  # the stranger's
        (b"y", "image/png", "files/p-3"),  # it failed before
    ):
        with pytest.raises(errors.FileExists, match=f"another file has the name {name}"):
            await gemini.upload(data, mime=mime, name=name)


async def test_a_full_account_takes_no_file(sim: GeminiSim, gemini: Gemini) -> None:
    sim.files.quota = 3
    await gemini.upload(b"12", mime="image/png")

    with pytest.raises(errors.ModelUnavailable):
        await gemini.upload(b"34", mime="image/png")


def test_an_account_is_a_host_and_a_digest_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = [
        Gemini(FLASH, key="secret-key", base_url="https://user:password@e.test:8/x").account,
        Gemini("gemini-2.5-pro", key="secret-key", base_url="https://e.test:8").account,
        Gemini(FLASH, key="other", base_url="https://e.test:8").account,
        Gemini(FLASH, key="secret-key").account,
    ]

    assert accounts[0] == accounts[1]
    assert len(set(accounts)) == 3
    assert all("secret" not in one and "password" not in one and one.startswith("gemini:") for one in accounts)
    assert Gemini(FLASH).account == ""
    monkeypatch.setenv("GEMINI_API_KEY", "secret-key")
    assert Gemini(FLASH).account == accounts[3]


@pytest.mark.parametrize(
    ("size", "commands"),
    [
        (0, ["start", "upload, finalize"]),
        (8 * 1024 * 1024, ["start", "upload, finalize"]),
        (8 * 1024 * 1024 + 1, ["start", "upload", "upload, finalize"]),
    ],
)
async def test_a_file_is_uploaded_in_chunks(sim: GeminiSim, gemini: Gemini, size: int, commands: list[str]) -> None:
    file = await gemini.upload(b"x" * size, mime="application/pdf")

    assert file.state == "ACTIVE"
    assert [received.headers["x-goog-upload-command"] for received in sim.requests] == commands


async def test_a_film_is_waited_for(sim: GeminiSim, gemini: Gemini) -> None:
    uploading = asyncio.create_task(gemini.upload(b"film", mime="video/mp4"))
    await sim.until(lambda received: len(received) == 2 and received[1].status == 200)
    sim.clock.advance(5)

    file = await uploading

    assert (file.state, sim.requests[-1].method) == ("ACTIVE", "GET")


async def test_a_film_is_not_waited_for_too_long(gemini: Gemini) -> None:
    with pytest.raises(errors.TimedOut, match=r"files/\S+ was not ready after 0.05 s"):
        await gemini.upload(b"film", mime="video/mp4", wait=0.05)


FILE = {"name": "files/a", "uri": "https://e.test/v1beta/files/a", "mimeType": "image/png"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>no</html>",
        b"[]",
        b"7",
        b'"file"',
        b"null",
        b'{"file": null}',
        b'{"file": []}',
        *(
            orjson.dumps({"file": {**FILE, **odd}})
            for odd in (
                {"name": None},
                {"name": 5},
                {"name": "files/../models"},
                {"uri": ["x"]},
                {"mimeType": {"a": 1}},
                {"state": 3},
                {"sizeBytes": "many"},
                {"sizeBytes": [1]},
                {"expirationTime": 5},
                {"expirationTime": "soon"},
                {"expirationTime": "99999-01-01T00:00:00Z"},
            )
        ),
        b'{"file": {"name": "files/a", "uri": "x", "sizeBytes": Infinity}}',
    ],
)
async def test_an_odd_answer_to_an_upload_is_unreadable(body: bytes) -> None:
    async with answering(answer(body)) as second:
        started = answer(b"", headers=f"x-goog-upload-url: {second.url}/up\r\n")
        async with answering(started) as first, Gemini(FLASH, key="k", base_url=first.url) as gemini:
            with pytest.raises(errors.ResponseUnreadable):
                await gemini.upload(b"x", mime="image/png")


@pytest.mark.parametrize("status", ["301 Moved", "400 Bad", "404 Not Found", "413 Too Large", "500 Oops", "503 Busy"])
async def test_a_refused_upload_is_our_error(status: str) -> None:
    html = answer(b"<html>no</html>", status=status, headers="location: http://10.0.0.1/\r\n")
    async with answering(html) as first, Gemini(FLASH, key="k", base_url=first.url) as gemini:
        with pytest.raises(errors.TertuliaError):
            await gemini.upload(b"x", mime="image/png")


FIELDS = st.sampled_from(["name", "uri", "mimeType", "state", "sizeBytes", "expirationTime", "x"])
PLAIN = st.none() | st.booleans() | st.floats() | st.text() | st.just("files/a")


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(FIELDS, inner)))
def test_any_json_is_a_file_or_unreadable(body: Any) -> None:
    with suppress(errors.ResponseUnreadable):
        assert type_fault(decode_file(body), File) is None


def test_its_own_files_are_at_its_address_or_at_google() -> None:
    gemini = Gemini(FLASH, key="k", base_url="http://user:pw@proxy.test:8/gemini")

    owned = {uri: gemini.is_own_file(uri) for uri in (
        "http://proxy.test:8/gemini/v1beta/files/a-1",
        "https://generativelanguage.googleapis.com/v1beta/files/a",
        "http://proxy.test:8/v1beta/files/a",
        "http://proxy.test/gemini/v1beta/files/a",
        "http://10.0.0.1/v1beta/files/a",
        "http://proxy.test:8/gemini/v1beta/files/../models",
        "http://proxy.test:8/gemini/v1beta/files/a\n",
    )}  # fmt: skip

    assert [*owned.values()] == [True, True, False, False, False, False, False]


async def test_a_file_the_service_cannot_read_is_gone() -> None:
    failed = {"file": {"name": "files/a", "uri": "https://e.test/files/a", "state": "FAILED"}}
    async with answering(answer(orjson.dumps(failed))) as second:
        started = answer(b"", headers=f"x-goog-upload-url: {second.url}/up\r\n")
        async with answering(started) as first, Gemini(FLASH, key="k", base_url=first.url) as gemini:
            with pytest.raises(errors.FileGone, match="files/a: the service could not read the file"):
                await gemini.upload(b"x", mime="video/mp4")


@pytest.mark.parametrize(
    "ask",
    [
        lambda gemini: gemini.upload(b"x", mime="image/png"),
        lambda gemini: gemini.get_file("files/a"),
        lambda gemini: gemini.create_cache(HI),
        lambda gemini: gemini.embed(["a"]),
    ],
)
@pytest.mark.parametrize("body", [b"{}", b'{"embeddings":[{}]}', b"[]", b'{"name":"x","expireTime":"soon"}'])
async def test_an_answer_without_what_was_asked_for_is_unreadable(ask: Callable[[Gemini], Any], body: bytes) -> None:
    async with answering(answer(body)) as stub, Gemini(FLASH, key="k", base_url=stub.url) as gemini:
        with pytest.raises(errors.ResponseUnreadable):
            await ask(gemini)


async def test_a_key_spread_over_the_chunks_of_a_stream_is_in_none_of_them() -> None:
    chunks = [a_chunk({"text": text}) for text in ("Yours is AIza", "-secret-", "key-1234.", " Is it AI", "?")]
    async with (
        answering(answer(frames(*chunks), headers=EVENTS)) as stub,
        Gemini(FLASH, key="AIza-secret-key-1234", base_url=stub.url) as gemini,
    ):
        pieces, whole = await streamed(gemini, Prompt.of("hi"))

    assert pieces == [Text(text="Yours is "), Text(text="***."), Text(text=" Is it "), Text(text="AI?")]
    assert whole.text == "Yours is ***. Is it AI?"

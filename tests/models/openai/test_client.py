"""OpenAI-compatible services as models against the simulator, over a socket: every fault, whole and in pieces."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson
import pytest
from msgspec.structs import replace
from openai import AsyncOpenAI

from models.stub import answer, answering
from models.talk import BOTH, EVENTS, HI, LOOK, asked, failure, step, streamed
from prompt.scenarios import SCENARIOS, Scenario, message_of
from tertulia import errors
from tertulia.context.values import Context, Persona
from tertulia.formats.single import single
from tertulia.messages import Place
from tertulia.models import Finish, OpenAI, Usage
from tertulia.models.openai.client import AudioForms
from tertulia.models.openai.encode import encode_request
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.sim import openai as sims
from tertulia.sim.openai import Actor, Echo, OpenAISim, Script
from tertulia.turns import Prompt, Settings, Turn, model, user

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GPT = "gpt-4o"
GEMINI = "gemini-3.8-flash"


@pytest.fixture
async def gpt(sim: OpenAISim) -> AsyncIterator[OpenAI]:
    async with OpenAI(GPT, key="k", base_url=sim.url) as connected:
        yield connected


def a_chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def frames(*chunks: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % orjson.dumps(chunk) for chunk in chunks)


# One answer


async def test_an_answer(sim: OpenAISim, gpt: OpenAI) -> None:
    response = await gpt.respond(Prompt.of("hi there", system="Be kind.", settings=Settings(max_tokens=50)))

    assert response.turn == model("hi there", by=GPT)
    assert response.finish == Finish(outcome="complete", reason="stop")
    assert response.usage == Usage(input=response.raw["usage"]["prompt_tokens"], output=2)
    [received] = sim.requests
    assert (received.method, received.path) == ("POST", "/v1/chat/completions")
    assert received.body == {
        "model": GPT,
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi there"}],
        "max_completion_tokens": 50,
    }


async def test_a_stream_comes_in_pieces_and_then_whole(sim: OpenAISim, gpt: OpenAI) -> None:
    text = "one two three four five six seven"

    pieces, whole = await streamed(gpt, Prompt.of(text))

    assert len(pieces) > 2
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == text
    assert (whole.turn, whole.finish) == (model(text, by=GPT), Finish(outcome="complete", reason="stop"))
    assert whole.usage.output > 0
    assert sim.requests[0].body == {
        "model": GPT,
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@BOTH
async def test_thoughts_and_cached_tokens_are_counted(sim: OpenAISim, stream: bool) -> None:
    long = Prompt.of("The quick brown fox jumps over the lazy dog. " * 200)
    async with OpenAI("gpt-5.6", key="k", base_url=sim.url) as gpt:
        first, second = [(await asked(gpt, long, stream=stream)).usage for _ in range(2)]

    assert (first.cached, first.thought, first.input) == (0, 64, second.input)
    assert second.cached >= 1024
    assert second.total == second.input + second.output + 64


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("end", "through", "outcome"),
    [
        (USAGE + DONE, "http", "complete"),
        (USAGE.replace(b"[]", b'[{"index":0,"delta":{}}]') + DONE, "http", "complete"),
        (DONE, "http", "incomplete"),
        (b"", "http", "incomplete"),
        (USAGE + DONE, "sdk", "complete"),
        (b"", "sdk", "incomplete"),
    ],
)
async def test_a_stream_that_says_it_is_done_is_complete_without_a_reason(
    end: bytes, through: str, outcome: str
) -> None:
    body = b'data: {"id":"r","choices":[{"index":0,"delta":{"content":"whole"}}]}\n\n' + end
    async with answering(answer(body, headers="content-type: text/event-stream\r\n")) as server:
        client = AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) if through == "sdk" else None
        async with OpenAI("compatible-1", key="k", base_url=server.url, client=client) as service:
            whole = await asked(service, HI, stream=True)

    assert (whole.text, whole.finish.outcome, whole.valid) == ("whole", outcome, outcome == "complete")


async def test_a_vendor_that_knows_no_stream_options_gets_none(sim: OpenAISim) -> None:
    for vendor in ("mistral", "groq"):
        async with OpenAI("compatible-1", key="k", base_url=sim.url, vendor=vendor) as model:
            await asked(model, HI, stream=True)

    assert ["stream_options" in request.body for request in sim.requests] == [False, True]


async def test_usage_in_the_field_of_groq_counts() -> None:
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": "hi"}}], "x_groq": {"id": "req_1"}},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "x_groq": {"id": "req_1", "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
        },
    ]
    body = answer(frames(*chunks) + DONE, headers="content-type: text/event-stream\r\n")
    async with answering(body) as server, OpenAI("llama-4", key="k", base_url=server.url, vendor="groq") as groq:
        whole = await asked(groq, HI, stream=True)

    assert (whole.text, whole.usage) == ("hi", Usage(input=3, output=2))


FAILED_CALL = {
    "error": {
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "<function=look{place}",
    }
}


@pytest.mark.parametrize("begun", [False, True])
@BOTH
async def test_a_call_that_groq_cannot_read_is_a_malformed_answer(stream: bool, begun: bool) -> None:
    said = b'data: {"choices":[{"index":0,"delta":{"content":"Well"}}]}\n\n' if begun else b""
    whole = answer(orjson.dumps(FAILED_CALL), status="400 Bad Request")
    piecewise = answer(said + frames(FAILED_CALL), headers="content-type: text/event-stream\r\n")
    async with (
        answering(piecewise if stream else whole) as server,
        OpenAI("llama-4", key="k", base_url=server.url, vendor="groq") as groq,
    ):
        found = await asked(groq, HI, stream=stream)

    assert found.finish == Finish(outcome="malformed", reason="tool_use_failed", message="<function=look{place}")
    assert found.text == ("Well" if stream and begun else "")


async def test_settings_that_are_not_sent_as_given_are_told_once(
    sim: OpenAISim, caplog: pytest.LogCaptureFixture
) -> None:
    prompt = Prompt.of("hi", settings=Settings(temperature=0.5, thinking="max"))
    async with OpenAI("gpt-6-sol", key="k", base_url=sim.url) as sol:
        for _ in range(2):
            await sol.respond(prompt)

    where = f"gpt-6-sol at {sim.url}"
    assert caplog.messages == [
        f'{where}: thinking is "xhigh", not "max": the model takes "none", "low", "medium", "high", "xhigh"',
        f'{where}: temperature is left out: the model refuses it while it thinks, thinking="none" allows it',
    ]


async def test_a_model_that_hears_nothing_is_sent_words_for_a_voice(sim: OpenAISim) -> None:
    voice = Media(media_kind="voice", unique_id="v", mime="audio/wav", data=b"RIFF")
    sent = []
    for name in ("gpt-5.6", "openai/gpt-5-mini", "gpt-audio"):
        async with OpenAI(name, key="k", base_url=sim.url, vendor="openai") as gpt:
            body = orjson.loads(encode_request(Prompt.of(user(voice)), model=name, vendor=gpt.vendor))
            sent.append((gpt.takes(voice, "user"), body["messages"][0]["content"]))

    heard = [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]
    assert sent == [(False, "[voice]"), (False, "[voice]"), (True, heard)]


async def test_the_key_goes_in_a_header_and_nowhere_else() -> None:
    body = orjson.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]})
    async with answering(answer(body)) as stub, OpenAI(GPT, key="se-cret", base_url=stub.url) as gpt:
        await gpt.respond(HI)

    assert [line for line in stub.heads[0].split("\r\n") if "se-cret" in line] == ["authorization: Bearer se-cret"]


async def test_the_key_may_come_from_the_environment_and_late(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAISim(behaviour=Echo(), keys=frozenset({"good"})) as sim, OpenAI(GPT, base_url=sim.url) as gpt:
        with pytest.raises(errors.KeyRefused, match="didn't provide an API key"):
            await gpt.respond(HI)
        monkeypatch.setenv("OPENAI_API_KEY", "bad")
        with pytest.raises(errors.KeyRefused, match="Incorrect API key"):
            await gpt.respond(HI)
        monkeypatch.setenv("OPENAI_API_KEY", "good")

        assert (await gpt.respond(HI)).text == "hi"


@BOTH
async def test_a_model_nobody_knows(sim: OpenAISim, stream: bool) -> None:
    async with OpenAI("gpt-9", key="k", base_url=sim.url) as gpt:
        with pytest.raises(errors.ModelUnknown, match="gpt-9"):
            await asked(gpt, HI, stream=stream)


async def test_media_are_accepted_as_they_are_sent() -> None:
    media = [
        Media(media_kind="photo", unique_id="p", mime="image/png", data=b"x"),
        Media(media_kind="audio", unique_id="a", mime="audio/wav", data=b"x"),
        Media(media_kind="document", unique_id="d", mime="application/pdf", data=b"x"),
        Media(media_kind="voice", unique_id="v", mime="audio/ogg", uri="https://e.test/v.ogg"),
    ]

    async with OpenAISim(models=["gpt-audio"]) as sim, OpenAI("gpt-audio", key="k", base_url=sim.url) as gpt:
        response = await gpt.respond(Prompt.of(user(*media, "what is it?")))

    assert response.finish.outcome == "complete"
    [content] = [message["content"] for message in sim.requests[0].body["messages"]]
    assert [part["type"] for part in content] == ["image_url", "input_audio", "file", "text", "text"]


@pytest.mark.parametrize(
    ("data", "uri", "url"),
    [(None, "https://e.test/v.ogg", "https://e.test/v.ogg"), (b"x", None, "data:audio/ogg;base64,eA==")],
)
async def test_audio_goes_by_address_to_servers_that_want_it(data: bytes | None, uri: str | None, url: str) -> None:
    voice = Media(media_kind="voice", unique_id="v", mime="audio/ogg", data=data, uri=uri)
    async with (
        OpenAISim(behaviour=Echo(), audio="both") as sim,
        OpenAI("compatible-1", key="k", base_url=sim.url, vendor="vllm") as vllm,
    ):
        await vllm.respond(Prompt.of(user(voice, "what is it?")))

    assert sim.requests[0].status == 200
    assert sim.requests[0].body["messages"][0]["content"][0] == {
        "type": "audio_url",
        "audio_url": {"url": url},
    }


# Audio to services we know nothing of


def a_scenario(scenario: Scenario) -> Prompt:
    """The prompt that `single` makes of a scenario, told as messages."""
    here = Place(platform="p", id="1", kind="direct")
    target = message_of(scenario, id="m1", place=here, sent_at=NOON)
    persona = Persona(name=scenario.personality, text="You are kind.")
    return single(Context(target=target, now=NOON, place=here, persona=persona))


async def test_all_seventeen_scenarios_arrive_as_they_are_written() -> None:
    ok = answer(orjson.dumps({"id": "r", "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}))
    async with (
        answering(*[ok] * len(SCENARIOS)) as server,
        OpenAI("their-model", key="k", base_url=f"{server.url}/scenarios") as service,
    ):
        for scenario in SCENARIOS:
            await service.respond(a_scenario(scenario))

    instruction = {"role": "system", "content": "You are kind."}
    assert len(SCENARIOS) == 17
    for scenario, body in zip(SCENARIOS, server.bodies, strict=True):
        expected = {"model": "their-model", "messages": [instruction, {"role": "user", "content": scenario.said}]}
        assert orjson.loads(body) == expected, scenario.number


VOICE = Media(media_kind="voice", unique_id="v", uri="https://e.test/v.ogg", rendered_text="A hum.")
HUM = Prompt.of(user("What is it?", VOICE))


HELD = Prompt.of(user("What is it?", replace(VOICE, uri=None, mime="audio/mpeg", data=b"x")))
BOTH_WAYS = Prompt.of(user("What is it?", replace(VOICE, mime="audio/mpeg", data=b"x")))
FORMS: list[tuple[Any, Prompt, list[str]]] = [  # what a service takes, what is asked, and how the sound goes, twice
    ("input_audio", HELD, ["input_audio", "input_audio"]),
    ("audio_url", HELD, ["input_audio", "audio_url", "audio_url"]),
    ("none", HELD, ["input_audio", "audio_url", "text", "text"]),
    ("audio_url", BOTH_WAYS, ["audio_url", "audio_url"]),
    ("input_audio", BOTH_WAYS, ["audio_url", "input_audio", "input_audio"]),
    ("none", BOTH_WAYS, ["audio_url", "input_audio", "text", "text"]),
    ("input_audio", HUM, ["audio_url", "text", "text"]),  # its bytes are not there
]


@BOTH
@pytest.mark.parametrize(("takes", "prompt", "sent"), FORMS)
async def test_an_unknown_service_gets_sounds_in_the_form_that_it_takes_and_that_is_remembered(
    takes: Any, prompt: Prompt, sent: list[str], stream: bool
) -> None:
    forms = AudioForms()
    async with OpenAISim(behaviour=Echo(), audio=takes) as sim:
        for _ in range(2):
            async with OpenAI("compatible-1", key="k", base_url=sim.url, audio_forms=forms) as service:
                assert (await asked(service, prompt, stream=stream)).finish.outcome == "complete"

    assert [one.body["messages"][0]["content"][1]["type"] for one in sim.requests] == sent
    assert [one.status for one in sim.requests if one.status != 200] == [400] * (len(sent) - 2)


async def test_words_for_sounds_are_told_once_by_each_client(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        OpenAISim(behaviour=Echo()) as sim,
        OpenAI("compatible-1", key="k", base_url=f"{sim.url}/told") as service,
    ):
        where = f"compatible-1 at {sim.url}/told"
        for _ in range(2):
            await service.respond(HUM)

    assert caplog.messages == [f"{where}: voice became words: the service takes none"]


async def test_a_service_that_takes_another_form_now_is_asked_again() -> None:
    forms = AudioForms()
    async with OpenAISim(behaviour=Echo(), audio="audio_url") as first:
        async with OpenAI("compatible-1", key="k", base_url=first.url, audio_forms=forms) as service:
            await service.respond(HELD)
        port = int(first.url.split(":")[2].split("/")[0])
    async with (
        OpenAISim(behaviour=Echo(), audio="input_audio", port=port) as second,
        OpenAI("compatible-1", key="k", base_url=second.url, audio_forms=forms) as service,
    ):
        await service.respond(HELD)
        await service.respond(HELD)

    sent = [one.body["messages"][0]["content"][1]["type"] for one in second.requests]
    assert sent == ["audio_url", "input_audio", "input_audio"]


async def test_an_address_that_refused_is_asked_again_after_a_day_or_by_who_knows_nothing_of_it() -> None:
    seconds = 0.0
    shared = AudioForms(now=lambda: seconds)
    async with OpenAISim(behaviour=Echo()) as sim:
        for own, moment in ((shared, 0.0), (shared, 86_399.0), (shared, 86_400.0), (AudioForms(), 86_400.0)):
            seconds = moment
            async with OpenAI("compatible-1", key="k", base_url=sim.url, audio_forms=own) as service:
                await service.respond(HUM)
        shared.clear()
        async with OpenAI("compatible-1", key="k", base_url=sim.url, audio_forms=shared) as service:
            await service.respond(HUM)

    assert [one.status for one in sim.requests] == [400, 200, 200, *[400, 200] * 3]


def test_no_more_addresses_are_remembered_than_agreed() -> None:
    forms = AudioForms(most=2)
    for address in ("a", "b", "a", "c"):
        forms.add(address, "audio_url")

    assert [forms.get(address) for address in ("a", "b", "c")] == ["audio_url", None, "audio_url"]


async def test_a_refusal_for_another_reason_stands_and_nothing_is_learned_from_it() -> None:
    async with (
        OpenAISim(behaviour=Echo(), audio="both") as sim,
        OpenAI("compatible-1", key="k", base_url=f"{sim.url}/other") as service,
    ):
        for _ in range(2):
            sim.fail(sims.ContextTooLong())
            with pytest.raises(errors.ContextTooLong):
                await service.respond(HUM)
        await service.respond(HUM)

    assert [one.status for one in sim.requests] == [400, 400, 200]
    assert sim.requests[2].body["messages"][0]["content"][1]["type"] == "audio_url"


@pytest.mark.parametrize("vendor", ["openai", "groq", "deepseek", "ollama", "gemini", "openrouter"])
async def test_a_service_known_to_refuse_gets_words_at_once_and_one_warning(
    sim: OpenAISim, vendor: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with OpenAI("compatible-1", key="k", base_url=sim.url, vendor=vendor) as service:
        for _ in range(2):
            await service.respond(HUM)

    texts = [{"type": "text", "text": "What is it?"}, {"type": "text", "text": VOICE.words}]
    assert [one.body["messages"][0]["content"] for one in sim.requests] == [texts, texts]
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"compatible-1 at {sim.url}: voice became words: the service takes none"]


# A loop of tools


@BOTH
@pytest.mark.parametrize("name", [GPT, "gpt-5.6", "o3-mini", GEMINI, "gemini-2.5-flash", "compatible-1"])
async def test_a_loop_of_tools_ends_in_words_and_every_signature_is_accepted(name: str, stream: bool) -> None:
    history = [user("go on")]
    async with OpenAISim(behaviour=Actor(steps=2, parallel=2)) as sim, OpenAI(name, key="k", base_url=sim.url) as gpt:
        for _ in range(3):
            history = await step(gpt, history, stream=stream)
            history = msgspec.json.decode(msgspec.json.encode(history), type=list[Turn])

    assert [received.status for received in sim.requests] == [200] * 3
    signed = [bool(part.signature) for part in history[1].parts if isinstance(part, ToolCall)]
    assert signed == [name.startswith("gemini"), False]
    assert "I found" in "".join(part.text for part in history[5].parts if isinstance(part, Text))


async def test_the_calls_of_a_stream_come_whole() -> None:
    call = {"type": "function", "function": {"name": "look", "arguments": '{"place":"a far away place"}'}}
    async with (
        OpenAISim(behaviour=Script([{"content": "Looking.", "tool_calls": [call, call]}])) as sim,
        OpenAI(GPT, key="k", base_url=sim.url) as gpt,
    ):
        pieces, whole = await streamed(gpt, Prompt.of("hi", tools=[LOOK]))

    assert [piece for piece in pieces if isinstance(piece, ToolCall)] == list(whole.function_calls)
    assert [call.args for call in whole.function_calls] == [{"place": "a far away place"}] * 2


async def test_thoughts_are_streamed_and_go_back_in_their_field() -> None:
    chunks = [a_chunk(reasoning="I "), a_chunk(reasoning="think"), a_chunk(content="Yes."), a_chunk("stop")]
    async with (
        OpenAISim(behaviour=Script([chunks, "done"])) as sim,
        OpenAI("compatible-1", key="k", base_url=sim.url) as gpt,
    ):
        pieces, whole = await streamed(gpt, HI)
        await gpt.respond(Prompt.of("hi", whole.turn, "and?"))

    assert pieces == [
        Thought(text="I ", field="reasoning"),
        Thought(text="think", field="reasoning"),
        Text(text="Yes."),
    ]
    assert sim.requests[1].body["messages"][1] == {"role": "assistant", "content": "Yes.", "reasoning": "I think"}


async def test_a_history_from_elsewhere_is_repaired_before_it_is_sent(sim: OpenAISim, gpt: OpenAI) -> None:
    history = [
        model(ToolCall(name="look.it:up", id="a", signature="s"), ToolCall(name="look", id="a"), by=GEMINI),
        user(ToolResult(name="look", id="a", value=1), "and?"),
        model(Opaque(raw={"executableCode": {}}), by=GEMINI),
        user("so?"),
    ]

    response = await gpt.respond(Prompt.of(*history))

    assert response.text == "so?"
    assert [received.status for received in sim.requests] == [200]


# What goes wrong


@BOTH
@pytest.mark.parametrize("as_list", [False, True], ids=["openai", "google"])
@pytest.mark.parametrize(
    ("fault", "kind", "retry_after"),
    [
        (sims.RateLimited(1.5), errors.RateLimited, 1.5),
        (sims.Internal(), errors.ServiceFault, None),
        (sims.Overloaded(), errors.Overloaded, None),
        (sims.ContextTooLong(), errors.ContextTooLong, None),
    ],
)
async def test_an_error_of_the_service_is_ours(
    stream: bool, as_list: bool, fault: sims.Fault, kind: type[Exception], retry_after: float | None
) -> None:
    async with (
        OpenAISim(behaviour=Echo(), errors_as_list=as_list) as sim,
        OpenAI(GPT, key="k", base_url=sim.url) as gpt,
    ):
        sim.fail(fault)

        assert await failure(gpt, stream=stream) == (kind, retry_after)
        assert (await asked(gpt, HI, stream=stream)).text == "hi"


@BOTH
async def test_an_account_without_money_is_the_operators_to_fill(sim: OpenAISim, gpt: OpenAI, stream: bool) -> None:
    sim.fail(sims.Quota())

    with pytest.raises(errors.QuotaExhausted, match="exceeded your current quota"):
        await asked(gpt, HI, stream=stream)


@BOTH
@pytest.mark.parametrize(
    ("fault", "parts", "finish"),
    [
        (sims.Empty(), (), Finish(outcome="empty", reason="stop")),
        (sims.Empty(""), (), Finish(outcome="empty", reason="stop")),
        (sims.ContentFilter(), (), Finish(outcome="blocked", reason="content_filter")),
        (sims.MaxTokens(), (), Finish(outcome="cut", reason="length")),
        (
            sims.ModelRefusal("I can't."),
            (Opaque(raw={"refusal": "I can't."}),),
            Finish(outcome="blocked", reason="refusal", message="I can't."),
        ),
    ],
)
async def test_an_answer_without_content_is_an_outcome(
    sim: OpenAISim, gpt: OpenAI, stream: bool, fault: sims.Fault, parts: tuple[Part, ...], finish: Finish
) -> None:
    sim.fail(fault)

    response = await asked(gpt, HI, stream=stream)

    assert (response.turn, response.finish) == (Turn(role="model", parts=parts, model=GPT), finish)


@BOTH
async def test_arguments_that_are_no_json_are_kept_and_the_talk_goes_on(
    sim: OpenAISim, gpt: OpenAI, stream: bool
) -> None:
    sim.fail(sims.MalformedCall('{"query": "unfinis'))

    response = await asked(gpt, Prompt.of("hi", tools=[LOOK]), stream=stream)
    [call] = response.function_calls
    result = ToolResult(name=call.name, id=call.id, value="the arguments were no JSON", failed=True)
    after = await asked(gpt, Prompt.of("hi", response.turn, user(result), tools=[LOOK]), stream=stream)

    assert (call.name, call.args, call.broken) == ("look", {}, '{"query": "unfinis')
    assert after.finish.outcome == "complete"
    assert [received.status for received in sim.requests] == [200, 200]


@pytest.mark.parametrize("fault", [sims.CutStream(after=2), sims.ErrorFrame(after=2)])
async def test_a_stream_that_breaks_leaves_what_arrived(sim: OpenAISim, gpt: OpenAI, fault: sims.Fault) -> None:
    sim.fail(fault)

    pieces, whole = await streamed(gpt, Prompt.of("one two three four five"))

    assert pieces == [Text(text="one two thre")]
    assert (whole.turn, whole.finish.outcome) == (model("one two thre", by=GPT), "incomplete")
    assert whole.finish.message
    assert not whole.valid


@BOTH
@pytest.mark.parametrize(
    ("fault", "kind"),
    [(sims.CutStream(after=0), errors.ConnectionLost), (sims.ErrorFrame(after=0), errors.ServiceFault)],
)
async def test_an_answer_that_breaks_before_anything_arrived_is_an_error(
    sim: OpenAISim, gpt: OpenAI, stream: bool, fault: sims.Fault, kind: type[Exception]
) -> None:
    sim.fail(fault)

    with pytest.raises(kind):
        await asked(gpt, HI, stream=stream)


AN_ERROR = {"error": {"message": "slow down", "code": 429}}


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (b"", "the stream broke off"),
        (b"data: [DONE]\n\n", "the stream broke off"),
        (b'data: {"choi', "no JSON"),
        (frames(AN_ERROR), "slow down"),
        (frames({"error": "bare words"}), "bare words"),
        (frames({"error": {"message": "filtered", "code": 400}}), "filtered"),
    ],
)
async def test_a_stream_that_ends_too_soon_is_incomplete(rest: bytes, message: str) -> None:
    body = frames(a_chunk(content="half")) + rest
    async with (
        answering(answer(body, headers=EVENTS, framed=False)) as stub,
        OpenAI(GPT, key="k", base_url=stub.url) as gpt,
    ):
        pieces, whole = await streamed(gpt, HI)

    assert pieces == [Text(text="half")]
    assert (whole.turn, whole.finish.outcome) == (model("half", by=GPT), "incomplete")
    assert message in whole.finish.message


async def test_half_a_call_is_kept_as_broken() -> None:
    piece = {"index": 0, "id": "x", "function": {"name": "look", "arguments": '{"pla'}}
    body = frames(a_chunk(tool_calls=[piece]))
    async with answering(answer(body, headers=EVENTS)) as stub, OpenAI(GPT, key="k", base_url=stub.url) as gpt:
        _, whole = await streamed(gpt, HI)

    [call] = whole.function_calls
    assert (call.name, call.args, call.broken, whole.finish.outcome) == ("look", {}, '{"pla', "incomplete")


@BOTH
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (orjson.dumps(AN_ERROR), errors.RateLimited),
        (orjson.dumps({"error": "bare words"}), errors.ServiceFault),
        (b"<html>", errors.ResponseUnreadable),
        (b'"words"', errors.ResponseUnreadable),
        (b"[1]", errors.ResponseUnreadable),
    ],
)
async def test_a_good_status_with_a_bad_body_is_an_error(stream: bool, body: bytes, kind: type[Exception]) -> None:
    async with answering(answer(body)) as stub, OpenAI(GPT, key="k", base_url=stub.url) as gpt:
        with pytest.raises(kind):
            await asked(gpt, HI, stream=stream)


@BOTH
async def test_a_service_that_hangs_is_left_in_time(sim: OpenAISim, stream: bool) -> None:
    sim.fail(sims.Hang())
    async with OpenAI(GPT, key="k", base_url=sim.url, timeout=0.05) as gpt:
        with pytest.raises(errors.TimedOut, match="no answer in time"):
            await asked(gpt, HI, stream=stream)


async def test_a_request_that_is_cancelled_leaves_the_model_usable(sim: OpenAISim, gpt: OpenAI) -> None:
    sim.fail(sims.Hang())
    task = asyncio.create_task(gpt.respond(HI))
    await sim.until(bool)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await gpt.respond(HI)).text == "hi"


async def test_a_stream_left_early_is_closed(gpt: OpenAI) -> None:
    stream = gpt.stream(Prompt.of("one two three four five six seven eight nine ten"))
    first = await anext(stream)
    await stream.aclose()

    assert isinstance(first, Text)
    assert (await gpt.respond(HI)).text == "hi"


async def test_a_key_spread_over_the_deltas_of_a_stream_is_in_none_of_them() -> None:
    deltas = [
        a_chunk(reasoning="They sent sk-se"), a_chunk(reasoning="cret-key-1234; "), a_chunk(reasoning="sk"),
        a_chunk(content="Yours is sk-"), a_chunk(content="secret-key"), a_chunk(content="-1234, not sk-sec"),
        a_chunk("stop"),
    ]  # fmt: skip
    async with (
        answering(answer(frames(*deltas), headers=EVENTS)) as stub,
        OpenAI("compatible-1", key="sk-secret-key-1234", base_url=stub.url) as gpt,
    ):
        pieces, whole = await streamed(gpt, Prompt.of("hi"))

    assert pieces == [
        Thought(text="They sent ", field="reasoning"),
        Thought(text="***; ", field="reasoning"),
        Thought(text="sk", field="reasoning"),
        Text(text="Yours is "),
        Text(text="***, not "),
        Text(text="sk-sec"),
    ]
    assert whole.text == "Yours is ***, not sk-sec"
    assert "secret" not in str(whole.turn)

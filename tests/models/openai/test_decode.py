"""What OpenAI-compatible services answer, as our values."""

from typing import Any

import msgspec
import orjson
import pytest

from tertulia import errors
from tertulia.models.base import Finish, Response, Usage
from tertulia.models.openai.decode import decode_error, decode_response, decode_turn, merge_chunks
from tertulia.models.openai.encode import encode_turn
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn, user

MODEL = "compatible-1"
NOTED = {"type": "text", "text": "42", "annotations": [{"type": "url_citation"}]}


def a_body(finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}


def a_chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def a_call(call_id: str = "call_1", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}, **more}


def piece(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    return {**({} if index is None else {"index": index}), **fields}


def parts_in(**message: Any) -> tuple[Part, ...]:
    return decode_response(a_body(**message), model=MODEL).parts


def merged(*chunks: dict[str, Any]) -> Response:
    return decode_response(merge_chunks(chunks), model=MODEL)


def test_a_whole_response() -> None:
    usage = {
        "prompt_tokens": 1100,
        "completion_tokens": 50,
        "total_tokens": 1150,
        "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    body = {**a_body(content="5040", refusal=None, annotations=[]), "usage": usage}

    assert decode_response(body, model=MODEL) == Response(
        turn=Turn(role="model", parts=(Text(text="5040"),), model=MODEL),
        usage=Usage(input=1100, cached=1024, output=10, thought=40),
        finish=Finish(outcome="complete", reason="stop"),
        raw=body,
    )


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ({"content": "hi"}, (Text(text="hi"),)),
        ({"content": ""}, ()),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, (Text(text="a"), Text(text="b"))),
        ({"content": {"a": 1}}, (Text(text='{"a":1}'),)),
        (
            {"content": "hi", "reasoning_content": "hm"},
            (Thought(text="hm", field="reasoning_content"), Text(text="hi")),
        ),
        ({"content": "hi", "reasoning": "hm"}, (Thought(text="hm", field="reasoning"), Text(text="hi"))),
        (
            {"content": "hi", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text"}]},
            (
                Thought(text="hm", field="reasoning"),
                Text(text="hi"),
                Opaque(raw={"reasoning_details": [{"type": "reasoning.text"}]}),
            ),
        ),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "a"},
                ]
            },
            (Opaque(raw={"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}), Text(text="a")),
        ),
        ({"tool_calls": [a_call(arguments='{"a":"ї"}')]}, (ToolCall(name="look", args={"a": "ї"}, id="call_1"),)),
        (
            {"tool_calls": [a_call(arguments='{"a": 1}')]},
            (ToolCall(name="look", args={"a": 1}, id="call_1", raw=a_call(arguments='{"a": 1}')),),
        ),
        (
            {"tool_calls": [a_call(arguments='{"a": ')]},
            (ToolCall(name="look", id="call_1", broken='{"a": ', raw=a_call(arguments='{"a": ')),),
        ),
        (
            {"tool_calls": [a_call(arguments="[1]")]},
            (ToolCall(name="look", id="call_1", broken="[1]", raw=a_call(arguments="[1]")),),
        ),
        (
            {"tool_calls": [a_call(arguments="")]},
            (ToolCall(name="look", id="call_1", raw=a_call(arguments="")),),
        ),
        (
            {"tool_calls": [a_call(extra_content={"google": {"thought_signature": "a+/b-_="}}), a_call("call_2")]},
            (ToolCall(name="look", id="call_1", signature="a+/b-_="), ToolCall(name="look", id="call_2")),
        ),
        (
            {"tool_calls": [{"id": "q", "type": "custom", "custom": {"name": "x", "input": "y"}}]},
            (Opaque(raw={"tool_call": {"id": "q", "type": "custom", "custom": {"name": "x", "input": "y"}}}),),
        ),
        ({"refusal": "I can't."}, (Opaque(raw={"refusal": "I can't."}),)),
        ({"content": [NOTED]}, (Text(text="42", raw=NOTED),)),
        ({"content": [{"text": "42"}, "!"]}, (Text(text="42"), Text(text="!"))),
        (
            {"content": [{"type": "output_text", "text": "42"}]},
            (Text(text="42", raw={"type": "output_text", "text": "42"}),),
        ),
        ({"content": [{"type": ["text"], "text": "a"}]}, (Opaque(raw={"type": ["text"], "text": "a"}),)),
        ({}, ()),
    ],
)
def test_a_message(message: Any, parts: tuple[Part, ...]) -> None:
    assert parts_in(**message) == parts


def test_the_same_thoughts_in_two_fields_are_told_once_and_go_back_in_both() -> None:
    message = {"content": "hi", "reasoning_content": "hm", "reasoning": "hm"}

    response = decode_response(a_body(**message), model=MODEL)

    assert response.thought_text == "hm"
    assert orjson.loads(encode_turn(response.turn, model=MODEL)) == [{"role": "assistant", **message}]


def test_a_call_without_an_id_gets_ours() -> None:
    calls = decode_response(a_body(tool_calls=[a_call(""), a_call("")]), model=MODEL).function_calls

    ids = [str(call.id) for call in calls]
    assert len({*ids}) == 2
    assert all(call_id.startswith("tertulia-") for call_id in ids)


MESSAGES: list[dict[str, Any]] = [
    {"content": "hi"},
    {"content": None, "tool_calls": [a_call(arguments='{"place": "Lviv",\n "n": 1.0}')]},
    {"content": "Both.", "tool_calls": [a_call(arguments='{"a":1}'), a_call("call_2", new=True)]},
    {"content": None, "tool_calls": [a_call(extra_content={"google": {"thought_signature": "a+/b-_=" * 2000}})]},
    {"content": "hi", "reasoning_content": "hm"},
    {"content": "hi", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]},
    {"content": "hi", "hologram": {"depth": 3}},
    {"content": "", "tool_calls": [{"id": "q", "type": "custom", "custom": {"name": "x", "input": "y"}}]},
    {"content": "", "refusal": "I can't."},
]


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_recorded_message_goes_back_as_it_came(message: dict[str, Any]) -> None:
    kept = msgspec.json.encode(decode_response(a_body(**message), model=MODEL))
    turn = msgspec.json.decode(kept, type=Response).turn

    assert orjson.loads(encode_turn(turn, model=MODEL)) == [{"role": "assistant", **message}]


@pytest.mark.parametrize(
    ("message", "turn"),
    [
        ({"role": "user", "content": "hi"}, user("hi")),
        ({"role": "developer", "content": "hi"}, user("hi")),
        ({"role": "assistant", "content": "hi", "name": None}, Turn(role="model", parts=(Text(text="hi"),))),
        ({"role": "tool", "tool_call_id": "c", "content": "ok"}, user(ToolResult(name="", id="c", value="ok"))),
        (
            {"role": "tool", "tool_call_id": "c", "name": "look", "content": [{"type": "text", "text": "ok"}]},
            user(ToolResult(name="look", id="c", value="ok")),
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}},
                    {"type": "image_url", "image_url": {"url": "https://e.test/p.webp?x=1"}},
                    {"type": "image_url", "image_url": {"url": "https://e.test/p", "detail": "low"}},
                    {"type": "input_audio", "input_audio": {"data": "eA==", "format": "mp3"}},
                    {"type": "audio_url", "audio_url": {"url": "https://e.test/a"}},
                    {"type": "file", "file": {"file_id": "f"}},
                ],
            },
            user(
                Media(media_kind="photo", unique_id="2d711642b726b04401627ca9fbac32f5", mime="image/png", data=b"x"),
                Media(
                    media_kind="photo",
                    unique_id="https://e.test/p.webp?x=1",
                    mime="image/webp",
                    uri="https://e.test/p.webp?x=1",
                ),
                Media(
                    media_kind="photo",
                    unique_id="https://e.test/p",
                    mime="image/jpeg",
                    uri="https://e.test/p",
                    raw={"type": "image_url", "image_url": {"url": "https://e.test/p", "detail": "low"}},
                ),
                Media(media_kind="audio", unique_id="2d711642b726b04401627ca9fbac32f5", mime="audio/mpeg", data=b"x"),
                Media(media_kind="audio", unique_id="https://e.test/a", uri="https://e.test/a"),
                Opaque(raw={"type": "file", "file": {"file_id": "f"}}),
            ),
        ),
    ],
)
def test_a_message_is_a_turn(message: Any, turn: Turn) -> None:
    assert decode_turn(message) == turn


def test_a_stream_becomes_one_turn() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}

    response = merged(
        {**a_chunk(role="assistant", content="", refusal=None), "usage": None},
        a_chunk(reasoning_content="I "),
        a_chunk(reasoning_content="think"),
        a_chunk(content="Hel"),
        a_chunk(content="lo"),
        a_chunk(tool_calls=[piece(0, id="call_1", type="function", function={"name": "look", "arguments": ""})]),
        a_chunk(tool_calls=[piece(0, function={"arguments": '{"a"'})]),
        a_chunk(tool_calls=[piece(1, id="call_2", type="function", function={"name": "look", "arguments": "{}"})]),
        a_chunk(tool_calls=[piece(0, function={"arguments": ":1}"}), piece(1, function={"arguments": ""})]),
        a_chunk("tool_calls"),
        {"id": "chatcmpl-1", "choices": [], "usage": usage},
    )

    assert response.turn == Turn(
        role="model",
        parts=(
            Thought(text="I think", field="reasoning_content"),
            Text(text="Hello"),
            ToolCall(name="look", args={"a": 1}, id="call_1"),
            ToolCall(name="look", id="call_2"),
        ),
        model=MODEL,
    )
    assert (response.finish, response.usage) == (
        Finish(outcome="complete", reason="tool_calls"),
        Usage(input=5, output=9),
    )


def test_parts_and_text_in_one_stream_are_both_kept() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    chunks = [
        a_chunk(content=[thinking]),
        a_chunk(content="Hel"),
        a_chunk(content=[NOTED]),
        a_chunk("stop", content="!"),
    ]

    assert merged(*chunks).parts == (
        Opaque(raw=thinking),
        Text(text="Hel"),
        Text(text="42", raw=NOTED),
        Text(text="!"),
    )


@pytest.mark.parametrize(
    "message", [{"refusal": "No."}, {"content": [{"type": "refusal", "refusal": "No.", "new": 1}]}]
)
def test_a_refusal_is_no_answer_wherever_it_stands(message: dict[str, Any]) -> None:
    refused = Finish(outcome="blocked", reason="refusal", message="No.")

    assert decode_response(a_body(**message), model=MODEL).finish == refused
    assert merged(a_chunk(**message), a_chunk("stop")).finish == refused


WHOLE = {"name": "look", "arguments": '{"a":1}'}
TWO = (ToolCall(name="look", args={"a": 1}, id="x"), ToolCall(name="look", args={"a": 1}, id="y"))


@pytest.mark.parametrize(
    "chunks",
    [
        [[piece(0, id="x", function=WHOLE)], [piece(1, id="y", function=WHOLE)]],
        [[piece(0, id="x", function=WHOLE), piece(1, id="y", function=WHOLE)]],
        [[piece(None, id="x", function=WHOLE)], [piece(None, id="y", function=WHOLE)]],
        [[piece(0, id="x", function=WHOLE)], [piece(0, id="y", function=WHOLE)]],
        [[piece(0, id="x", function=WHOLE), piece(0, id="y", function=WHOLE)]],
        [
            [piece(0, id="x", function={"name": "look", "arguments": '{"a"'})],
            [piece(0, id="another", function={"name": None, "arguments": ":1}"})],
            [piece(1, id="y", function={"name": "look"})],
            [piece(1, function={"arguments": '{"a":1}'})],
        ],
        [
            [piece(None, id="x", function={"name": "look", "arguments": '{"a"'})],
            [piece(None, function={"arguments": ":1}"})],
            [piece(None, id="y", function={"name": "look", "arguments": '{"a":'})],
            [piece(None, id="y", function={"arguments": "1}"})],
        ],
    ],
    ids=["by index", "in one", "without index", "all at index 0", "at index 0 in one", "ids that change", "by id"],
)
def test_parallel_calls_are_told_apart_however_they_are_streamed(chunks: list[Any]) -> None:
    response = merged(*(a_chunk(tool_calls=calls) for calls in chunks), a_chunk("tool_calls"))

    calls = response.function_calls
    assert [(call.name, call.args, call.broken) for call in calls] == [("look", {"a": 1}, None)] * 2
    assert calls[1].id == "y"


def test_a_signature_in_a_stream_is_kept() -> None:
    extra = {"google": {"thought_signature": "a+/b-_="}}

    response = merged(
        a_chunk(tool_calls=[piece(0, id="x", type="function", function=WHOLE, extra_content=extra)]),
        a_chunk("tool_calls"),
    )

    assert response.parts == (ToolCall(name="look", args={"a": 1}, id="x", signature="a+/b-_="),)


@pytest.mark.parametrize(
    "last",
    [
        {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 5}},
        {"id": "chatcmpl-1", "choices": None},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        {"choices": [{"index": 1, "delta": {"content": "another answer"}, "finish_reason": "length"}]},
        {},
    ],
)
def test_a_last_chunk_without_content_spoils_nothing(last: dict[str, Any]) -> None:
    response = merged(a_chunk(content="hi"), a_chunk("stop"), last)

    assert (response.parts, response.finish) == ((Text(text="hi"),), Finish(outcome="complete", reason="stop"))


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("stop", "complete"),
        ("tool_calls", "complete"),
        ("function_call", "complete"),
        ("eos", "complete"),
        ("length", "cut"),
        ("model_length", "cut"),
        ("content_filter", "blocked"),
        ("error", "malformed"),
        ("something_new", "other"),
    ],
)
def test_every_reason_to_finish_is_an_outcome(reason: str, outcome: Any) -> None:
    response = decode_response(a_body(reason, content="x"), model=MODEL)

    assert response.finish == Finish(outcome=outcome, reason=reason)


@pytest.mark.parametrize(
    ("body", "finish"),
    [
        (a_body(), Finish(outcome="empty", reason="stop")),
        (a_body(content=""), Finish(outcome="empty", reason="stop")),
        (a_body("length", content=""), Finish(outcome="cut", reason="length")),
        (a_body("content_filter"), Finish(outcome="blocked", reason="content_filter")),
        (a_body(refusal="I can't."), Finish(outcome="blocked", reason="refusal", message="I can't.")),
        (a_body(None, content="hi"), Finish(outcome="complete")),
        ({"choices": []}, Finish(outcome="empty", reason="NO_CHOICES")),
        ({"choices": None}, Finish(outcome="empty", reason="NO_CHOICES")),
        ({}, Finish(outcome="empty", reason="NO_CHOICES")),
    ],
)
def test_every_empty_shape_is_an_outcome(body: Any, finish: Finish) -> None:
    assert decode_response(body, model=MODEL).finish == finish


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, Usage(input=10, output=5)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input=10, output=2, thought=3),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 115,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            Usage(input=10, output=5, thought=100),
        ),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 8, "prompt_tokens_details": None}, Usage(input=10, cached=8)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(input=10, cached=8)),
    ],
)
def test_tokens_are_counted_once(usage: Any, expected: Usage) -> None:
    assert decode_response({**a_body(content="x"), "usage": usage}, model=MODEL).usage == expected


def an_error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "retry_after"),
    [
        (401, an_error("Incorrect API key provided", code="invalid_api_key"), {}, errors.KeyRefused, None),
        (400, [an_error("API key not valid. Please pass a valid API key.")], {}, errors.KeyRefused, None),
        (403, an_error("Country not supported"), {}, errors.KeyRefused, None),
        (404, an_error("The model `x` does not exist", code="model_not_found"), {}, errors.ModelUnknown, None),
        (400, an_error("too long", code="context_length_exceeded"), {}, errors.ContextTooLong, None),
        (400, an_error("This model's maximum context length is 5 tokens."), {}, errors.ContextTooLong, None),
        (
            400,
            [an_error("The input token count (9) exceeds the maximum number of tokens allowed (8).", code=400)],
            {},
            errors.ContextTooLong,
            None,
        ),
        (400, an_error("Unknown parameter: 'foo'."), {}, errors.RequestRefused, None),
        *[
            (
                status,
                {"error": {"code": status, "message": words, "type": "exceed_context_size_error", "n_ctx": 256}},
                {},
                errors.ContextTooLong,
                None,
            )
            for status in (400, 500)
            for words in ("the request exceeds the available context size, try increasing it", "too long")
        ],
        (400, an_error("Requested tokens (2285) exceed context window of 2048"), {}, errors.ContextTooLong, None),
        (400, an_error("Model Not Exist", code="invalid_request_error"), {}, errors.ModelUnknown, None),
        (400, {"error": {"message": "x/y:free is not a valid model ID", "code": 400}}, {}, errors.ModelUnknown, None),
        (
            400,
            {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"},
            {},
            errors.ModelUnknown,
            None,
        ),
        (
            400,
            an_error("The model `x` has been decommissioned", code="model_decommissioned"),
            {},
            errors.ModelUnknown,
            None,
        ),
        (
            403,
            an_error("Project `p` does not have access to model `x`", code="model_not_found"),
            {},
            errors.ModelUnknown,
            None,
        ),
        (400, an_error("The model 'x' does not exist"), {}, errors.ModelUnknown, None),
        (404, an_error('model "x" not found, try pulling it first'), {}, errors.ModelUnknown, None),
        (400, an_error("Unknown model: x", code="unknown_model"), {}, errors.ModelUnknown, None),
        (
            400,
            [an_error("* GenerateContentRequest.model: unexpected model name format")],
            {},
            errors.ModelUnknown,
            None,
        ),
        (400, an_error("Invalid model role: expected user"), {}, errors.RequestRefused, None),
        (402, an_error("Insufficient Balance"), {}, errors.QuotaExhausted, None),
        (429, an_error("quota", type="insufficient_quota"), {}, errors.QuotaExhausted, None),
        (429, an_error("slow"), {"retry-after": "2", "retry-after-ms": "1500"}, errors.RateLimited, 1.5),
        (429, an_error("slow"), {"retry-after": "20"}, errors.RateLimited, 20.0),
        (429, an_error("slow"), {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, errors.RateLimited, None),
        (429, an_error("Please try again in 6ms."), {}, errors.RateLimited, 0.006),
        (429, an_error("Please try again in 1.5s."), {}, errors.RateLimited, 1.5),
        (429, [an_error("quota\nPlease retry in 41.2s.")], {}, errors.RateLimited, 41.2),
        (
            429,
            [{"error": {"code": 429, "message": "quota", "details": [{"retryDelay": "47s"}]}}],
            {},
            errors.RateLimited,
            47.0,
        ),
        (408, an_error("slow"), {}, errors.TimedOut, None),
        (504, b"", {}, errors.TimedOut, None),
        (500, an_error("oops"), {}, errors.ServiceFault, None),
        (500, an_error("oops"), {"retry-after": "3"}, errors.ServiceFault, 3.0),
        (502, b"<html>Bad gateway</html>", {}, errors.Overloaded, None),
        (503, an_error("overloaded"), {"retry-after": "3"}, errors.Overloaded, 3.0),
        (529, an_error("overloaded"), {}, errors.Overloaded, None),
        (400, {"message": "bare", "type": "x"}, {}, errors.RequestRefused, None),
        (400, {"error": "bare words"}, {}, errors.RequestRefused, None),
        (422, {"detail": [{"msg": "wrong"}]}, {}, errors.RequestRefused, None),
    ],
)
def test_every_error_says_who_must_act(
    status: int, body: Any, headers: dict[str, str], kind: type[Exception], retry_after: float | None
) -> None:
    sent = body if isinstance(body, bytes) else orjson.dumps(body)

    error = decode_error(status, sent, headers, about=MODEL)

    assert type(error) is kind
    assert getattr(error, "retry_after", None) == retry_after


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (an_error("Unknown parameter: 'foo'."), "Unknown parameter: 'foo'."),
        ({"error": "bare words"}, "bare words"),
        ({"message": "bare"}, "bare"),
        ({"detail": "wrong"}, "wrong"),
        ({"detail": [{"msg": "wrong"}]}, "wrong"),
        (["?"], "?"),
    ],
)
def test_an_error_keeps_the_words_of_the_service(body: Any, words: str) -> None:
    assert words in str(decode_error(400, orjson.dumps(body), {}, about=MODEL))

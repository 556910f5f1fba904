"""What Gemini answers, as our values: every shape of part, ending, emptiness and error."""

from base64 import b64decode, b64encode, urlsafe_b64encode
from typing import Any

import msgspec
import orjson
import pytest

from tertulia import errors
from tertulia.models.base import Finish, Response, Usage
from tertulia.models.gemini.decode import decode_error, decode_response, decode_turn, merge_chunks
from tertulia.models.gemini.encode import encode_turn
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn

FLASH = "gemini-3.8-flash"
SIGNATURE = "EpMBCpABAb4+9vvPm/xyz=="
SAFE_SIGNATURE = "EpMBCpABAb4-9vvPm_xyz=="
BYTES = bytes(range(256))
BYTES_ID = "40aff2e9d2d8922e47afd4648e696749"
RATING = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}


def a_body(*parts: Any, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": FLASH, "responseId": "mFbQaPmUMu2Yvd", **more}


def parts_in(*parts: Any) -> tuple[Part, ...]:
    return decode_response(a_body(*parts), model=FLASH).parts


def finish_of(body: dict[str, Any]) -> Finish:
    return decode_response(body, model=FLASH).finish


def test_a_whole_response() -> None:
    usage = {
        "promptTokenCount": 1087,
        "candidatesTokenCount": 30,
        "totalTokenCount": 1217,
        "cachedContentTokenCount": 1081,
        "thoughtsTokenCount": 100,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1087}],
    }
    body = a_body({"text": "…", "thought": True}, {"text": "5040", "thoughtSignature": SIGNATURE}, usageMetadata=usage)

    assert decode_response(body, model=FLASH) == Response(
        turn=Turn(role="model", parts=(Thought(text="…"), Text(text="5040", signature=SIGNATURE)), model=FLASH),
        usage=Usage(input=1087, cached=1081, output=30, thought=100),
        finish=Finish(outcome="complete", reason="STOP"),
        raw=body,
        answered_by=FLASH,
    )


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        ({"text": "hi"}, Text(text="hi")),
        ({"text": ""}, Text(text="")),
        ({"text": "hi", "thought": False}, Text(text="hi")),
        ({"text": "hi", "thought": None, "functionCall": None}, Text(text="hi")),
        ({"text": "hm", "thought": True}, Thought(text="hm")),
        ({"text": "hm", "thought": True, "thoughtSignature": SIGNATURE}, Thought(text="hm", signature=SIGNATURE)),
        ({"text": "", "thoughtSignature": SIGNATURE}, Text(text="", signature=SIGNATURE)),
        ({"text": "", "thought_signature": SAFE_SIGNATURE}, Text(text="", signature=SAFE_SIGNATURE)),
        ({"thoughtSignature": "not base64!"}, Text(text="", signature="not base64!")),
        (
            {"functionCall": {"id": "g98os1Jf", "name": "look", "args": {"a": 1}}, "thoughtSignature": SIGNATURE},
            ToolCall(name="look", args={"a": 1}, id="g98os1Jf", signature=SIGNATURE),
        ),
        (
            {"function_call": {"name": "look", "args": {}}, "thought_signature": SIGNATURE},
            ToolCall(name="look", id="tertulia-mFbQaPmUMu2Y-0", signature=SIGNATURE),
        ),
        (
            {"functionCall": {"name": "look"}},
            ToolCall(name="look", id="tertulia-mFbQaPmUMu2Y-0", raw={"functionCall": {"name": "look"}}),
        ),
        (
            {"functionCall": {"name": "look", "args": {}}, "thought": True},
            ToolCall(
                name="look",
                id="tertulia-mFbQaPmUMu2Y-0",
                raw={"functionCall": {"name": "look", "args": {}}, "thought": True},
            ),
        ),
        (
            {"functionCall": {"id": "a", "name": "look", "args": {}, "willContinue": True}},
            ToolCall(
                name="look", id="a", raw={"functionCall": {"id": "a", "name": "look", "args": {}, "willContinue": True}}
            ),
        ),
        (
            {"functionCall": {"name": "look", "args": "Lviv"}},
            Opaque(raw={"functionCall": {"name": "look", "args": "Lviv"}}),
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": b64encode(BYTES).decode()}},
            Media(media_kind="photo", unique_id=BYTES_ID, mime="image/png", data=BYTES),
        ),
        (
            {"inline_data": {"mime_type": "image/png", "data": urlsafe_b64encode(BYTES).decode().rstrip("=")}},
            Media(media_kind="photo", unique_id=BYTES_ID, mime="image/png", data=BYTES),
        ),
        (
            {"inlineData": {"mimeType": "audio/wav", "data": "eA==", "displayName": "x"}},
            Media(
                media_kind="audio",
                unique_id="2d711642b726b04401627ca9fbac32f5",
                mime="audio/wav",
                data=b"x",
                raw={"inlineData": {"mimeType": "audio/wav", "data": "eA==", "displayName": "x"}},
            ),
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "!!"}},
            Opaque(raw={"inlineData": {"mimeType": "image/png", "data": "!!"}}),
        ),
        (
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://e.test/f"}},
            Media(media_kind="video", unique_id="https://e.test/f", mime="video/mp4", uri="https://e.test/f"),
        ),
        (
            {"fileData": {"fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 1}},
            Media(
                media_kind="document",
                unique_id="https://youtu.be/x",
                uri="https://youtu.be/x",
                raw={"fileData": {"fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 1}},
            ),
        ),
        (
            {"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": SIGNATURE},
            Opaque(raw={"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": SIGNATURE}),
        ),
        ({"text": "hi", "newField": 1}, Text(text="hi", raw={"text": "hi", "newField": 1})),
        (
            {"text": "hm", "thought": True, "part_metadata": {"a": 1}},
            Thought(text="hm", raw={"text": "hm", "thought": True, "part_metadata": {"a": 1}}),
        ),
        ("hi", Text(text="hi")),
        ({"text": 5}, Opaque(raw={"text": 5})),
        ({"text": "hi", "thoughtSignature": 5}, Text(text="hi", raw={"text": "hi", "thoughtSignature": 5})),
        ({}, Opaque(raw={})),
    ],
)
def test_a_part(wire: Any, part: Part) -> None:
    assert parts_in(wire) == (part,)


def test_calls_without_ids_are_told_apart() -> None:
    calls = parts_in({"functionCall": {"name": "look", "args": {}}}, {"functionCall": {"name": "look", "args": {}}})

    assert calls == (
        ToolCall(name="look", id="tertulia-mFbQaPmUMu2Y-0"),
        ToolCall(name="look", id="tertulia-mFbQaPmUMu2Y-1"),
    )


def test_calls_of_two_responses_are_told_apart_though_neither_has_an_id() -> None:
    call = {"functionCall": {"name": "look", "args": {}}}
    bodies = [{"candidates": [{"content": {"parts": [call, {"text": word}]}}]} for word in "ab"]

    ids = {decode_response(body, model=FLASH).function_calls[0].id for body in bodies}

    assert len(ids) == 2


@pytest.mark.parametrize(
    ("content", "turn"),
    [
        ({"role": "user", "parts": [{"text": "hi"}]}, Turn(role="user", parts=(Text(text="hi"),))),
        ({"parts": [{"text": "hi"}]}, Turn(role="user", parts=(Text(text="hi"),))),
        ({"parts": {"text": "hi"}}, Turn(role="user", parts=(Text(text="hi"),))),
        ({"role": "model", "parts": [{"text": "hi"}]}, Turn(role="model", parts=(Text(text="hi"),))),
        ({"role": "assistant", "parts": [{"text": "hi"}]}, Turn(role="model", parts=(Text(text="hi"),))),
        ({"role": "MODEL", "parts": []}, Turn(role="model", parts=())),
        (
            {"role": "function", "parts": [{"functionResponse": {"name": "look", "response": {"a": 1}, "id": "x"}}]},
            Turn(role="user", parts=(ToolResult(name="look", value={"a": 1}, id="x"),)),
        ),
        (
            {
                "role": "user",
                "parts": [
                    {
                        "function_response": {
                            "name": "look",
                            "response": {},
                            "parts": [{"inline_data": {"mime_type": "image/png", "data": b64encode(BYTES).decode()}}],
                        }
                    }
                ],
            },
            Turn(
                role="user",
                parts=(
                    ToolResult(
                        name="look",
                        value={},
                        media=(Media(media_kind="photo", unique_id=BYTES_ID, mime="image/png", data=BYTES),),
                    ),
                ),
            ),
        ),
        (
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}, "scheduling": "SILENT"}}]},
            Turn(
                role="user",
                parts=(
                    ToolResult(
                        name="look",
                        value={},
                        raw={"functionResponse": {"name": "look", "response": {}, "scheduling": "SILENT"}},
                    ),
                ),
            ),
        ),
    ],
)
def test_a_content_is_a_turn(content: Any, turn: Turn) -> None:
    assert decode_turn(content) == turn


def test_a_turn_knows_its_maker() -> None:
    assert decode_turn({"role": "model", "parts": []}, model=FLASH).model == FLASH


CALL_ARGS = {"query": "Wetter in Lwiw", "n": 3, "exact": True, "deep": {"list": [1.5, None, "ї"]}}
RECORDED: list[list[dict[str, Any]]] = [
    [{"text": "**Thinking**\n\nI compute.", "thought": True}, {"text": "5040", "thoughtSignature": SIGNATURE}],
    [{"text": "The answer "}, {"text": "", "thoughtSignature": SIGNATURE}],
    [{"functionCall": {"id": "zi06h2mp", "name": "look", "args": CALL_ARGS}, "thoughtSignature": SIGNATURE}],
    [
        {"text": "Two calls.", "thought": True},
        {"functionCall": {"id": "zi06h2mp", "name": "look", "args": {}}, "thoughtSignature": SAFE_SIGNATURE},
        {"functionCall": {"id": "g98os1Jf", "name": "look", "args": {"a": ""}}},
    ],
    [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": SIGNATURE}, {"text": ""}],
    [{"functionCall": {"name": "now"}, "thoughtSignature": SIGNATURE}],
    [{"functionCall": {"name": "look", "args": {"a": 1}}, "thought": True, "thoughtSignature": SIGNATURE}],
    [{"functionCall": {"id": "a", "name": "look", "args": {}, "partialArgs": [], "willContinue": True}}],
    [
        {"executableCode": {"language": "PYTHON", "code": "print(2**10)", "id": "c1"}, "thoughtSignature": SIGNATURE},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1024\n", "id": "c1"}},
        {"text": "It is 1024."},
    ],
    [
        {"toolCall": {"toolType": "GOOGLE_SEARCH", "args": {"q": "x"}, "id": "t1"}, "thoughtSignature": SIGNATURE},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH", "response": {"ok": True}, "id": "t1"}},
    ],
    [{"inlineData": {"mimeType": "image/png", "data": b64encode(BYTES).decode()}, "thoughtSignature": SIGNATURE}],
    [{"inlineData": {"mimeType": "image/png", "data": "eA==", "displayName": "a cat.png"}}],
    [{"fileData": {"mimeType": "video/mp4", "fileUri": "https://e.test/f"}, "videoMetadata": {"fps": 1}}],
    [{"text": "from tomorrow", "hologram": {"depth": 3}, "thoughtSignature": SIGNATURE}],
    [{"hologram": {"depth": 3}}],
    [{"text": "long", "thoughtSignature": b64encode(b"\xfb\xff" * 6144).decode()}],
    [{"text": "odd", "thoughtSignature": "not base64 at all!"}],
    [{"text": "line\u2028sep\x00\ufffd😀", "thoughtSignature": "Ёё=="}],
]


@pytest.mark.parametrize("parts", RECORDED, ids=range(len(RECORDED)))
def test_a_recorded_response_goes_back_as_it_came(parts: list[dict[str, Any]]) -> None:
    kept = msgspec.json.encode(decode_response(a_body(*parts), model=FLASH))
    turn = msgspec.json.decode(kept, type=Response).turn

    assert orjson.loads(encode_turn(turn, model=FLASH)) == [{"role": "model", "parts": parts}]


def test_a_response_in_snake_case_is_read_as_one_in_camel_case() -> None:
    camel = a_body(
        {"functionCall": {"id": "a", "name": "look", "args": {"inCamel": 1, "in_snake": 2}}, "thoughtSignature": "s"},
        {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
        usageMetadata={"promptTokenCount": 5, "cachedContentTokenCount": 3},
    )
    snake = {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {
                            "function_call": {"id": "a", "name": "look", "args": {"inCamel": 1, "in_snake": 2}},
                            "thought_signature": "s",
                        },
                        {"inline_data": {"mime_type": "image/png", "data": "eA=="}},
                    ],
                    "role": "model",
                },
                "finish_reason": "STOP",
            }
        ],
        "usage_metadata": {"prompt_token_count": 5, "cached_content_token_count": 3},
    }

    one, other = (decode_response(body, model=FLASH) for body in (camel, snake))

    assert (one.turn, one.usage, one.finish) == (other.turn, other.usage, other.finish)


@pytest.mark.parametrize("parts", RECORDED, ids=range(len(RECORDED)))
def test_a_recorded_response_comes_the_same_in_one_chunk_and_in_many(parts: list[dict[str, Any]]) -> None:
    chunks = [a_body(part, finish=None) for part in parts] + [a_body(finish="STOP")]

    whole = decode_response(merge_chunks(chunks), model=FLASH)

    said = [part for part in parts if part != {"text": ""}]
    assert orjson.loads(encode_turn(whole.turn, model=FLASH)) == [{"role": "model", "parts": said}]
    assert whole.finish == Finish(outcome="complete", reason="STOP")


def test_inline_data_in_the_url_safe_alphabet_goes_back_as_the_same_bytes() -> None:
    turn = decode_response(
        a_body({"inlineData": {"mimeType": "image/png", "data": urlsafe_b64encode(BYTES).decode()}}), model=FLASH
    ).turn

    [content] = orjson.loads(encode_turn(turn, model=FLASH))
    assert b64decode(content["parts"][0]["inlineData"]["data"], validate=True) == BYTES


OUTCOMES = {
    "complete": "STOP",
    "cut": "MAX_TOKENS",
    "continue": "CONTINUATION",
    "blocked": "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT "
    "IMAGE_RECITATION MODEL_ARMOR ESCALATION",
    "malformed": "MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS "
    "MISSING_THOUGHT_SIGNATURE",
    "other": "OTHER IMAGE_OTHER NO_IMAGE FINISH_REASON_UNSPECIFIED SOMETHING_NEW",
}


@pytest.mark.parametrize(
    ("reason", "outcome"), [(reason, outcome) for outcome, reasons in OUTCOMES.items() for reason in reasons.split()]
)
def test_every_reason_to_finish_is_an_outcome(reason: str, outcome: Any) -> None:
    assert finish_of(a_body({"text": "x"}, finish=reason)) == Finish(outcome=outcome, reason=reason)


@pytest.mark.parametrize(
    "reason", "SAFETY OTHER BLOCKLIST PROHIBITED_CONTENT IMAGE_SAFETY MODEL_ARMOR JAILBREAK BLOCK_NEW".split()
)
def test_every_reason_to_block_a_prompt_is_told(reason: str) -> None:
    body = {
        "promptFeedback": {"blockReason": reason, "blockReasonMessage": "No."},
        "usageMetadata": {"promptTokenCount": 13, "totalTokenCount": 13},
    }

    assert decode_response(body, model=FLASH) == Response(
        turn=Turn(role="model", parts=(), model=FLASH),
        usage=Usage(input=13),
        finish=Finish(outcome="prompt_blocked", reason=reason, message="No."),
        raw=body,
    )


@pytest.mark.parametrize(
    ("body", "finish"),
    [
        (
            {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]},
            Finish(outcome="cut", reason="MAX_TOKENS"),
        ),
        (
            {"candidates": [{"content": {}, "finishReason": "SAFETY", "safetyRatings": [RATING]}]},
            Finish(outcome="blocked", reason="SAFETY"),
        ),
        (
            {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed: print("}]},
            Finish(outcome="malformed", reason="MALFORMED_FUNCTION_CALL", message="Malformed: print("),
        ),
        (
            {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
            Finish(outcome="empty", reason="STOP"),
        ),
        (a_body({"text": ""}), Finish(outcome="empty", reason="STOP")),
        (a_body({"text": "", "thoughtSignature": SIGNATURE}), Finish(outcome="empty", reason="STOP")),
        (a_body({"text": "hi"}, finish=None), Finish(outcome="complete")),
        (
            {"candidates": [{"content": None, "finish_reason": "STOP", "finish_message": None}]},
            Finish(outcome="empty", reason="STOP"),
        ),
        ({"candidates": [{"content": {"parts": None}, "finishReason": 2}]}, Finish(outcome="cut", reason="MAX_TOKENS")),
        ({"candidates": []}, Finish(outcome="empty", reason="NO_CANDIDATES")),
        ({"candidates": None, "usageMetadata": None}, Finish(outcome="empty", reason="NO_CANDIDATES")),
        ({}, Finish(outcome="empty", reason="NO_CANDIDATES")),
    ],
)
def test_every_empty_shape_is_an_outcome(body: Any, finish: Finish) -> None:
    assert finish_of(body) == finish


def test_a_stream_becomes_one_turn() -> None:
    usage = {"promptTokenCount": 5}
    chunks = [
        a_body({"text": "I ", "thought": True}, finish=None, usageMetadata=usage),
        a_body({"text": "think", "thought": True}, finish=None, usageMetadata=usage),
        a_body({"text": "Hel"}, finish=None, usageMetadata=usage),
        a_body({"text": ""}, {"text": "lo"}, finish=None, usageMetadata=usage),
        a_body({"text": "", "thoughtSignature": SIGNATURE}, usageMetadata={"candidatesTokenCount": 2, **usage}),
        {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 9}},
    ]

    response = decode_response(merge_chunks(chunks), model=FLASH)

    assert response.turn == Turn(
        role="model",
        parts=(Thought(text="I think"), Text(text="Hello"), Text(text="", signature=SIGNATURE)),
        model=FLASH,
    )
    assert (response.finish, response.usage) == (
        Finish(outcome="complete", reason="STOP"),
        Usage(input=5, output=2, thought=9),
    )
    assert response.valid


@pytest.mark.parametrize(
    "last",
    [
        {"usageMetadata": {"promptTokenCount": 5}},
        {"candidates": [], "usageMetadata": {"promptTokenCount": 5}},
        {"candidates": [{"index": 0}]},
        {"candidates": [{"finishReason": "STOP", "index": 0}]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP"}]},
        {},
    ],
)
def test_a_last_chunk_without_content_spoils_nothing(last: dict[str, Any]) -> None:
    call = {"functionCall": {"id": "a", "name": "look", "args": {}}, "thoughtSignature": SIGNATURE}

    response = decode_response(merge_chunks([a_body(call), last]), model=FLASH)

    assert response.turn == Turn(role="model", parts=(ToolCall(name="look", id="a", signature=SIGNATURE),), model=FLASH)
    assert response.finish == Finish(outcome="complete", reason="STOP")
    assert response.valid


def test_text_never_runs_into_a_signed_part() -> None:
    signed = {"text": "b", "thoughtSignature": SIGNATURE}
    chunks = [a_body({"text": "a"}, finish=None), a_body(signed, finish=None), a_body({"text": "c"})]

    assert decode_response(merge_chunks(chunks), model=FLASH).parts == (
        Text(text="a"),
        Text(text="b", signature=SIGNATURE),
        Text(text="c"),
    )


def test_a_stream_that_stops_early_and_goes_on_is_one_turn() -> None:
    code = {"executableCode": {"code": "1", "language": "PYTHON"}}
    chunks = [a_body(code, finish="STOP"), a_body({"text": "one"}, finish="STOP")]

    assert decode_response(merge_chunks(chunks), model=FLASH).parts == (Opaque(raw=code), Text(text="one"))


def an_error(code: int, message: str, *details: Any, status: str = "X") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "47s"}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
DAILY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
MINUTE = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}
BUSY = "This model is currently experiencing high demand. Spikes in demand are usually temporary."


@pytest.mark.parametrize(
    ("status", "body", "kind", "retry_after"),
    [
        (400, an_error(400, "API key not valid. Please pass a valid API key.", BAD_KEY), errors.KeyRefused, None),
        (401, an_error(401, "Request had invalid authentication credentials."), errors.KeyRefused, None),
        (403, an_error(403, "Method doesn't allow unregistered callers"), errors.KeyRefused, None),
        (403, an_error(403, "The caller does not have permission"), errors.KeyRefused, None),
        (403, an_error(403, "CachedContent not found (or permission denied)"), errors.CacheGone, None),
        (
            403,
            an_error(403, "You do not have permission to access the File x or it may not exist."),
            errors.FileGone,
            None,
        ),
        (
            400,
            an_error(400, "* GenerateContentRequest.model: unexpected model name format"),
            errors.ModelUnknown,
            None,
        ),
        (400, an_error(400, "The File x is not in an ACTIVE state and usage is not allowed."), errors.FileGone, None),
        (400, an_error(400, "User location is not supported for the API use."), errors.PlaceRefused, None),
        (
            400,
            an_error(400, "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
            errors.ContextTooLong,
            None,
        ),
        (400, an_error(400, "Please use a valid role: user, model."), errors.RequestRefused, None),
        (404, an_error(404, "models/x is not found for API version v1beta"), errors.ModelUnknown, None),
        (409, an_error(409, "Requested entity already exists"), errors.FileExists, None),
        (413, b"<html>too large</html>", errors.RequestRefused, None),
        (429, an_error(429, "You exceeded your quota", MINUTE, RETRY), errors.RateLimited, 47.0),
        (429, an_error(429, "You exceeded your quota", DAILY, RETRY), errors.RateLimited, 47.0),
        (429, an_error(429, "You exceeded your quota\nPlease retry in 41.2s."), errors.RateLimited, 41.2),
        (429, an_error(429, "Resource has been exhausted (e.g. check quota)."), errors.RateLimited, None),
        (429, an_error(429, "You exceeded your quota", DAILY), errors.QuotaExhausted, None),
        (500, an_error(500, "An internal error has occurred."), errors.ServiceFault, None),
        (500, an_error(500, "An internal error has occurred.", RETRY), errors.ServiceFault, 47.0),
        (502, b"<html>Bad gateway</html>", errors.ServiceFault, None),
        (503, an_error(503, BUSY), errors.Overloaded, None),
        (503, an_error(503, BUSY, {"retryDelay": "1.5s"}), errors.Overloaded, 1.5),
        (504, an_error(504, "Deadline expired before operation could complete."), errors.TimedOut, None),
        (504, an_error(504, "Deadline expired", RETRY), errors.TimedOut, 47.0),
        (429, [an_error(429, "You exceeded your quota", RETRY)], errors.RateLimited, 47.0),
        (503, b"", errors.Overloaded, None),
        (400, {"error": "bare words"}, errors.RequestRefused, None),
        (400, {"error": {"message": None, "details": None}}, errors.RequestRefused, None),
        (400, [], errors.RequestRefused, None),
    ],
)
def test_every_error_says_who_must_act(status: int, body: Any, kind: type[Exception], retry_after: Any) -> None:
    sent = body if isinstance(body, bytes) else orjson.dumps(body)

    error = decode_error(status, sent, about=FLASH)

    assert type(error) is kind
    assert getattr(error, "retry_after", None) == retry_after


def test_an_error_keeps_the_words_of_the_service() -> None:
    error = decode_error(400, orjson.dumps(an_error(400, "* contents is not specified\n")))

    assert str(error) == "Gemini refused the request (400): * contents is not specified"


@pytest.mark.parametrize(
    ("message", "file", "for_now"),
    [
        ("You do not have permission to access the File ab-1 or it may not exist.", "ab-1", False),
        ("The File ab-1 is not in an ACTIVE state and usage is not allowed.", "ab-1", True),
    ],
)
def test_a_file_that_is_gone_is_named(message: str, file: str, for_now: bool) -> None:
    error = decode_error(403, orjson.dumps(an_error(403, message)), about=FLASH)

    assert isinstance(error, errors.FileGone)
    assert (error.file, error.for_now) == (file, for_now)


@pytest.mark.parametrize(
    ("about", "kind"), [("cachedContents/a", errors.CacheGone), ("files/a", errors.FileGone), ("", errors.ModelUnknown)]
)
def test_what_was_not_found_is_what_was_asked_for(about: str, kind: type[Exception]) -> None:
    error = decode_error(404, orjson.dumps(an_error(404, "Requested entity was not found.")), about=about)

    assert type(error) is kind

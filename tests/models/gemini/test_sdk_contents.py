"""Our turns as google-genai's contents, and back the same."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from google.genai import types
from hypothesis import assume, given
from hypothesis import strategies as st

from strategies import turns
from tertulia.errors import InvalidValue
from tertulia.models.gemini.decode import decode_response, decode_turn
from tertulia.models.gemini.sdk import from_contents, to_contents
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn, model, user

FLASH = "gemini-3.8-flash"
SIGNATURE = "EpMBCpABAb4+9vvPm/xy"
BYTES = bytes(range(256))
PHOTO = Media(
    media_kind="photo", unique_id="40aff2e9d2d8922e47afd4648e696749", mime="image/png", data=BYTES, signature=None
)
HISTORY = [
    user("What is it?", PHOTO),
    model(
        Thought(text="hm"),
        Text(text="Let me look.", signature=SIGNATURE),
        ToolCall(name="look", args={"a": {"in_snake": [1, None, "ї"]}}, id="g98os1Jf", signature=SIGNATURE),
        ToolCall(name="look", id="b"),
        by=FLASH,
    ),
    user(
        ToolResult(name="look", value={"ok": True}, id="g98os1Jf", media=(PHOTO,)),
        ToolResult(name="look", value={}, id="b"),
    ),
    model(
        Opaque(raw={"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": SIGNATURE}),
        Opaque(raw={"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}),
        Text(text="", signature=SIGNATURE),
        by=FLASH,
    ),
]


def test_turns_become_contents() -> None:
    [asked, said, *_] = to_contents(HISTORY, model=FLASH)

    assert asked == types.Content(
        role="user",
        parts=[types.Part(text="What is it?"), types.Part(inline_data=types.Blob(data=BYTES, mime_type="image/png"))],
    )
    signature = b"\x12\x93\x01\n\x90\x01\x01\xbe>\xf6\xfb\xcf\x9b\xfcr"
    assert said == types.Content(
        role="model",
        parts=[
            types.Part(text="hm", thought=True),
            types.Part(text="Let me look.", thought_signature=signature),
            types.Part(
                function_call=types.FunctionCall(id="g98os1Jf", name="look", args={"a": {"in_snake": [1, None, "ї"]}}),
                thought_signature=signature,
            ),
            types.Part(function_call=types.FunctionCall(id="b", name="look", args={})),
        ],
    )


def test_turns_come_back_the_same() -> None:
    assert from_contents(to_contents(HISTORY, model=FLASH), model=FLASH) == HISTORY


@pytest.mark.parametrize(
    ("part", "back"),
    [
        (Text(text="x", signature="ab-_"), Text(text="x", signature="ab+/")),
        (Text(text="x", signature="YQ"), Text(text="x", signature="YQ==")),
        (Text(text="x", signature="not base64 at all!"), Text(text="x", signature="bm90IGJhc2U2NCBhdCBhbGwh")),
    ],
)
def test_a_signature_comes_back_in_the_standard_alphabet(part: Part, back: Part) -> None:
    assert from_contents(to_contents([model(part, by=FLASH)], model=FLASH), model=FLASH) == [model(back, by=FLASH)]


def test_the_placeholder_for_a_foreign_signature_comes_back_as_it_is() -> None:
    foreign = model(ToolCall(name="look", id="a", signature=SIGNATURE), ToolCall(name="look", id="b"), by="gpt-5.6")

    contents = to_contents([foreign], model=FLASH)

    assert from_contents(contents, model=FLASH) == [
        model(
            ToolCall(name="look", id="a", signature="skip_thought_signature_validator"),
            ToolCall(name="look", id="b"),
            by=FLASH,
        )
    ]


def test_a_call_without_an_id_is_paired_by_ours_and_goes_back_without_one() -> None:
    content = types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(name="look", args={}))])

    [turn] = from_contents([content], model=FLASH)

    [call] = turn.parts
    assert isinstance(call, ToolCall)
    assert str(call.id).startswith("tertulia-")
    assert to_contents([turn], model=FLASH) == [content]


def test_contents_may_be_dicts_and_texts_as_the_sdk_takes_them() -> None:
    png = b"\x89PNG\xff"
    signed = {"text": "hello", "thought_signature": b"\xff\xfe"}
    contents: list[Any] = [
        {"role": "user", "parts": [{"text": "hi"}, {"inline_data": {"mime_type": "image/png", "data": png}}]},
        {"role": "model", "parts": [signed, types.Part(text="you")]},
        {"parts": ["and", types.Part(text="you?")]},
        "well?",
        types.Part(text="yes?"),
        {"text": "no?"},
        types.ModelContent("no."),
    ]
    photo = Media(media_kind="photo", unique_id=sha256(png).hexdigest()[:32], mime="image/png", data=png)

    assert from_contents(contents, model=FLASH) == [
        user("hi", photo),
        model(Text(text="hello", signature="//4="), "you", by=FLASH),
        user("and", "you?"),
        user("well?"),
        user("yes?"),
        user("no?"),
        model("no.", by=FLASH),
    ]
    assert from_contents("hi") == from_contents({"parts": [{"text": "hi"}]}) == [user("hi")]


def test_what_is_no_content_is_refused_by_its_place() -> None:
    contents: Any = ["hi", 5]

    with pytest.raises(InvalidValue, match=r"contents\[1\] is 5; it should be a content"):
        from_contents(contents)


def test_only_the_model_is_the_maker() -> None:
    contents = [types.UserContent("hi"), types.ModelContent("hello"), types.Content(parts=[types.Part(text="x")])]

    assert from_contents(contents, model=FLASH) == [user("hi"), model("hello", by=FLASH), user("x")]


def test_what_the_sdk_has_no_field_for_is_left_out() -> None:
    turn = model("hi", Opaque(raw={"hologram": 1}), Opaque(raw={"text": "there", "hologram": 1}), by=FLASH)

    assert to_contents([turn], model=FLASH) == [
        types.Content(role="model", parts=[types.Part(text="hi"), types.Part(text="there")])
    ]


def test_a_turn_of_nothing_the_sdk_knows_is_left_out() -> None:
    assert to_contents([model(Opaque(raw={"hologram": 1}), by=FLASH), user("hi")], model=FLASH) == [
        types.Content(role="user", parts=[types.Part(text="hi")])
    ]


@given(st.lists(turns([FLASH, "gpt-5.6"]), max_size=4))
def test_any_history_becomes_contents_and_comes_back_to_the_same_contents(history: list[Turn]) -> None:
    hidden = (part for turn in history for part in turn.parts if isinstance(part, Opaque))
    assume(not any("function" in name for part in hidden for name in part.raw))  # calls have values of their own
    contents = to_contents(history, model=FLASH)

    back = from_contents(contents, model=FLASH)

    assert to_contents(back, model=FLASH) == contents
    assert msgspec.json.decode(msgspec.json.encode(back), type=list[Turn]) == back


DUMPS: list[dict[str, Any]] = [{}, {"exclude_none": True}, {"by_alias": True}]


@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_bytes_of_a_dump_are_read_as_base64(dump: dict[str, Any]) -> None:
    call = types.FunctionCall(id="c", name="look", args={"at": 1})
    content = types.Content(
        role="model",
        parts=[
            types.Part(text="hm", thought=True, thought_signature=b"a"),
            types.Part(text="Hi.", thought_signature=BYTES),
            types.Part(function_call=call, thought_signature=b"\x00\xff"),
            types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG")),
        ],
    )
    candidate = types.Candidate(content=content, finish_reason=types.FinishReason.STOP)
    answer = types.GenerateContentResponse(candidates=[candidate])

    turn = decode_turn(content.model_dump(**dump), model=FLASH)
    response = decode_response(answer.model_dump(**dump), model=FLASH)

    assert [turn] == from_contents([content], model=FLASH)
    assert (response.turn, response.finish.outcome) == (turn, "complete")


@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_bytes_in_a_part_with_more_fields_are_base64_too(dump: dict[str, Any]) -> None:
    clip = types.Part(text="clip", video_metadata=types.VideoMetadata(fps=1), thought_signature=b"\xfe")
    run = types.Part(executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON))
    content = types.Content(role="model", parts=[clip, run])

    turn = decode_turn(content.model_dump(**dump), model=FLASH)

    (sent,) = to_contents([turn], model=FLASH)
    assert [part.model_dump(mode="json", exclude_none=True, by_alias=True) for part in sent.parts or ()] == [
        {"text": "clip", "videoMetadata": {"fps": 1}, "thoughtSignature": "_g=="},
        {"executableCode": {"code": "1", "language": "PYTHON"}},
    ]

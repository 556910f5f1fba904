"""A choice in JSON becomes the reply's words, or the call."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from models.talk import COUNT, LOOK
from tertulia.errors import RequestRefused, ResponseUnreadable
from tertulia.models.base import Finish, Outcome
from tertulia.models.local.decode import (
    CallChoice,
    ChoiceDecoder,
    ReplyChoice,
    answer_check,
    check_response,
    decode_chunk,
    parse_choice,
    refused_tokens,
    reply_so_far,
    respond,
)
from tertulia.parts import Part, Text, ToolCall, is_generated_id
from tertulia.turns import Prompt

PROMPT = Prompt.of("hi", tools=[LOOK, COUNT])
NAMES = {"look", "count"}
WORDS = st.text(st.characters(codec="utf-8"), max_size=30)


def chunks_of(*pieces: str, finish: str = "stop") -> list[dict[str, Any]]:
    head = {
        "id": "c",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}],
    }
    body = [{"id": "c", "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    usage = {"id": "c", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}
    return [head, *body, end, usage]


def unwrapped(*pieces: str, finish: str = "stop") -> list[dict[str, Any]]:
    return list(map(ChoiceDecoder(PROMPT), chunks_of(*pieces, finish=finish)))


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ('{"tool":"look","args":{"place":"Lviv"}}', CallChoice(name="look", args={"place": "Lviv"})),
        ('{"args": {}, "tool": "count"}', CallChoice(name="count", args={})),
        ('{"reply":"Hi."}', ReplyChoice(text="Hi.")),
        ('{"reply":{"mood":"good"}}', ReplyChoice(text='{"mood":"good"}')),
        ('{"tool":"dance","args":{}}', None),
        ('{"tool":"look","args":[]}', None),
        ('{"tool":"look","args":{},"reply":"x"}', None),
        ('{"tool":"look"', None),
        ("Hello!", None),
        ("", None),
        ("[]", None),
    ],
)
def test_a_choice_is_parsed(text: str, choice: CallChoice | ReplyChoice | None) -> None:
    assert parse_choice(text, names=NAMES) == choice


@given(WORDS, st.booleans(), st.data())
def test_an_open_reply_is_a_beginning_of_the_whole(reply: str, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps({"reply": reply}, ensure_ascii=ascii_only)
    end = data.draw(st.integers(0, len(text)))

    assert reply.startswith(reply_so_far(text[:end]))
    assert reply_so_far(text) == reply


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"reply": "a\\x', "a"),
        ('{"reply": "a\\x41", "b"}', "a"),
        ('{"reply": "a\\u12G4', "a"),
        ('{"reply": "a\\', "a"),
        ('{"reply": "\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\', '"\\/\b\f\n\r\tA'),
        ('{"reply": "a\n\x00', "a\n\x00"),
        ('{"reply": 5', ""),
    ],
)
def test_of_broken_json_the_words_before_the_break_are_read(text: str, words: str) -> None:
    assert reply_so_far(text) == words


@given(st.text(st.one_of(st.sampled_from('\\"ux{}dD8c/n'), st.characters()), max_size=30))
def test_any_text_has_words_so_far(text: str) -> None:
    assert isinstance(reply_so_far('{"reply":"' + text), str)


@given(WORDS.filter(bool), st.booleans(), st.data())
def test_a_reply_comes_in_pieces_however_its_json_is_split(reply: str, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps({"reply": reply}, ensure_ascii=ascii_only)
    middle = data.draw(st.integers(0, len(text)))

    chunks = unwrapped(text[:middle], text[middle:])

    assert "".join(respond([chunk], model="m").text for chunk in chunks) == reply
    assert respond(chunks, model="m").parts == (Text(text=reply),)


@pytest.mark.parametrize(
    ("text", "finish", "parts", "outcome"),
    [
        ('{"reply":"Hi."}', "stop", [Text(text="Hi.")], "complete"),
        ('{"reply":"Hi the', "length", [Text(text="Hi the")], "cut"),
        ('{"reply":"Hi', "stop", [Text(text="Hi")], "complete"),  # one of the settings' stops
        ('{"reply":{"mood":"good"}}', "stop", [Text(text='{"mood":"good"}')], "complete"),
        ('{"tool":"look","args":{"pl', "length", [], "cut"),
        ('{"tool":"look","args":{"pl', "stop", [], "malformed"),
        ('{"tool":"dance","args":{}}', "stop", [], "malformed"),
        ("Hello!", "stop", [], "malformed"),
        ('{"reply":""}', "stop", [], "empty"),
    ],
)
def test_what_an_answer_becomes(text: str, finish: str, parts: list[Part], outcome: Outcome) -> None:
    response = respond(unwrapped(text, finish=finish), model="m")

    assert list(response.parts) == parts
    assert response.finish.outcome == outcome
    assert (response.usage.input, response.usage.output) == (7, 3)


def test_a_call_gets_an_id_of_ours() -> None:
    response = respond(unwrapped('{"tool":"look",', '"args":{"place":"Lviv"}}'), model="m")

    [call] = response.function_calls
    assert call == ToolCall(name="look", args={"place": "Lviv"}, id=call.id)
    assert is_generated_id(call.id)
    assert response.finish == Finish(outcome="complete", reason="stop")


def test_what_was_malformed_is_kept() -> None:
    assert respond(unwrapped("Hel", "lo!"), model="m").raw["malformed"] == "Hello!"


def test_an_error_is_read_as_ours() -> None:
    refusal = {"error": {"code": 400, "message": "no", "type": "invalid_request_error"}}

    with pytest.raises(RequestRefused, match="no"):
        decode_chunk(orjson.dumps(refusal), about="m")
    with pytest.raises(ResponseUnreadable):
        decode_chunk(b"[]", about="m")
    assert decode_chunk(b'{"choices":[]}', about="m") == {"choices": []}


def test_a_refusal_for_its_length_says_how_long_it_was() -> None:
    refusal = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 5031, "n_ctx": 2048}}

    assert refused_tokens(orjson.dumps(refusal)) == 5031
    assert refused_tokens(b'{"choices":[]}') == 0


NUMBER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("text", "finish", "judgement"),
    [
        ('{"a":1}', "stop", Finish(outcome="complete", reason="stop")),
        (
            '{"a":"one"}',
            "stop",
            Finish(
                outcome="malformed",
                reason="stop",
                message="the answer does not fit its schema: data.a must be integer",
            ),
        ),
        ("Hello!", "stop", Finish(outcome="malformed", reason="stop", message="the answer is no JSON")),
        ('{"a":', "length", Finish(outcome="cut", reason="length")),
    ],
)
def test_an_answer_that_does_not_fit_is_malformed_and_kept(text: str, finish: str, judgement: Finish) -> None:
    response = respond(chunks_of(text, finish=finish), model="m")

    assert check_response(response, answer_check(NUMBER)) == replace(response, finish=judgement)


def test_a_call_is_no_answer_to_be_judged() -> None:
    response = respond(unwrapped('{"tool":"look","args":{"place":"Lviv"}}'), model="m")

    assert check_response(response, answer_check(NUMBER)) == response

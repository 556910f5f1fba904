"""What a small model may answer: one schema over its tools and a reply."""

from typing import Any

import orjson
import pytest

from models.talk import COUNT, LOOK
from tertulia.errors import InvalidValue
from tertulia.models.local.decode import answer_check
from tertulia.models.local.encode import answer_schema, closed_schema, grammar
from tertulia.turns import Prompt, Settings, ToolSpec

MOOD = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}
CLOSED_MOOD = {**MOOD, "additionalProperties": False}
CLOSED_LOOK = {**LOOK.parameters, "additionalProperties": False}


def an_object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def a_prompt(*tools: ToolSpec, **settings: Any) -> Prompt:
    return Prompt.of("hi", tools=tools, settings=Settings(**settings))


def test_without_tools_and_answer_words_will_do() -> None:
    assert answer_schema(a_prompt()) is None
    assert answer_schema(a_prompt(LOOK, tool_choice="none")) is None


def test_an_answer_has_its_schema() -> None:
    assert answer_schema(a_prompt(answer=MOOD)) == CLOSED_MOOD


def test_an_answer_is_one_of_the_calls_or_a_reply() -> None:
    assert answer_schema(a_prompt(LOOK, COUNT)) == {
        "oneOf": [
            an_object(tool={"const": "look"}, args={"$ref": "#/$defs/tool.look"}),
            an_object(tool={"const": "count"}, args={"$ref": "#/$defs/tool.count"}),
            an_object(reply={"type": "string", "minLength": 1}),
        ],
        "$defs": {
            "tool.look": CLOSED_LOOK,
            "tool.count": {**COUNT.parameters, "additionalProperties": False},
        },
    }


def test_where_a_tool_must_be_called_there_is_no_reply() -> None:
    assert answer_schema(a_prompt(LOOK, tool_choice="any")) == {
        "oneOf": [an_object(tool={"const": "look"}, args={"$ref": "#/$defs/tool.look"})],
        "$defs": {"tool.look": CLOSED_LOOK},
    }


def test_with_tools_the_reply_is_the_answer_asked_for() -> None:
    schema = answer_schema(a_prompt(LOOK, answer=MOOD))

    assert schema is not None
    assert schema["oneOf"][-1] == an_object(reply={"$ref": "#/$defs/answer"})
    assert schema["$defs"]["answer"] == CLOSED_MOOD


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    schema = answer_schema(a_prompt(ToolSpec(name="now")))

    assert schema is not None
    assert schema["$defs"] == {"tool.now": {"type": "object", "properties": {}, "additionalProperties": False}}


@pytest.mark.parametrize(
    ("schema", "tidy"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"$id": "x", "$schema": "y", "type": "string"}, {"type": "string"}),
        ({"type": "string", "pattern": "^(?=a)b"}, {"type": "string"}),
        ({"type": "string", "pattern": "^[a-c]$"}, {"type": "string", "pattern": "^[a-c]$"}),
        ({"properties": {"a": MOOD}}, {"properties": {"a": CLOSED_MOOD}, "additionalProperties": False}),
        ({"properties": {}, "additionalProperties": True}, {"properties": {}, "additionalProperties": True}),
        ({"properties": {}, "required": ["b"]}, {"properties": {}, "required": ["b"]}),
        ({"allOf": [MOOD]}, {"allOf": [MOOD]}),
        ({"const": MOOD}, {"const": MOOD}),
        ({"properties": {"pattern": {"type": "string"}}, "additionalProperties": False}, None),
        ({"$ref": "#/$defs/A", "$defs": {"A": MOOD}}, {"$ref": "#/$defs/x/$defs/A", "$defs": {"A": CLOSED_MOOD}}),
    ],
)
def test_a_schema_is_closed_and_refers_to_where_it_stands(schema: dict[str, Any], tidy: dict[str, Any] | None) -> None:
    assert closed_schema(schema, at="x") == (tidy or schema)


def test_a_grammar_carries_the_schema() -> None:
    head, _, rules = grammar({"type": "boolean"}).partition("\nstart: %json ")

    assert head == "%llguidance {}"
    assert orjson.loads(rules) == {
        "x-guidance": {"whitespace_flexible": False, "lenient": True},
        "type": "boolean",
    }


@pytest.mark.parametrize(
    ("schema", "text", "misfit"),
    [
        ({"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}}, '{"a": 1}', ""),
        (MOOD, '{"mood": "good", "more": 1}', ""),
        (MOOD, "Good.", "the answer is no JSON"),
        (MOOD, "{}", "the answer does not fit its schema: data must contain ['mood'] properties"),
        ({"uniqueItems": True}, "[1, 1]", "the answer does not fit its schema: data must contain unique items"),
        ({"pattern": "(a)\\1"}, '"ab"', "the answer does not fit its schema: data must match pattern (a)\\1"),
        ({"$ref": "#/$defs/A", "$defs": {"A": MOOD}}, '{"mood": "good"}', ""),
        (
            {"not": {"type": "string"}},
            '"x"',
            "the answer does not fit its schema: data must NOT match a disallowed definition",
        ),
    ],
)
def test_a_text_is_checked(schema: dict[str, Any], text: str, misfit: str) -> None:
    assert answer_check(schema)(text) == misfit


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "banana"}, "Unknown type"),
        ({"type": "string", "pattern": "(["}, "unterminated character set at position 1"),
        ({"$ref": "#/$defs/none"}, "Unresolvable ref: $defs"),
        ({"$ref": "https://e.test/x"}, "it refers to https://e.test/x, which is not fetched"),
        ({"$ref": "file:///etc/hosts"}, "it refers to file:///etc/hosts, which is not fetched"),
        ({"$ref": "other.json"}, "unknown url type: 'other.json'"),
        ({"properties": [1]}, "'list' object has no attribute 'items'"),
    ],
)
def test_a_schema_that_is_none_is_an_invalid_value_and_nothing_is_fetched(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        answer_check(schema)

    assert str(caught.value) == f"the schema of the answer cannot be read: {reason}"

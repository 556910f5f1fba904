"""Every rule of docs/wire-rules.md for OpenAI-compatible servers: what is refused, by which family, how strictly."""

from typing import Any

import pytest

from rows.openai import (
    ACCEPTED,
    BESIDE_TOOLS,
    COMPATIBLE,
    HELLO,
    MISTRAL,
    MISTRALS,
    OPENAI,
    REFUSED,
    SETTINGS,
    a_call,
    a_result,
    a_tool,
    calls,
    parts,
    says,
)
from tertulia.sim.openai.errors import OpenAIRefusal
from tertulia.sim.openai.rules import check, is_openai


def rule_of(refusal: OpenAIRefusal | None) -> str | None:
    return None if refusal is None else refusal.rule


def rules_of(body: Any) -> dict[tuple[str, str], str | None]:
    """The rule by which each family refuses a body, plain and strict."""
    ways = {"plain": False, "strict": True}
    return {
        (model, way): rule_of(check(body, model=model, strict=strict))
        for model in (OPENAI, COMPATIBLE)
        for way, strict in ways.items()
    }


@pytest.mark.parametrize(("rule", "when", "body"), REFUSED)
def test_refused_as_the_table_says(rule: str, when: str, body: Any) -> None:
    assert rules_of(body) == {
        (OPENAI, "plain"): rule if when[0] == "A" else None,
        (OPENAI, "strict"): None if when[0] == "-" else rule,
        (COMPATIBLE, "plain"): rule if when[1] == "A" else None,
        (COMPATIBLE, "strict"): None if when[1] == "-" else rule,
    }


@pytest.mark.parametrize("body", ACCEPTED)
def test_what_no_rule_names_is_accepted(body: Any) -> None:
    assert [where for where, rule in rules_of(body).items() if rule] == []


def test_settings_are_refused_by_the_models_that_do_not_take_them() -> None:
    for model, when, body in SETTINGS:
        refused = [rule_of(check(body, model=model, strict=strict)) for strict in (False, True)]
        expected = {"A": ["unsupported"] * 2, "S": [None, "unsupported"], "-": [None, None]}[when]
        assert refused == expected, (model, body)


def test_function_tools_are_refused_beside_an_effort_that_the_model_takes_without_them() -> None:
    for model, refused, body in BESIDE_TOOLS:
        found = [rule_of(check(body, model=model, strict=strict)) for strict in (False, True)]
        assert found == ["reasoning-with-tools" if refused else None] * 2, (model, body)


def test_mistral_takes_what_others_refuse() -> None:
    for body in MISTRALS:
        assert check(body, model=MISTRAL) is None
        assert check(body, model=COMPATIBLE) is not None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o", True),
        ("gpt-oss-120b", False),
        ("chatgpt-4o-latest", True),
        ("codex-mini", True),
        ("o3-mini", True),
        ("o", False),
        ("olmo-2", False),
        ("openai/gpt-4o", False),
        ("gemini-3.8-flash", False),
        ("", False),
    ],
)
def test_the_family_follows_from_the_id(model: str, expected: bool) -> None:
    assert is_openai(model) is expected


@pytest.mark.parametrize(
    ("model", "rule"),
    [("o1-mini-2024-09-12", "no-system"), ("o1-preview", "no-system"), ("o1", None), ("azure/o1-mini", None)],
)
def test_early_reasoning_models_know_no_system_role(model: str, rule: str | None) -> None:
    body = says({"role": "system", "content": "be good"}, HELLO)

    assert rule_of(check(body, model=model)) == rule


def test_what_a_model_refuses_is_said_in_the_words_of_the_service() -> None:
    found = [
        check(says(HELLO, reasoning_effort="max"), model="gpt-6-astra"),
        check(says(HELLO, reasoning_effort="low"), model="gpt-5.1-chat-latest"),
        check(says(HELLO, tools=[a_tool()]), model="gpt-6-luna"),
    ]

    assert [(one.rule, one.message, one.param, one.code) for one in found if one] == [
        (
            "unsupported",
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: "
            "'low', 'medium', 'high', and 'xhigh'.",
            "reasoning_effort",
            "unsupported_value",
        ),
        (
            "unsupported",
            "Unsupported value: 'reasoning_effort' does not support 'low' with this model. Supported values are: "
            "'medium'.",
            "reasoning_effort",
            "unsupported_value",
        ),
        (
            "reasoning-with-tools",
            "Function tools with reasoning_effort are not supported for gpt-6-luna in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "reasoning_effort",
            None,
        ),
    ]


def test_the_model_is_the_one_the_body_names() -> None:
    body = says(HELLO, model=OPENAI, foo=1)

    assert rule_of(check(body)) == "unknown-parameter"
    assert check(body, model=COMPATIBLE) is None
    assert check(body | {"model": 7}) is None


def test_a_server_may_take_other_parts_from_users() -> None:
    body = parts({"type": "audio_url", "audio_url": {"url": "x"}})

    assert check(body, model=COMPATIBLE, user_parts=frozenset({"audio_url"})) is None


INVALID = "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (
            says(HELLO, calls(a_call(), a_call("b"))),
            OpenAIRefusal(
                "unanswered",
                400,
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
                " 'tool_call_id'. The following tool_call_ids did not have response messages: a, b",
                INVALID,
                "messages.[1].role",
                None,
            ),
        ),
        (
            says(HELLO, a_result()),
            OpenAIRefusal(
                "orphan-result",
                400,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                " 'tool_calls'.",
                INVALID,
                "messages.[1].role",
                None,
            ),
        ),
        (
            parts({"type": "text", "text": "x"}, {"type": "audio_url"}),
            OpenAIRefusal(
                "part-type",
                400,
                "Invalid value: 'audio_url'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal',"
                " and 'file'.",
                INVALID,
                "messages[0].content[1].type",
                "invalid_value",
            ),
        ),
        (
            says(HELLO, {"role": "assistant", "content": [{"type": "file", "file": {}}]}),
            OpenAIRefusal(
                "part-type",
                400,
                "Invalid 'messages[1]'. Content blocks are expected to be either text or image_url type.",
                INVALID,
                "messages[1]",
                "invalid_value",
            ),
        ),
        (
            says(HELLO, temperature=99.0),
            OpenAIRefusal(
                "temperature",
                400,
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 99.0 instead.",
                INVALID,
                "temperature",
                "decimal_above_max_value",
            ),
        ),
        (
            says(HELLO, foo=1),
            OpenAIRefusal("unknown-parameter", 400, "Unknown parameter: 'foo'.", INVALID, "foo", "unknown_parameter"),
        ),
        (
            parts({"type": "image_url", "image_url": {}}),
            OpenAIRefusal(
                "part-data",
                400,
                "Missing required parameter: 'messages[0].content[0].image_url.url'.",
                INVALID,
                "messages[0].content[0].image_url.url",
                "missing_required_parameter",
            ),
        ),
    ],
)
def test_a_refusal_has_the_words_of_the_service(body: Any, refusal: OpenAIRefusal) -> None:
    assert check(body, model=OPENAI) == refusal

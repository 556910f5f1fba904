"""Every rule of docs/wire-rules.md is named where it is broken, plain and strict, and nowhere else."""

from typing import Any

import orjson
import pytest

from rows import gemini, openai
from tertulia.wire import Violation, lint
from tertulia.wire.generations import family, generation
from tertulia.wire.rules import GEMINI_RULES, OPENAI_RULES


def named(body: Any, model: str, *, strict: bool) -> set[str]:
    return {violation.rule for violation in lint(body, model=model, strict=strict)}


def grade(rule: str, plain: set[str], strict: set[str]) -> str:
    """How a body was taken: its rule named always (A) or in strict only (S), another in strict (x), or none (-)."""
    if rule in plain and rule in strict:
        return "A"
    if rule in strict and not plain:
        return "S"
    return "x" if strict else "-"


@pytest.mark.parametrize("row", gemini.ROWS, ids=lambda row: row.rule)
def test_gemini_rules_are_named_as_the_table_says(row: gemini.Row) -> None:
    expected = dict(zip(gemini.MODELS.values(), row.grades, strict=True))

    found = {
        model: "x" if strict and expected[model] == "x" else grade(row.rule, plain, strict)
        for model in expected
        for plain, strict in [[named(row.body, model, strict=strict) for strict in (False, True)]]
    }

    assert found == expected


@pytest.mark.parametrize("row", gemini.GOOD, ids=lambda row: f"{row.body}"[:60])
def test_nothing_is_named_in_a_good_gemini_request(row: gemini.Row) -> None:
    found = {model: lint(row.body, model=model, strict=True) for model in gemini.MODELS.values()}

    assert found == {model: [] for model in gemini.MODELS.values()}


@pytest.mark.parametrize(("rule", "when", "body"), [row for row in openai.REFUSED if "messages" in (row[2] or ())])
def test_openai_rules_are_named_as_the_table_says(rule: str, when: str, body: Any) -> None:
    found = {
        (model, strict): rule in named(body, model, strict=strict)
        for model in (openai.OPENAI, openai.COMPATIBLE)
        for strict in (False, True)
    }

    assert found == {
        (openai.OPENAI, False): when[0] == "A",
        (openai.OPENAI, True): when[0] in "AS",
        (openai.COMPATIBLE, False): when[1] == "A",
        (openai.COMPATIBLE, True): when[1] in "AS",
    }


@pytest.mark.parametrize("body", openai.ACCEPTED)
def test_nothing_is_named_in_a_good_openai_request(body: Any) -> None:
    found = {model: lint(body, model=model, strict=True) for model in (openai.OPENAI, openai.COMPATIBLE)}

    assert found == {openai.OPENAI: [], openai.COMPATIBLE: []}


def test_a_violation_says_rule_place_and_the_services_words() -> None:
    unsigned = gemini.model(gemini.call("look", None))
    request = gemini.said(gemini.user(gemini.text()), unsigned, gemini.user(gemini.result()))

    assert lint(request) == [
        Violation(
            rule="signature",
            where="contents[1].parts[0].functionCall",
            message=(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                "data, function call `default_api:look` , position 2. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            ),
        )
    ]


def test_a_request_may_be_bytes_or_text() -> None:
    body = orjson.dumps({"contents": []})

    assert lint(body) == lint(body.decode()) == lint({"contents": []})


@pytest.mark.parametrize("broken", [b"", b"{", b"\xff", "[1", b"null", b'"contents"'])
def test_what_is_no_json_object_is_named(broken: bytes | str) -> None:
    assert [violation.rule for violation in lint(broken)] == ["json"]


def test_the_format_is_told_by_its_messages() -> None:
    assert {violation.rule for violation in lint({"messages": []})} == {"no-messages"}
    assert {violation.rule for violation in lint({})} == {"no-contents"}


def test_settings_are_named_for_the_models_that_do_not_take_them() -> None:
    for model, when, body in openai.SETTINGS:
        named = [[one.rule for one in lint(body, model=model, strict=strict)] for strict in (False, True)]
        expected = {"A": [["unsupported"]] * 2, "S": [[], ["unsupported"]], "-": [[], []]}[when]
        assert named == expected, (model, body)


def test_function_tools_are_named_beside_an_effort_that_the_model_takes_without_them() -> None:
    for model, refused, body in openai.BESIDE_TOOLS:
        named = [[one.rule for one in lint(body, model=model, strict=strict)] for strict in (False, True)]
        assert named == [["reasoning-with-tools"] if refused else []] * 2, (model, body)


def test_mistral_takes_what_is_named_for_others() -> None:
    for body in openai.MISTRALS:
        assert lint(body, model=openai.MISTRAL, strict=True) == []
        assert lint(body, model=openai.COMPATIBLE, strict=True) != []


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gemini-1.5-pro", "2.0"),
        ("gemini-pro", "2.0"),
        ("models/gemini-2.5-flash-preview-09-2025", "2.5"),
        ("google/gemini-3-pro-preview", "3"),
        ("gemini-3.2-flash", "3.1"),
        ("gemini-3.5-flash", "3.5"),
        ("gemini-3.5-flash-lite-preview", "3.5-lite"),
        ("gemini-3.8-flash", "3.7"),
        ("gemini-flash-latest", "3.7"),
        ("something-else", "3.7"),
        ("gemini-5-neon", "4"),
        ("gemma-2-9b", "gemma-3"),
        ("gemma-4-31b-it", "gemma-4"),
    ],
)
def test_a_model_follows_the_rules_of_its_generation(model: str, expected: str) -> None:
    assert generation(model) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o", "openai"),
        ("o3-mini", "openai"),
        ("chatgpt-latest", "openai"),
        ("gpt-oss-120b", "compatible"),
        ("voxtral-small-latest", "mistral"),
        ("mistralai/mistral-large", "compatible"),
        ("openai/gpt-4o", "compatible"),
        ("olmo-2", "compatible"),
        ("gemini-3.8-flash", "compatible"),
    ],
)
def test_a_model_belongs_to_a_family(model: str, expected: str) -> None:
    assert family(model) == expected


def test_every_rule_says_who_refuses_it() -> None:
    rules = [*GEMINI_RULES.values(), *OPENAI_RULES.values()]

    assert [rule.name for rule in rules if not rule.always | rule.sometimes] == []
    assert [rule.name for rule in rules if rule.always & rule.sometimes] == []

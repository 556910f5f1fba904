"""Every Gemini rule of docs/wire-rules.md, for every generation, plain and strict."""

import pytest

from rows.gemini import GOOD, MODELS, ROWS, F, Row, Wire, call, hello, model, result, said, text, thinking, tooled, user
from tertulia.sim.gemini.catalogue import generation
from tertulia.sim.gemini.rules import GeminiRefusal, check


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_refused_as_the_table_says(row: Row) -> None:
    graded = dict(zip(MODELS.values(), row.grades, strict=True))
    refusals = {"A": (row.rule, row.rule), "S": (None, row.rule), "-": (None, None)}
    exact = {name: refusals[grade] for name, grade in graded.items() if grade != "x"}
    otherwise = [name for name, grade in graded.items() if grade == "x"]

    assert {name: (_plain_rule(row.body, name), _strict_rule(row.body, name)) for name in exact} == exact
    assert [name for name in otherwise if _strict_rule(row.body, name) is None] == []


@pytest.mark.parametrize("row", GOOD, ids=lambda row: f"{row.body}"[:60])
def test_accepted_by_all(row: Row) -> None:
    found = {name: (_plain_rule(row.body, name), _strict_rule(row.body, name)) for name in MODELS.values()}

    assert {name: rules for name, rules in found.items() if rules not in ((None, None), (None, "role"))} == {}


def _plain_rule(body: Wire, name: str) -> str | None:
    found = check(body, model=name, strict=False)
    return found.rule if found else None


def _strict_rule(body: Wire, name: str) -> str | None:
    found = check(body, model=name, strict=True)
    return found.rule if found else None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("models/gemini-1.5-pro", "2.0"),
        ("gemini-pro", "2.0"),
        ("gemini-2.0-flash-001", "2.0"),
        ("google/gemini-2.5-pro", "2.5"),
        ("gemini-3-pro-preview", "3"),
        ("gemini-3.4-flash", "3.1"),
        ("gemini-3.5-flash-lite-preview", "3.5-lite"),
        ("gemini-3.5-flash", "3.5"),
        ("gemini-3.6-flash", "3.6"),
        ("gemini-3.9-flash", "3.7"),
        ("gemini-flash-latest", "3.7"),
        ("gemini-pro-latest", "3.7"),
        ("something-else", "3.7"),
        ("gemini-4-argon", "4"),
        ("gemini-5.1-pro", "4"),
        ("gemma-2-9b", "gemma-3"),
        ("gemma-3n-e4b-it", "gemma-3"),
        ("gemma-4-31b-it", "gemma-4"),
    ],
)
def test_generation_of_an_id(name: str, expected: str) -> None:
    assert generation(name) == expected


def test_minimal_thinking_is_doubted_on_older_pro_models() -> None:
    body = thinking(thinkingLevel="minimal")

    assert check(body, model="gemini-3.1-pro-preview", strict=False) is None
    assert _strict_rule(body, "gemini-3.1-pro-preview") == "thinking-level"


@pytest.mark.parametrize(
    ("name", "budget", "refused"),
    [
        ("gemini-2.5-pro", 0, True),
        ("gemini-2.5-pro", 128, False),
        ("gemini-2.5-pro", 32768, False),
        ("gemini-2.5-flash", 0, False),
        ("gemini-2.5-flash-lite", 0, False),
        ("gemini-2.5-flash-lite", 511, True),
        ("gemini-2.5-flash-lite", 512, False),
        ("gemini-2.5-flash-lite", -1, False),
    ],
)
def test_thinking_budgets_of_2_5(name: str, budget: int, refused: bool) -> None:
    assert (check(thinking(thinkingBudget=budget), model=name, strict=False) is not None) == refused


def test_image_models_take_no_functions() -> None:
    found = check(tooled(F), model="models/gemini-3.1-flash-image", strict=False)

    assert found is not None
    assert found.message == "Function calling is not enabled for models/gemini-3.1-flash-image"


def test_functions_beside_built_in_tools_when_they_may_circulate() -> None:
    tools = [{"function_declarations": [F]}, {"google_search": {}}]
    body = hello(tools=tools, tool_config={"include_server_side_tool_invocations": True})

    assert check(body, model="gemini-3.8-flash") is None


def test_unknown_fields_are_listed_line_by_line() -> None:
    found = check(said(user({"text": "a", "foo": 1, "bar": 2})), model="gemini-3.8-flash")

    lines = [
        f"Invalid JSON payload received. Unknown name \"{name}\" at 'contents[0].parts[0]': Cannot find field."
        for name in ("foo", "bar")
    ]
    violations = [{"field": "contents[0].parts[0]", "description": line} for line in lines]
    detail = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}
    assert found == GeminiRefusal("unknown-field", "\n".join(lines), (detail,))


def test_missing_things_are_listed_line_by_line() -> None:
    found = check(said(user(), user({}), tools=[{}]), model="gemini-3.8-flash")

    message = (
        "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n"
        "* GenerateContentRequest.contents[1].parts[0].data: required oneof field 'data' must have one initialized"
        " field\n"
        "* GenerateContentRequest.tools[0].tool_type: required one_of 'tool_type' must have one initialized field\n"
    )
    assert found == GeminiRefusal("no-parts", message)


def test_an_unsigned_call_is_named_with_its_place() -> None:
    body = said(user(text()), model(call(signature=None)), user(result()))

    found = check(body, model="gemini-3.8-flash")

    assert found is not None
    assert found.message.endswith(
        "Additional data, function call `default_api:look` , position 2. Please refer to"
        " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )


def test_only_the_current_turn_needs_signatures() -> None:
    before = (user(text()), model(call(signature=None)), user(result()), model(text()))

    assert check(said(*before, user(text())), model="gemini-3.8-flash") is None
    assert _strict_rule(said(*before, user(text()), *before[1:3]), "gemini-3.8-flash") == "signature"


def test_more_than_100_mib_inline_is_too_much() -> None:
    def image(size: int) -> Wire:
        return {"inlineData": {"mimeType": "image/png", "data": "A" * size}}

    half = 50 * 1024 * 1024
    assert check(said(user(image(half), image(half))), model="gemini-3.8-flash") is None
    assert _strict_rule(said(user(image(half), image(half), image(1))), "gemini-3.8-flash") == "payload-size"

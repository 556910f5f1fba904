"""Tools whose arguments a given JSON schema checks, and tools that are called as functions."""

from typing import Any, assert_type

import pytest

from tertulia import Chat, RunContext, Tool, ToolCall, ToolResult, ToolSpec, tool
from tertulia.errors import InvalidValue
from tertulia.models import Scripted
from tertulia.models.gemini.encode import encode_request as gemini_request
from tertulia.models.openai.encode import encode_request as openai_request
from tertulia.store import Store
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Layer, Prompt, user

LOOK: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "depth": {"type": "integer", "default": 1}},
    "required": ["path"],
    "additionalProperties": False,
}
EITHER: dict[str, Any] = {"anyOf": [{"required": ["path"]}, {"required": ["address"]}]}


def looked(**arguments: Any) -> dict[str, Any]:
    return arguments


def with_schema(parameters: Any, function: Any = looked) -> Tool:
    return Tool(spec=ToolSpec(name="look", parameters=parameters), function=function)


async def called(given: Tool, **arguments: Any) -> ToolResult:
    call = ToolCall(id="c1", name=given.spec.name, args=arguments)
    [result] = await Toolbox([given]).run([call])
    assert call.args == arguments
    return result


@pytest.mark.parametrize(
    ("parameters", "arguments", "value"),
    [
        (LOOK, {"path": "a"}, {"path": "a", "depth": 1}),
        (EITHER, {"address": 5}, {"address": 5}),
        (True, {"anything": [1]}, {"anything": [1]}),
        ({}, {"path": "a"}, {"path": "a"}),
        ({"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}, {"path": "a"}, {"path": "a"}),
    ],
)
async def test_a_tool_with_a_schema_gets_the_arguments_that_fit_it(
    parameters: Any, arguments: dict[str, Any], value: Any
) -> None:
    result = await called(with_schema(parameters), **arguments)

    assert (result.value, result.failed) == (value, False)


@pytest.mark.parametrize(
    ("parameters", "arguments", "why"),
    [
        (LOOK, {}, "data must contain ['path'] properties"),
        (LOOK, {"path": "a", "depth": "2"}, "data.depth must be integer"),
        (LOOK, {"path": "a", "extra": 1}, "data must not contain {'extra'} properties"),
        (EITHER, {}, "data cannot be validated by any definition"),
    ],
)
async def test_arguments_that_do_not_fit_are_told_to_the_model(
    parameters: Any, arguments: dict[str, Any], why: str
) -> None:
    result = await called(with_schema(parameters), **arguments)

    assert (result.value, result.failed) == (f"The arguments do not fit: {why}", True)


SLOW = {"pattern": "^(a|aa)+$"}  # as `re` searches, each further letter takes 1.6 times as long


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({"properties": {"path": SLOW}}, {"path": "a" * 60 + "!"}),
        ({"properties": {"paths": {"items": {"anyOf": [SLOW, {}]}}}}, {"paths": ["a" * 60 + "!"] * 1_000}),
        ({"patternProperties": {SLOW["pattern"]: {}}}, {"a" * 60 + "!": 1}),
    ],
)
async def test_a_pattern_that_would_be_searched_for_ever_is_given_up(
    parameters: Any, arguments: dict[str, Any]
) -> None:
    result = await called(with_schema(parameters), **arguments)

    assert (result.value, result.failed) == (
        "The arguments do not fit: the patterns of the schema take too long to search",
        True,
    )


@pytest.mark.parametrize("parameters", [{"type": "strange"}, {"$ref": "https://example.org/schema"}])
def test_a_schema_that_cannot_be_read_is_refused_with_the_name_of_its_tool(parameters: Any) -> None:
    with pytest.raises(InvalidValue, match="the schema of tool 'look' cannot be read"):
        Toolbox([with_schema(parameters)])


@pytest.mark.parametrize("parameters", [False, None, "object"])
def test_parameters_that_are_no_schema_are_refused(parameters: Any) -> None:
    with pytest.raises(InvalidValue, match="parameters of tool 'look' are a JSON schema"):
        ToolSpec(name="look", parameters=parameters)


def test_a_schema_that_allows_everything_is_declared_as_an_object() -> None:
    anything = ToolSpec.of({"name": "look", "parameters": True})
    prompt = Prompt(layers=(Layer(name="trigger", turns=(user("hi"),)),), tools=(anything,))

    assert anything == with_schema(True).spec
    for body in (gemini_request(prompt, model="gemini-3.8-flash"), openai_request(prompt, model="gpt-5.6")):
        assert b'"type":"object"' in body.lower()


async def test_a_chat_calls_a_tool_with_a_schema_and_its_store_reads_it_again(store: Store) -> None:
    answers: list[Any] = [ToolCall(id="c", name="look", args={"path": "a"}), "Seen."]
    chat = Chat(Scripted(*answers), tools=[with_schema(True)], store=store, name="me")

    assert (await chat.send_message("look")).text == "Seen."
    (result,) = [part for turn in chat.history for part in turn.parts if isinstance(part, ToolResult)]
    assert result.value == {"path": "a"}


@tool
def pour(context: RunContext | None, drink: str, cups: int = 1) -> str:
    """Pour a drink."""
    return f"{cups} × {drink}" if context is None else f"{cups} × {drink} in {context.run_id}"


@tool(name="brew", timeout=5)
async def make(drink: str) -> list[str]:
    return [drink]


async def test_a_tool_is_called_as_its_function_is() -> None:
    assert_type(pour(None, "чай", 2), str)
    assert_type(await make("tea"), list[str])

    assert (pour(None, "чай", 2), pour(None, drink="tea"), await make("tea")) == ("2 × чай", "1 × tea", ["tea"])
    assert (pour.spec.name, make.spec.name, make.timeout) == ("pour", "brew", 5)
    assert (await called(pour, drink="tea")).failed is False


def test_a_tool_without_a_function_cannot_be_called() -> None:
    with pytest.raises(InvalidValue, match="the tool look has no function"):
        Tool(spec=ToolSpec(name="look"))()

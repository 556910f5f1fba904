"""Functions become declarations; every call gets an answer, in order, whatever goes wrong."""

import asyncio
from typing import Annotated, Literal

import msgspec
import pydantic
import pytest

from tertulia import Media, ToolCall, ToolResult, ToolSpec
from tertulia.errors import InvalidValue
from tertulia.toolbox.toolbox import Toolbox, tool
from tertulia.turns import cut_turn, user


def forecast(city: Annotated[str, "where"], days: int = 1, unit: Literal["C", "F"] = "C") -> dict[str, object]:
    """The weather to come.

    Not for the past.
    """
    return {"city": city, "days": days, "unit": unit}


async def echo(text: str) -> str:
    return text


def broken() -> None:
    raise RuntimeError("the pipe burst")


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Order(pydantic.BaseModel):
    item: str
    count: int = 1


async def answer(toolbox: Toolbox, name: str, **args: object) -> ToolResult:
    [result] = await toolbox.run([ToolCall(id="c1", name=name, args=args)])
    return result


def test_a_function_is_declared_by_its_signature_and_docstring() -> None:
    assert Toolbox([forecast]).specs == (
        ToolSpec(
            name="forecast",
            description="The weather to come.\n\nNot for the past.",
            parameters={
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "where"},
                    "days": {"type": "integer", "default": 1},
                    "unit": {"enum": ["C", "F"], "default": "C"},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        ),
    )


def test_a_function_without_parameters_is_declared_without_a_schema() -> None:
    assert Toolbox([broken]).specs == (ToolSpec(name="broken"),)


def test_own_types_are_declared_and_made() -> None:
    def area(corner: Point) -> int:
        return corner.x * corner.y

    [spec] = Toolbox([area]).specs
    result = asyncio.run(answer(Toolbox([area]), "area", corner={"x": 3, "y": 4}))

    assert spec.parameters["$defs"]["Point"]["required"] == ["x"]
    assert result == ToolResult(id="c1", name="area", value=12)


def test_pydantic_types_are_declared_and_made() -> None:
    def order(what: Order) -> str:
        return f"{what.count} {what.item}"

    [spec] = Toolbox([order]).specs
    result = asyncio.run(answer(Toolbox([order]), "order", what={"item": "tea", "count": "2"}))

    assert spec.parameters["required"] == ["what"]
    assert result == ToolResult(id="c1", name="order", value="2 tea")


def test_a_decorated_function_says_more() -> None:
    @tool(name="say", description="Say it again.", timeout=5, repeatable=True)
    async def repeat(text: str) -> str:
        return text

    assert (repeat.spec.name, repeat.spec.description, repeat.timeout, repeat.repeatable) == (
        "say",
        "Say it again.",
        5,
        True,
    )


async def test_results_come_in_the_order_of_the_calls_and_the_calls_run_side_by_side() -> None:
    meeting = asyncio.Barrier(3)

    async def meet(name: str) -> str:
        await meeting.wait()
        return name

    calls = [ToolCall(id=f"c{i}", name="meet", args={"name": str(i)}) for i in range(3)]

    results = await Toolbox([meet]).run(calls)

    assert results == [ToolResult(id=f"c{i}", name="meet", value=str(i)) for i in range(3)]


async def test_three_calls_one_late_and_one_unknown_get_three_results() -> None:
    @tool(timeout=0.01)
    async def wait() -> None:
        await asyncio.Event().wait()

    calls = [
        ToolCall(id="a", name="echo", args={"text": "hi"}),
        ToolCall(id="b", name="wait"),
        ToolCall(id="c", name="no"),
    ]

    assert await Toolbox([echo, wait]).run(calls) == [
        ToolResult(id="a", name="echo", value="hi"),
        ToolResult(id="b", name="wait", value="wait took longer than 0.01 seconds and was given up.", failed=True),
        ToolResult(id="c", name="no", value="There is no tool called 'no'. There are: echo, wait.", failed=True),
    ]


async def test_an_exception_is_an_answer() -> None:
    result = await answer(Toolbox([broken]), "broken")

    assert result == ToolResult(id="c1", name="broken", value="RuntimeError: the pipe burst", failed=True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "missing required field `city`"),
        ({"city": 5}, "Expected `str`, got `int`"),
        ({"city": "Kyiv", "unit": "K"}, "Invalid enum value 'K'"),
        ({"city": "Kyiv", "when": "now"}, "unknown field `when`"),
    ],
)
async def test_bad_arguments_are_told_before_the_function_is_called(args: dict[str, object], words: str) -> None:
    result = await answer(Toolbox([forecast]), "forecast", **args)

    assert result.failed
    assert words in result.value


async def test_numbers_in_quotes_are_numbers() -> None:
    assert (await answer(Toolbox([forecast]), "forecast", city="Kyiv", days="3")).value["days"] == 3


async def test_arguments_that_were_no_json_are_told() -> None:
    [result] = await Toolbox([echo]).run([ToolCall(id="a", name="echo", broken='{"text": ')])

    assert result == ToolResult(id="a", name="echo", value='The arguments were no JSON object: {"text": ', failed=True)


async def test_a_result_too_large_is_cut_and_says_so() -> None:
    def long() -> str:
        return "x" * 100

    result = await answer(Toolbox([long], largest=10), "long")

    note = "The result has 100 characters; only the first 10 are here."
    assert result == ToolResult(id="c1", name="long", value={"beginning": "x" * 10, "note": note})


async def test_of_a_result_a_million_characters_are_kept_and_what_is_shown_says_how_many_there_were() -> None:
    def long(letters: int) -> str:
        return "x" * letters

    whole = await answer(Toolbox([long]), "long", letters=1_000_000)
    cut = await answer(Toolbox([long]), "long", letters=10_000_000)

    note = "The result has 10000000 characters; only the first 1000000 are here."
    assert whole.value == "x" * 1_000_000
    assert cut.value == {"beginning": "x" * 1_000_000, "note": note}
    assert cut_turn(user(cut)).parts[0].value.endswith(f'xxx","note":"{note}"}}')  # type: ignore[union-attr]


async def test_what_a_tool_returns_becomes_plain_values() -> None:
    def point() -> list[Point]:
        return [Point(1, 2)]

    def order() -> Order:
        return Order(item="tea")

    toolbox = Toolbox([point, order])

    assert (await answer(toolbox, "point")).value == [{"x": 1, "y": 2}]
    assert (await answer(toolbox, "order")).value == {"item": "tea", "count": 1}


async def test_media_may_be_for_the_model_alone() -> None:
    picture = Media.of(b"png", mime="image/png")

    @tool(private_media=True)
    def look() -> Media:
        return picture

    def decide(private: bool) -> ToolResult:
        return ToolResult(name="", media=(picture,), private_media=private)

    calls = [
        ToolCall(name="look", id="1"),
        ToolCall(name="decide", id="2", args={"private": True}),
        ToolCall(name="decide", id="3", args={"private": False}),
    ]

    results = await Toolbox([look, decide]).run(calls)

    assert [(one.private_media, one.media) for one in results] == [
        (True, (picture,)),
        (True, (picture,)),
        (False, (picture,)),
    ]


async def test_media_go_beside_the_value() -> None:
    picture = msgspec.structs.replace(Media.of(b"png", mime="image/png"), rendered_text="a plot")

    def plot() -> Media:
        return picture

    expected = ToolResult(id="c1", name="plot", value={"media": "a plot"}, media=(picture,))
    assert await answer(Toolbox([plot]), "plot") == expected


def test_bare_declarations_are_left_to_the_caller() -> None:
    toolbox = Toolbox([echo, ToolSpec(name="book")])

    assert toolbox.is_for_caller(ToolCall(name="book"))
    assert not toolbox.is_for_caller(ToolCall(name="echo"))
    assert not toolbox.is_for_caller(ToolCall(name="unknown"))
    assert Toolbox([ToolSpec(name="book")]).is_for_caller(ToolCall(name="unknown"))


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([echo, echo], "two tools are called 'echo'"),
        ([5], "a tool is a function, a Tool or a ToolSpec, not 5"),
        ([lambda: 5], "is not one every service takes"),
        ([print], "have no place"),
    ],
)
def test_what_is_no_tool_is_said(tools: list[object], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        Toolbox(tools)  # type: ignore[arg-type]


def test_a_parameter_needs_a_type() -> None:
    def untyped(x):  # type: ignore[no-untyped-def]
        return x

    with pytest.raises(InvalidValue, match="untyped: its parameter 'x' needs a type"):
        Toolbox([untyped])


async def test_what_a_tool_throws_at_itself_is_its_own_failure() -> None:
    def exhausted() -> int:
        return next(iter([]))

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def impatient() -> None:
        raise TimeoutError("the database did not answer")

    toolbox = Toolbox([exhausted, cancelled, impatient])
    names = ["exhausted", "cancelled", "impatient"]
    results = await toolbox.run([ToolCall(id=name, name=name) for name in names])

    assert [result.value for result in results] == [
        "RuntimeError: StopIteration: ",
        "cancelled was cancelled from within.",
        "TimeoutError: the database did not answer",
    ]


async def test_a_failure_of_a_tool_is_logged_with_its_traceback_and_without_a_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = "AIza" + "x7Qf" * 9

    def look() -> str:
        """Look."""
        raise RuntimeError(f"nothing at https://service.example/?key={key}")

    await Toolbox([look]).run([ToolCall(id="a", name="look", args={})])

    assert "Traceback" in caplog.text
    assert "nothing at https://service.example/" in caplog.text
    assert key not in caplog.text

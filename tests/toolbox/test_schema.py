"""What can be called is declared as it is written, or refused in one line that says what to do."""

from collections.abc import AsyncIterator, Iterator
from functools import lru_cache, partial
from typing import Annotated, Any, Optional

import msgspec
import pydantic
import pytest

from tertulia import ToolCall, ToolResult, ToolSpec
from tertulia.errors import InvalidValue
from tertulia.toolbox.toolbox import Toolbox, tool


class Arguments(msgspec.Struct):
    n: int


class Order(pydantic.BaseModel):
    item: str


class Adder:
    """Adds what it was made with."""

    def __init__(self, more: int) -> None:
        self.more = more

    def __call__(self, n: int) -> int:
        return n + self.more

    def twice(self, n: int) -> int:
        """Add it twice."""
        return n + 2 * self.more

    @classmethod
    def one(cls, n: int) -> int:
        """Add one."""
        return cls(1)(n)


class AsyncAdder:
    async def __call__(self, n: int) -> int:
        """Add one, later."""
        return n + 1


def scale(n: int, factor: int, client: object) -> int:
    """Scale a number."""
    return n * factor


async def later(n: int, factor: int) -> int:
    """Scale it later."""
    return n * factor


@lru_cache
def square(n: int) -> int:
    """Square it."""
    return n * n


NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


async def answer(toolbox: Toolbox, **args: object) -> ToolResult:
    [spec] = toolbox.specs
    [result] = await toolbox.run([ToolCall(id="c1", name=spec.name, args=args)])
    return result


@pytest.mark.parametrize(
    ("given", "name", "description", "value"),
    [
        (partial(scale, factor=2, client=object()), "scale", "Scale a number.", 10),
        (partial(partial(scale, client=object()), factor=3), "scale", "Scale a number.", 15),
        (partial(later, factor=2), "later", "Scale it later.", 10),
        (Adder(4), "Adder", "Adds what it was made with.", 9),
        (AsyncAdder(), "AsyncAdder", "Add one, later.", 6),
        (Adder(4).twice, "twice", "Add it twice.", 13),
        (Adder.one, "one", "Add one.", 6),
        (square, "square", "Square it.", 25),
    ],
)
async def test_whatever_can_be_called_is_a_tool(given: Any, name: str, description: str, value: int) -> None:
    toolbox = Toolbox([given])

    assert toolbox.specs == (ToolSpec(name=name, description=description, parameters=NUMBER),)
    assert await answer(toolbox, n=5) == ToolResult(id="c1", name=name, value=value)


async def test_a_class_is_declared_by_what_makes_it() -> None:
    toolbox = Toolbox([Arguments])

    assert toolbox.specs[0].parameters == NUMBER
    assert await answer(toolbox, n=5) == ToolResult(id="c1", name="Arguments", value={"n": 5})


async def test_a_type_may_have_the_name_that_ours_has() -> None:
    def count(what: Arguments) -> int:
        return what.n

    toolbox = Toolbox([count])

    assert toolbox.specs[0].parameters == {
        "type": "object",
        "properties": {"what": {"$ref": "#/$defs/Arguments"}},
        "required": ["what"],
        "additionalProperties": False,
        "$defs": {
            "Arguments": {
                "title": "Arguments",
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
            }
        },
    }
    assert await answer(toolbox, what={"n": 3}) == ToolResult(id="c1", name="count", value=3)


async def test_pydantic_parameters_may_have_any_name_and_are_described() -> None:
    def order(_a: Order, model_config: Annotated[str, "how"] = "now", model_dump: int = 1) -> str:
        return f"{_a.item} {model_config} {model_dump}"

    toolbox = Toolbox([order])

    assert toolbox.specs[0].parameters == {
        "type": "object",
        "properties": {
            "_a": {"$ref": "#/$defs/Order"},
            "model_config": {"default": "now", "description": "how", "title": "Model Config", "type": "string"},
            "model_dump": {"default": 1, "title": "Model Dump", "type": "integer"},
        },
        "required": ["_a"],
        "additionalProperties": False,
        "$defs": {
            "Order": {
                "properties": {"item": {"title": "Item", "type": "string"}},
                "required": ["item"],
                "title": "Order",
                "type": "object",
            }
        },
    }
    result = await answer(toolbox, _a={"item": "tea"}, model_config="then")
    assert result == ToolResult(id="c1", name="order", value="tea then 1")


def google(city: str, days: Annotated[int, "how many, from 1 to 7"] = 1) -> str:
    """Look up the weather
    of a city.

    Ask for one city at a time:
    - by its name,
    - or by its code.

    Args:
        city: The name,
            as people write it.
        days (int): Not shown: the annotation says it.

    Returns:
        One line a day.

    Raises:
        KeyError: There is no such city.
    """
    return city


def numpy(city: str, days: int = 1) -> str:
    """Look up the weather.

    Parameters
    ----------
    city : str
        The name.
    days : int
        How many.
    """
    return city


def sphinx(city: str, days: int = 1) -> str:
    """Look up the weather.

    :param city: The name.
    :param days: How many.
    """
    return city


GOOGLE = "Look up the weather of a city.\n\nAsk for one city at a time:\n- by its name,\n- or by its code.\n\n"


@pytest.mark.parametrize(
    ("given", "description", "city", "days"),
    [
        (google, GOOGLE + "Returns: One line a day.", "The name, as people write it.", "how many, from 1 to 7"),
        (numpy, "Look up the weather.", "The name.", "How many."),
        (sphinx, "Look up the weather.", "The name.", "How many."),
    ],
)
def test_the_docstring_describes_the_tool_and_its_parameters(
    given: Any, description: str, city: str, days: str
) -> None:
    spec = tool(given).spec

    assert spec.description == description
    assert spec.parameters["properties"] == {
        "city": {"type": "string", "description": city},
        "days": {"type": "integer", "default": 1, "description": days},
    }


def noted(
    city: Annotated[str, pydantic.Field(description="The name.", min_length=2)],
    days: int = pydantic.Field(1, description="How many.", ge=1),
    unit: str = pydantic.Field(description="In what."),
) -> str:
    """Look up the weather."""
    return f"{city} {days} {unit}"


async def test_fields_of_pydantic_describe_and_check_parameters() -> None:
    toolbox = Toolbox([noted])

    assert toolbox.specs[0].parameters == {
        "type": "object",
        "properties": {
            "city": {"description": "The name.", "minLength": 2, "title": "City", "type": "string"},
            "days": {"default": 1, "description": "How many.", "minimum": 1, "title": "Days", "type": "integer"},
            "unit": {"description": "In what.", "title": "Unit", "type": "string"},
        },
        "required": ["city", "unit"],
        "additionalProperties": False,
    }
    assert (await answer(toolbox, city="Kyiv", unit="C")).value == "Kyiv 1 C"
    assert (await answer(toolbox, city="K", unit="C")).failed


def optional(
    a: Annotated[int, pydantic.Field(description="of pydantic", ge=1)] | None = None,
    b: Optional[Annotated[int, "a text"]] = None,  # noqa: UP045 (as people write it)
    c: Annotated[int | None, msgspec.Meta(description="of msgspec")] = None,
    d: Annotated[int, pydantic.Field(description=5)] = 1,
) -> str:
    """Args:
    c: Not shown: the annotation says it.
    d: Not shown either.
    """
    return f"{a} {b} {c} {d}"


async def test_notes_inside_an_optional_type_describe_and_check_a_parameter() -> None:
    toolbox = Toolbox([optional])
    properties = toolbox.specs[0].parameters["properties"]

    assert [one["description"] for one in properties.values()] == ["of pydantic", "a text", "of msgspec", "5"]
    assert (await answer(toolbox, a=0)).failed


def begins_with_args(city: str, days: int = 1) -> str:
    """
    Args:
        city: The name.
        days: How many.
    """
    return city


def test_a_docstring_may_begin_with_its_arguments() -> None:
    spec = tool(begins_with_args).spec

    assert (spec.description, [one["description"] for one in spec.parameters["properties"].values()]) == (
        "",
        ["The name.", "How many."],
    )


def test_a_field_that_pydantic_refuses_is_one_line() -> None:
    def faulty(code: Annotated[str, pydantic.Field(pattern="(")]) -> str:
        return code

    with pytest.raises(InvalidValue, match=r"^faulty: the types .* \(error: unclosed group\); use plain types"):
        tool(faulty)


def numbers(n: int) -> Iterator[int]:
    yield from range(n)


async def numbers_later(n: int) -> AsyncIterator[int]:
    yield n


class Numbers:
    def __call__(self, n: int) -> Iterator[int]:
        yield n


def misspelt(n: "Nubmer") -> int:  # type: ignore[name-defined]  # noqa: F821
    return 0


def unspeakable(n: Iterator[Toolbox]) -> int:
    return 0


UNREADABLE = "give the model a function of yours, with types, that calls it"
ONCE = "a tool answers once; return a list of what it yields"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (int, f"int: its parameters cannot be read (no signature found for builtin type <class 'int'>); {UNREADABLE}"),
        (partial(max, 1), "max: its parameters cannot be read (no signature found for builtin <built-in function max>"),
        (misspelt, f"misspelt: its parameters cannot be read (name 'Nubmer' is not defined); {UNREADABLE}"),
        (numbers, f"numbers: {ONCE}"),
        (partial(numbers, n=3), f"numbers: {ONCE}"),
        (numbers_later, f"numbers_later: {ONCE}"),
        (Numbers(), f"Numbers: {ONCE}"),
        (len, "len: a tool's parameters have names; *args, **kwargs and / have no place"),
        (unspeakable, "unspeakable: the types of its parameters cannot be declared to a model (Unable to generate "),
    ],
)
def test_what_cannot_be_declared_is_refused_in_one_line(given: Any, words: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        Toolbox([given])

    assert str(refused.value).startswith(words)
    assert len(str(refused.value).splitlines()) == 1


def test_the_name_that_was_given_is_the_one_in_the_refusal() -> None:
    with pytest.raises(InvalidValue, match=r"^count: a tool answers once"):
        tool(name="count")(numbers)

"""A tool's first parameter of type RunContext is filled in, and the model is told nothing of it."""

from functools import partial
from typing import Annotated, Any, Optional

import pydantic
import pytest

from people import NOON
from tertulia import RunContext, ToolCall, ToolResult, ToolSpec
from tertulia.errors import InvalidValue
from tertulia.toolbox.toolbox import Toolbox, tool

CONTEXT = RunContext(run_id="r1", step=2, call=5, now=NOON)
NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


class Order(pydantic.BaseModel):
    item: str


def plain(run: RunContext, n: int) -> str:
    return f"{run.idempotency_key} {n}"


def in_quotes(run: "RunContext", n: "int") -> str:
    return plain(run, n)


def described(run: Annotated[RunContext, "the run"], n: int) -> str:
    return plain(run, n)


def or_none(n: int, run: RunContext) -> str:
    return plain(run, n)


def optional(run: Optional[RunContext], n: int) -> str:  # noqa: UP045 (what people write)
    assert run is not None
    return plain(run, n)


def with_default(run: RunContext | None = None, *, n: int) -> str:
    assert run is not None
    return plain(run, n)


def by_name_alone(*, run: RunContext, n: int) -> str:
    return plain(run, n)


async def later(run: Annotated[RunContext | None, "the run"], n: int) -> str:
    assert run is not None
    return plain(run, n)


class Counter:
    def method(self, run: RunContext, n: int) -> str:
        return plain(run, n)

    @classmethod
    def of_class(cls, run: RunContext, n: int) -> str:
        return plain(run, n)

    def __call__(self, run: RunContext, n: int) -> str:
        return plain(run, n)


@pytest.mark.parametrize(
    "given",
    [
        plain, in_quotes, described, optional, with_default, by_name_alone, later, Counter().method, Counter.of_class,
        Counter(), partial(or_none, 7), tool(repeatable=True)(plain),
    ],
)  # fmt: skip
async def test_the_first_parameter_is_filled_in_and_not_in_the_schema(given: Any) -> None:
    toolbox = Toolbox([given])
    [spec] = toolbox.specs
    n = {} if isinstance(given, partial) else {"n": 7}

    [result] = await toolbox.run([ToolCall(id="a", name=spec.name, args=n)], CONTEXT)

    assert spec.parameters == ({} if isinstance(given, partial) else NUMBER)
    assert result == ToolResult(id="a", name=spec.name, value="r1-2-5 7")


async def test_the_model_cannot_fill_it_in_itself() -> None:
    [result] = await Toolbox([plain]).run([ToolCall(id="a", name="plain", args={"n": 1, "run": {"run_id": "x"}})])

    assert (result.failed, "unknown field `run`" in str(result.value)) == (True, True)


async def test_pydantic_parameters_may_follow_it() -> None:
    def order(run: RunContext, what: Order) -> str:
        return f"{run.run_id} {what.item}"

    toolbox = Toolbox([order])

    [result] = await toolbox.run([ToolCall(id="a", name="order", args={"what": {"item": "tea"}})], CONTEXT)

    assert list(toolbox.specs[0].parameters["properties"]) == ["what"]
    assert result.value == "r1 tea"


async def test_calls_that_run_side_by_side_are_told_their_positions() -> None:
    calls = [ToolCall(id=str(n), name="plain", args={"n": n}) for n in range(3)]

    results = await Toolbox([plain]).run(calls, CONTEXT)

    assert [result.value for result in results] == ["r1-2-5 0", "r1-2-6 1", "r1-2-7 2"]


async def test_calls_of_no_run_are_a_run_of_their_own() -> None:
    seen: list[RunContext] = []

    def look(run: RunContext) -> None:
        seen.append(run)

    toolbox = Toolbox([look])
    await toolbox.run([ToolCall(id="a", name="look")])
    await toolbox.run([ToolCall(id="b", name="look")])

    assert len({run.run_id for run in seen}) == 2
    assert [(run.step, run.call, run.place, run.author, run.message) for run in seen] == [(0, 0, None, None, None)] * 2


def in_a_list(runs: list[RunContext]) -> None: ...


def or_text(run: RunContext | str) -> None: ...


def twice(run: RunContext, again: RunContext) -> None: ...


class MyContext(RunContext, frozen=True, kw_only=True):
    mine: int = 0


def of_my_own(run: MyContext) -> None: ...


@pytest.mark.parametrize(
    ("given", "parameter"),
    [(or_none, "run"), (in_a_list, "runs"), (or_text, "run"), (twice, "again"), (of_my_own, "run")],
)
def test_anywhere_else_it_is_refused_in_one_line(given: Any, parameter: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        Toolbox([given])

    assert str(refused.value) == (
        f"{given.__name__}: its parameter {parameter!r} cannot be filled in; "
        "RunContext is the first parameter of a tool, by itself or with None"
    )


def test_a_bare_declaration_says_what_it_says() -> None:
    spec = ToolSpec(name="book", description="Book it", parameters={"type": "object", "title": "RunContext"})

    assert Toolbox([spec]).specs == (spec,)

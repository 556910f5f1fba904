"""What a tool's function does, returns or raises is an answer, and holds nobody up."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest

from palaver import ToolCall, ToolResult
from palaver.agent.toolbox import Toolbox, tool


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class MuteValueError(ValueError, Mute):
    __str__ = Mute.__str__


class Unspeakable:
    def __str__(self) -> str:
        raise Mute

    __repr__ = __str__


class Picky(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        raise KeyError(self.n)


async def answer(function: Any, **args: object) -> ToolResult:
    toolbox = Toolbox([function])
    [result] = await toolbox.run([ToolCall(id="c1", name=toolbox.specs[0].name, args=args)])
    return result


async def test_tools_that_are_stuck_hold_up_no_later_one() -> None:
    release = threading.Event()

    @tool(timeout=0.01)
    def stuck() -> None:
        release.wait()

    def quick() -> str:
        return "here"

    toolbox = Toolbox([stuck, quick])
    late = await toolbox.run([ToolCall(id=str(index), name="stuck") for index in range(70)])
    [result] = await toolbox.run([ToolCall(id="c1", name="quick")])
    release.set()

    given_up = "stuck took longer than 0.01 seconds and was given up."
    assert late == [ToolResult(id=str(index), name="stuck", value=given_up, failed=True) for index in range(70)]
    assert result == ToolResult(id="c1", name="quick", value="here")


STUCK = """
import asyncio, threading
from palaver import ToolCall
from palaver.agent.toolbox import Toolbox, tool

@tool(timeout=0.01)
def stuck() -> None:
    threading.Event().wait()

print(asyncio.run(Toolbox([stuck]).run([ToolCall(id="c1", name="stuck")]))[0].value)
"""


def test_a_tool_that_is_stuck_does_not_hold_up_the_exit() -> None:
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=30, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (
        0,
        "stuck took longer than 0.01 seconds and was given up.\n",
        "",
    )


async def test_a_thread_sees_the_context_of_the_call() -> None:
    who: ContextVar[str] = ContextVar("who")
    who.set("Ada")

    def name() -> str:
        return who.get()

    assert await answer(name) == ToolResult(id="c1", name="name", value="Ada")


def leave() -> None:
    sys.exit(3)


async def leave_later() -> None:
    sys.exit("enough")


def interrupt() -> None:
    raise KeyboardInterrupt


def mute() -> None:
    raise Mute


def mute_value() -> None:
    raise MuteValueError


def unspeakable() -> Unspeakable:
    return Unspeakable()


def unspeakable_inside() -> list[Unspeakable]:
    return [Unspeakable()]


def unspeakable_result() -> ToolResult:
    return ToolResult(name="any", value=Unspeakable())


def picky(what: Picky) -> None:
    """Never called."""


def lazy() -> Iterator[int]:
    return (n for n in range(3))


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (leave, {}, "SystemExit: 3"),
        (leave_later, {}, "SystemExit: enough"),
        (interrupt, {}, "RuntimeError: KeyboardInterrupt: "),
        (mute, {}, "Mute: (it cannot be put into words)"),
        (mute_value, {}, "(it cannot be put into words)"),
        (unspeakable, {}, "Mute: (it cannot be put into words)"),
        (unspeakable_inside, {}, "Mute: (it cannot be put into words)"),
        (unspeakable_result, {}, "Mute: (it cannot be put into words)"),
        (picky, {"what": {"n": 1}}, "KeyError: 1"),
        (lazy, {}, "TypeError: a tool returns values, not a generator that is yet to give them"),
        (cancels_itself, {}, "cancels_itself was cancelled from within."),
    ],
)
async def test_whatever_a_tool_does_is_an_answer(function: Any, args: dict[str, object], words: str) -> None:
    assert await answer(function, **args) == ToolResult(id="c1", name=function.__name__, value=words, failed=True)


async def test_a_result_that_a_tool_makes_itself_holds_plain_values_too() -> None:
    def point() -> ToolResult:
        return ToolResult(name="any", value=Point(1, 2))

    assert await answer(point) == ToolResult(id="c1", name="point", value={"x": 1, "y": 2})


class Point(msgspec.Struct):
    x: int
    y: int

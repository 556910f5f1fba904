"""What a tool's function does, returns or raises is an answer, and holds nobody up."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest

from tertulia import Media, ToolCall, ToolResult
from tertulia.toolbox.toolbox import Toolbox, tool, tool_failure, tool_result


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class MuteValueError(ValueError, Mute):
    __str__ = Mute.__str__


class Odd(BaseException):
    pass


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
from tertulia import ToolCall
from tertulia.toolbox.toolbox import Toolbox, tool

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


async def interrupt_later() -> None:
    raise KeyboardInterrupt


async def odd() -> None:
    raise Odd("very")


async def generator_exit() -> None:
    raise GeneratorExit


def no_such_file() -> None:
    raise FileNotFoundError(2, "No such file", "caf\udce9.txt")


def media_of_none() -> ToolResult:
    return ToolResult(name="any", media=None)  # type: ignore[arg-type]


def media_of_text() -> ToolResult:
    return ToolResult(name="any", media=("x",))  # type: ignore[arg-type]


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


UNREADABLE = "this ToolResult could not be read again from JSON: "


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (leave, {}, "SystemExit: 3"),
        (leave_later, {}, "SystemExit: enough"),
        (interrupt, {}, "RuntimeError: KeyboardInterrupt: "),
        (interrupt_later, {}, "KeyboardInterrupt: "),
        (odd, {}, "Odd: very"),
        (generator_exit, {}, "GeneratorExit: "),
        (no_such_file, {}, "FileNotFoundError: [Errno 2] No such file: 'caf\\udce9.txt'"),
        (media_of_none, {}, f"{UNREADABLE}Expected `array`, got `null` - at `$.media`"),
        (media_of_text, {}, f"{UNREADABLE}Expected `object`, got `str` - at `$.media[0]`"),
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


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (["caf\udce9.txt"], ["caf\ufffd.txt"]),
        ({None: 1}, {"None": 1}),
        ({True: 1}, {"True": 1}),
        ({(1, 2): 3}, {"(1, 2)": 3}),
        ({1: {2.5: (3,)}}, {"1": {"2.5": [3]}}),
        ([float("nan"), float("inf")], [None, None]),
        ([10**5000], [hex(10**5000)]),
        (2**70, 2**70),
        (b"\x00", "AA=="),
    ],
)
async def test_what_json_cannot_hold_is_made_plain_when_it_is_known(value: Any, plain: Any) -> None:
    def give() -> Any:
        return value

    result = await answer(give)

    assert result == ToolResult(id="c1", name="give", value=plain)
    assert msgspec.json.decode(msgspec.json.encode(result), type=ToolResult) == result


def test_words_that_json_cannot_hold_are_made_plain_too() -> None:
    words = tool_failure(ToolCall(id="c1", name="f"), "caf\udce9")

    assert words == ToolResult(id="c1", name="f", value="caf\ufffd", failed=True)


PLOT = msgspec.structs.replace(Media.of(b"png", mime="image/png"), rendered_text="a plot")
SOUND = msgspec.structs.replace(Media.of(b"ogg", mime="audio/ogg"), media_kind="voice")


def test_media_of_a_tool_name_no_file_and_are_known_by_their_bytes_or_an_id_of_their_own() -> None:
    chart = Media(media_kind="photo", unique_id="chart", uri="https://e.test/1", sha256="a" * 64)
    other = Media(media_kind="photo", unique_id="p1", file_id="f1", sha256="a" * 64)
    drawn = Media(media_kind="photo", unique_id="p1", data=b"png")
    sticker = Media(media_kind="sticker", unique_id="cats/😀")

    result = tool_result(ToolCall(id="c1", name="f"), [chart, chart, other, drawn, sticker])

    first, second, third, *_ = (one.unique_id for one in result.media)
    assert len({first, second, third, "chart", "p1"}) == 5
    assert result.media == (
        Media(media_kind="photo", unique_id=first, uri="https://e.test/1"),
        Media(media_kind="photo", unique_id=second, uri="https://e.test/1"),
        Media(media_kind="photo", unique_id=third),
        Media(media_kind="photo", unique_id=PLOT.unique_id, data=b"png"),
        sticker,
    )


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ([PLOT, SOUND], ToolResult(name="", value=[{"media": "a plot"}, {"media": "[voice]"}], media=(PLOT, SOUND))),
        ({"at": 1, "of": (PLOT,)}, ToolResult(name="", value={"at": 1, "of": [{"media": "a plot"}]}, media=(PLOT,))),
        (ToolResult(name="", media=[PLOT]), ToolResult(name="", media=(PLOT,))),  # type: ignore[arg-type]
        (
            ToolResult(name="", value=[SOUND], media=(PLOT,)),
            ToolResult(name="", value=[{"media": "[voice]"}], media=(PLOT, SOUND)),
        ),
    ],
)
async def test_media_go_beside_the_value_wherever_they_stand_in_it(returned: Any, expected: ToolResult) -> None:
    def give() -> Any:
        return returned

    assert await answer(give) == msgspec.structs.replace(expected, id="c1", name="give")


@pytest.mark.parametrize("thrown", [Odd, KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_what_one_tool_throws_takes_no_result_from_another(thrown: type[BaseException]) -> None:
    async def throw() -> None:
        raise thrown

    async def pay() -> str:
        return "paid"

    results = await Toolbox([throw, pay]).run([ToolCall(id="a", name="pay"), ToolCall(id="b", name="throw")])

    assert results == [
        ToolResult(id="a", name="pay", value="paid"),
        ToolResult(id="b", name="throw", value=f"{thrown.__name__}: ", failed=True),
    ]


class Stubborn:
    """A tool that goes on though it is cancelled, until it is let go."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.begun = asyncio.Event()

    async def dig(self) -> str:
        self.begun.set()
        while not self.let_go.is_set():
            with suppress(asyncio.CancelledError):
                await self.let_go.wait()
        return "done"


async def test_a_tool_that_does_not_heed_its_timeout_is_left_behind() -> None:
    stubborn = Stubborn()

    [result] = await Toolbox([stubborn.dig], timeout=0.01, grace=0.01).run([ToolCall(id="c1", name="dig")])
    stubborn.let_go.set()

    late = "dig took longer than 0.01 seconds and was given up."
    assert result == ToolResult(id="c1", name="dig", value=late, failed=True)


async def test_a_tool_that_does_not_heed_that_the_run_is_cancelled_is_left_behind() -> None:
    stubborn = Stubborn()
    running = asyncio.create_task(Toolbox([stubborn.dig], grace=0.01).run([ToolCall(id="c1", name="dig")]))
    await stubborn.begun.wait()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    stubborn.let_go.set()


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("half of it", ToolResult(id="c1", name="dig", value="half of it")),
        (
            RuntimeError("stopped"),
            ToolResult(id="c1", name="dig", value="dig took longer than 0.01 seconds and was given up.", failed=True),
        ),
    ],
)
async def test_what_a_late_tool_returns_when_it_is_stopped_is_its_result(last: Any, expected: ToolResult) -> None:
    async def dig() -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if isinstance(last, Exception):
                raise last from None
            return last

    assert await Toolbox([dig], timeout=0.01).run([ToolCall(id="c1", name="dig")]) == [expected]

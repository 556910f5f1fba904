"""Messages come line by line where there is no editor."""

import asyncio
from io import StringIO

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tertulia.platforms.terminal.input import EditorReader, InputReader, JsonReader, LineReader


async def all_of(reader: InputReader) -> list[str]:
    said = []
    while True:
        try:
            said.append(await reader.read())
        except EOFError:
            return said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", []),
        ("one\ntwo", ["one", "two"]),
        ("one\r\n\r\ntwo\r\n", ["one", "", "two"]),
        ("one\\\ntwo\\\n\nthree\n", ["one\ntwo\n", "three"]),
        ("one\\", ["one"]),
        ("one\\\ntwo\\\n", ["one\ntwo"]),
        ("\\", [""]),
    ],
)
async def test_a_backslash_joins_lines(typed: str, said: list[str]) -> None:
    assert await all_of(LineReader(StringIO(typed))) == said


async def test_people_are_prompted_and_left_on_a_new_line() -> None:
    prompts = StringIO()

    await all_of(LineReader(StringIO("one\\\ntwo\n"), prompts=prompts))

    assert prompts.getvalue() == "> . > \n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hello\\\n", "hello\\\n"),
        ('"one\\ntwo"\n', "one\ntwo"),
        ('{"a": 1}\n', '{"a": 1}\n'),
        ("12\n", "12\n"),
        ('"open\n', '"open\n'),
        (' "spaced"\n', "spaced"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
async def test_a_json_string_may_hold_line_breaks(line: str, said: str) -> None:
    assert await all_of(JsonReader(StringIO(line))) == [said]


async def typed_during_an_answer(keys: str, *, hold_back: bool = False) -> tuple[list[str], list[str]]:
    """Return the lines that were heard while nobody read, and those that were read afterwards."""
    heard: list[str] = []
    is_heard = asyncio.Event()

    def obey(line: str) -> bool:
        heard.append(line)
        if line == "/quit":
            is_heard.set()
        return line == "/stop"

    with create_pipe_input() as terminal, create_app_session(input=terminal, output=DummyOutput()):
        reader = EditorReader()
        with reader.watched(obey):
            terminal.send_text(f"{keys}\x04")
            await is_heard.wait()
            if hold_back:
                reader.hold_back()
        terminal.send_text("end\r")
        read = [await reader.read()]
        while not read[-1].endswith("end"):
            read.append(await reader.read())
    return heard, read


async def test_what_is_typed_during_an_answer_is_heard_at_once_and_read_afterwards() -> None:
    assert await typed_during_an_answer("one\r/stop\rtwo\rhalf ") == (
        ["one", "/stop", "two", "/quit"],
        ["one", "two", "half end"],
    )


async def test_what_is_typed_before_an_answer_is_stopped_is_put_into_the_next_line() -> None:
    assert await typed_during_an_answer("one\rtwo\r", hold_back=True) == (["one", "two", "/quit"], ["one\ntwoend"])

"""Messages come line by line where there is no editor."""

from io import StringIO

import pytest

from palaver.platforms.terminal.input import InputReader, JsonReader, LineReader


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

"""What a screen and a program get to see."""

import json
from io import StringIO
from typing import Any

import pytest

from palaver import Media, Part, Text, Thought, ToolCall, ToolResult, errors, model
from palaver.models import Finish, Response, Scripted, Usage
from palaver.platforms.terminal.choosing import Chosen
from palaver.platforms.terminal.showing import JsonLines, Screen, wants_colour

COMPLETE = Response(
    turn=model("42.", by="scripted"),
    finish=Finish(outcome="complete", reason="STOP"),
    usage=Usage(input=5, output=2),
)
ANSWER: list[Part] = [
    Thought(text="Let me "),
    Thought(text="see."),
    Text(text="I "),
    Text(text="count."),
    ToolCall(name="calculate", args={"expression": "6*7"}, signature="s"),
    ToolResult(name="calculate", value=42),
    Text(text="42."),
]


class Tty(StringIO):
    def isatty(self) -> bool:
        return True


def shown(show: Screen | JsonLines) -> None:
    for piece in ANSWER:
        show.piece(piece, 0.002 if isinstance(piece, ToolResult) else None)
    show.ended(COMPLETE)


def test_a_terminal_shows_thoughts_dimmed_and_tools_with_their_time() -> None:
    tty = Tty()

    shown(Screen(tty, tty, coloured=True))

    assert tty.getvalue() == (
        "\x1b[2mLet me \x1b[0m\x1b[2msee.\x1b[0m\n"
        "I count.\n"
        '\x1b[36m[calculate(expression="6*7")]\x1b[0m\n'
        "\x1b[36m[calculate gave 42 in 2 ms]\x1b[0m\n"
        "42.\n"
    )


def test_answers_alone_are_piped_on() -> None:
    out, notes = StringIO(), StringIO()

    shown(Screen(out, notes, coloured=False))

    assert out.getvalue() == "I count.\n42.\n"
    assert notes.getvalue() == 'Let me see.\n[calculate(expression="6*7")]\n[calculate gave 42 in 2 ms]\n'


@pytest.mark.parametrize(
    "text",
    ["\x1b[2J\x1b[31mhi", "\x1b]0;title\x07hi", "\x1b]8;;http://x\x1b\\hi", "h\x00\x08\x9bi", "\rhi\x7f", "\x1bhi"],
)
def test_what_a_model_says_does_not_steer_the_terminal(text: str) -> None:
    tty = Tty()

    Screen(tty, tty, coloured=True).piece(Text(text=text))

    assert tty.getvalue() == "hi"


def test_what_is_piped_on_is_left_as_it_is() -> None:
    out = StringIO()

    Screen(out, StringIO(), coloured=False).piece(Text(text="\x1b[1mhi"))

    assert out.getvalue() == "\x1b[1mhi"


def test_an_error_and_an_ending_stand_on_lines_of_their_own() -> None:
    tty = Tty()
    screen = Screen(tty, tty, coloured=False)

    screen.piece(Text(text="Hel"))
    screen.ended(Response(turn=model("Hel"), finish=Finish(outcome="cut", reason="MAX_TOKENS")))
    screen.piece(Media(media_kind="photo", unique_id="1"))
    screen.failed(errors.Overloaded("busy"))

    assert tty.getvalue() == (
        "Hel\n(the answer was cut: the limit of tokens was reached (MAX_TOKENS))\n"
        "[photo]\nbusy. Say it again in a little while.\n"
    )


def test_a_program_gets_an_object_a_line() -> None:
    out = StringIO()
    lines = JsonLines(out)

    lines.greet(Chosen(model=Scripted(), name="smollm2"), ["never shown"])
    shown(lines)
    lines.failed(errors.RateLimited("slow down", retry_after=2))
    lines.note("(stopped)")

    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"kind": "model", "model": "scripted", "small": True},
        {"kind": "thought", "text": "Let me "},
        {"kind": "thought", "text": "see."},
        {"kind": "text", "text": "I "},
        {"kind": "text", "text": "count."},
        {"kind": "tool_call", "name": "calculate", "args": {"expression": "6*7"}},
        {"kind": "tool_result", "name": "calculate", "value": 42, "seconds": 0.002},
        {"kind": "text", "text": "42."},
        {
            "kind": "response",
            "text": "42.",
            "model": "scripted",
            "finish": {"outcome": "complete", "reason": "STOP", "message": ""},
            "usage": {"input": 5, "cached": 0, "output": 2, "thought": 0},
            "kept": True,
        },
        {
            "kind": "error",
            "error": "RateLimited",
            "message": "slow down. Say it again in 2 s.",
            "retry_after": 2,
        },
        {"kind": "note", "text": "(stopped)"},
    ]


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        (Tty(), {"TERM": "xterm"}, True),
        (Tty(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Tty(), {"TERM": "dumb"}, False),
        (Tty(), {}, False),
        (StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    stream: Any, environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert wants_colour(stream) == coloured

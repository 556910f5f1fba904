"""What a screen and a program get to see."""

import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest

from tertulia import Media, Part, Text, Thought, ToolCall, ToolResult, errors, model
from tertulia.memory.values import Fact, Subject
from tertulia.model_choice import ModelChoice
from tertulia.models import Finish, Response, Scripted, Usage
from tertulia.platforms.terminal.output import JsonDisplay, ScreenDisplay, show_error, wants_colour
from tertulia.platforms.terminal.setup import PLACE

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


def shown(show: ScreenDisplay | JsonDisplay) -> None:
    for piece in ANSWER:
        show.piece(piece, 0.002 if isinstance(piece, ToolResult) else None)
    show.end(COMPLETE, COMPLETE.text)


def test_a_terminal_shows_thoughts_dimmed_and_tools_with_their_time() -> None:
    tty = Tty()

    shown(ScreenDisplay(tty, tty, coloured=True))

    assert tty.getvalue() == (
        "\x1b[2mLet me\x1b[0m\x1b[2m see.\x1b[0m\n"
        "I count.\n"
        '\x1b[36m[calculate(expression="6*7")]\x1b[0m\n'
        "\x1b[36m[calculate gave 42 in 2 ms]\x1b[0m\n"
        "42.\n"
    )


@pytest.mark.parametrize("length", [5, 500])
def test_a_failed_call_is_one_line(length: int) -> None:
    tty = Tty()
    screen = ScreenDisplay(tty, tty, coloured=False)

    screen.piece(ToolCall(id="a", name="remember", args={"text": "x" * length}))
    screen.piece(ToolResult(id="a", name="remember", value=f"bad {'y' * length}", failed=True), 0.002)

    (line,) = tty.getvalue().splitlines()
    assert len(line) < 80
    assert line.startswith('[remember(text="xxxxx')
    assert "failed: bad yyyyy" in line


def test_a_call_is_shown_with_its_result_and_without_one_when_nothing_is_awaited_any_more() -> None:
    out = StringIO()
    screen = ScreenDisplay(out, out, coloured=False)

    for name in "ab":
        screen.piece(ToolCall(id=name, name=name, args={}))
    screen.piece(ToolResult(id="b", name="b", value=2))
    screen.hide_waiting()
    screen.hide_waiting()

    assert out.getvalue().splitlines() == ["[b()]", "[b gave 2]", "[a()]"]


def test_answers_alone_are_piped_on() -> None:
    out, notes = StringIO(), StringIO()

    shown(ScreenDisplay(out, notes, coloured=False))

    assert out.getvalue() == "I count.\n42.\n"
    assert notes.getvalue() == 'Let me see.\n[calculate(expression="6*7")]\n[calculate gave 42 in 2 ms]\n'


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[31mred", r"\u001b[31mred"),
        ("\x1b]0;title\x07", r"\u001b]0;title\u0007"),
        ("nul \x00, backspace \x08, C1 \x9b, del \x7f", r"nul \u0000, backspace \u0008, C1 \u009b, del \u007f"),
        ("a \u202egnp.exe\u202c", r"a \u202egnp.exe\u202c"),
        ("\u2066isolated\u2069", r"\u2066isolated\u2069"),
        ("one\r\n\ttwo", "one\n\ttwo"),
        ("שלום\u200f, 你好, é, 👩‍👧", "שלום\u200f, 你好, é, 👩‍👧"),
    ],
)
def test_what_a_model_says_is_seen_and_does_not_steer_the_terminal(text: str, seen: str) -> None:
    whole, streamed = Tty(), Tty()

    for tty, pieces in ((whole, [text]), (streamed, [*text])):
        screen = ScreenDisplay(tty, tty, coloured=True)
        for piece in pieces:
            screen.piece(Text(text=piece))
        screen.end(COMPLETE, text)

    assert (whole.getvalue(), streamed.getvalue()) == (f"{seen}\n", f"{seen}\n")


def test_nor_do_thoughts_calls_results_and_notes() -> None:
    tty = Tty()
    screen = ScreenDisplay(tty, tty, coloured=False)

    screen.piece(Thought(text="\x1bc\n"))
    screen.piece(ToolCall(name="\x1bc", args={"\u202e": "\x9b"}))
    screen.piece(ToolResult(name="look", value="\x1bc"))
    screen.error("\u202ebusy", error="Overloaded")
    screen.note("\x1bc")

    assert not {"\x1b", "\x9b", "\u202e"} & set(tty.getvalue())


def test_nor_does_what_a_program_gets_and_it_gets_it_exactly() -> None:
    out = StringIO()

    JsonDisplay(out).piece(Text(text="\x1b[2J \x9b \u202e \r\n é"))

    assert out.getvalue() == '{"kind":"text","text":"\\u001b[2J \\u009b \\u202e \\r\\n é"}\n'
    assert json.loads(out.getvalue())["text"] == "\x1b[2J \x9b \u202e \r\n é"


def test_what_is_piped_on_is_left_as_it_is() -> None:
    out = StringIO()

    ScreenDisplay(out, StringIO(), coloured=False).piece(Text(text="\x1b[1mhi"))

    assert out.getvalue() == "\x1b[1mhi"


def test_an_error_and_an_ending_stand_on_lines_of_their_own() -> None:
    tty = Tty()
    screen = ScreenDisplay(tty, tty, coloured=False)

    screen.piece(Text(text="Hel"))
    screen.end(Response(turn=model("Hel"), finish=Finish(outcome="cut", reason="MAX_TOKENS")), "Hel")
    screen.piece(Media(media_kind="photo", unique_id="1"))
    screen.error("busy. Wait.", error="Overloaded")

    assert tty.getvalue() == (
        "Hel\n(the answer was cut: the limit of tokens was reached (MAX_TOKENS))\n[photo]\nbusy. Wait.\n"
    )


def test_a_program_gets_an_object_a_line() -> None:
    out = StringIO()
    lines = JsonDisplay(out)

    lines.greet(ModelChoice(model=Scripted(), name="smollm2"), ["never shown"])
    shown(lines)
    show_error(lines, errors.RateLimited("slow down", retry_after=2), "slow down. Say it again in 2 s.")
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


def facts(*texts: str) -> list[Fact]:
    about, now = Subject(platform="terminal", id="you"), datetime(2026, 1, 1, tzinfo=UTC)
    return [Fact(id="a", subject=about, text=text, place=PLACE, sources=("1",), learned_at=now) for text in texts]


def test_what_is_remembered_and_learned_is_a_dim_line() -> None:
    tty = Tty()
    screen = ScreenDisplay(tty, tty, coloured=True)

    screen.recollections(["Lives\n in Lviv.", "x" * 20, "Likes \x1b[2Jtea.", "Has a cat."])
    screen.facts(facts("Likes tea."))

    assert tty.getvalue() == (
        f"\x1b[2m(remembered: Lives in Lviv.; {'x' * 20}; Likes \\u001b[2Jtea.; …)\x1b[0m\n"
        "\x1b[2m(learned: Likes tea.)\x1b[0m\n"
    )


def test_programs_get_all_that_is_remembered_and_learned() -> None:
    out = StringIO()

    JsonDisplay(out).recollections(["Lives\nin Lviv.", "x" * 300])
    JsonDisplay(out).facts(facts("Likes tea.", "Has a cat."))

    learned = [{"id": "a", "text": text, "sources": ["1"]} for text in ("Likes tea.", "Has a cat.")]
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"kind": "recalled", "texts": ["Lives\nin Lviv.", "x" * 300]},
        {"kind": "learned", "facts": learned},
    ]


def test_lines_break_between_words_as_they_stream() -> None:
    tty = Tty()
    screen = ScreenDisplay(tty, tty, coloured=False)

    for piece in ["word " * 15, "unbro", "ken", " words"]:
        screen.piece(Text(text=piece))
    screen.end(COMPLETE, "")
    screen.note("note " * 20)

    assert tty.getvalue().splitlines() == [
        ("word " * 15).rstrip(),
        "unbroken words",
        ("note " * 16).rstrip(),
        ("note " * 4),
    ]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_while_nothing_comes_the_seconds_are_shown_and_leave_no_trace() -> None:
    tty, clock = Tty(), Clock()
    screen = ScreenDisplay(tty, tty, coloured=False, has_spinner=True, clock=clock)

    for clock.now in (100.0, 100.3, 101.0, 112.0):
        screen.show_waiting()
    screen.piece(Text(text="At last. "))
    for clock.now in (113.0, 120.0):
        screen.show_waiting()  # not in the middle of a line
    screen.end(COMPLETE, "")
    for clock.now in (121.0, 123.0):
        screen.show_waiting()  # nor for what is learned after the answer
    screen.hide_waiting()
    for clock.now in (130.0, 132.0):
        screen.show_waiting()
    screen.hide_waiting()
    screen.hide_waiting()

    assert tty.getvalue() == "\r\x1b[K⠋ 1 s\r\x1b[K⠋ 12 s\r\x1b[KAt last. \n\r\x1b[K⠋ 2 s\r\x1b[K"


def test_retries_are_one_line_in_place_and_the_seconds_are_those_of_the_whole_wait() -> None:
    tty, clock = Tty(), Clock()
    screen = ScreenDisplay(tty, tty, coloured=False, has_spinner=True, clock=clock)

    screen.show_waiting()
    for clock.now, wait in ((101.0, 1), (103.0, 2)):
        screen.retry(f"no {'connection ' * 6}\x1b", wait)
        screen.show_waiting()
    screen.note("(remembered: tea)")
    clock.now = 107.0
    screen.show_waiting()
    screen.piece(Text(text="At last."))

    why = f"no {'connection ' * 4}conn…"
    assert tty.getvalue() == (
        f"\r\x1b[K⠋ 1 s (asked again in 1 s: {why}\r\x1b[K⠋ 3 s (asked again in 2 s: {why}\r\x1b[K(remembered: tea)\n"
        f"\r\x1b[K⠋ 7 s (asked again in 2 s: {why}\r\x1b[KAt"
    )


def test_where_nothing_can_be_erased_a_retry_is_a_line() -> None:
    tty = Tty()
    screen = ScreenDisplay(tty, tty, coloured=False)

    screen.retry("busy", 1.0)

    assert tty.getvalue() == "(busy; asked again in 1 s)\n"


def test_what_takes_long_is_said_at_once() -> None:
    tty = Tty()

    ScreenDisplay(tty, tty, coloured=False, has_spinner=True, clock=Clock()).show_waiting("(loading qwen)")

    assert tty.getvalue() == "\r\x1b[K⠋ 0 s (loading qwen)"


def test_nothing_is_shown_meanwhile_where_nothing_can_be_erased() -> None:
    tty, clock = Tty(), Clock()
    screen = ScreenDisplay(tty, tty, coloured=False, clock=clock)

    for clock.now in (100.0, 130.0):
        screen.show_waiting()
    screen.hide_waiting()

    assert tty.getvalue() == ""

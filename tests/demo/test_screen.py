"""What is shown of a demo: the conversation, with what the model was sent beside it or below."""

import io
from collections.abc import Sequence

from rich.console import Console

from tertulia.demo.screen import INTRODUCTION, JsonScreen, PlainScreen, TerminalScreen
from tertulia.demo.timeline import (
    Check,
    Drafted,
    Killed,
    Learned,
    Observation,
    PromptShown,
    Resumed,
    Said,
    Scene,
    Started,
    ToolRan,
)

LAYERS = {"static": 400, "trigger": 44}
SEEN: Sequence[Observation] = (
    Scene(title="Memory"),
    Started(pid=7),
    Said(author="Ann", text="I'm allergic to nuts.", message_id="m1"),
    Learned(fact_id="f", about="Ann", text="Is allergic to nuts.", sources={"m1": "I'm allergic to nuts."}),
    PromptShown(run_id="r", step=0, layers=LAYERS, remembered=("Ann: Is allergic to nuts.",), end="May I?"),
    ToolRan(name="why", args={"fact": "f"}, result=["x" * 200]),
    PromptShown(run_id="r", step=1, layers=LAYERS, remembered=(), end="(the result of why)"),
    Drafted(author="Gryag", text="Better", message_id="b1"),
    Drafted(author="Gryag", text="Better not", message_id="b1"),
    Killed(pid=7, status=-9, words=2, open_runs=1, answers=0),
    Resumed(run_id="0123456789abcdef0123", pid=8),
    Drafted(author="Gryag", text="Better", message_id="b1"),
    Said(author="Gryag", text="Better not, Ann.", message_id="b1", reply_to="m1"),
    Scene(title="True now"),
    Check(text="one reply", held=True),
    Check(text="nothing lost", held=False),
)
RESULT = '["' + "x" * 117


def shown(*, width: int) -> list[str]:
    out = io.StringIO()
    screen = TerminalScreen(Console(file=out, width=width))
    for observation in SEEN:
        screen.show(observation)
    screen.close()
    screen.end(False)
    text = out.getvalue()
    return [line.rstrip() for line in text[text.index("\nMemory") + 1 :].splitlines()]


def test_plain_lines_show_an_answer_when_it_is_whole_or_cut_short() -> None:
    lines: list[str] = []
    screen = PlainScreen(lines.append)

    for observation in SEEN:
        screen.show(observation)
    screen.close()
    screen.end(True)

    assert lines == [
        INTRODUCTION,
        "\nMemory",
        "  process 7 runs the bot",
        "  Ann: I'm allergic to nuts.",
        "      learned of Ann: Is allergic to nuts.",
        "        from m1: “I'm allergic to nuts.”",
        "      sent to the model: 444 tokens",
        "        static 400 · trigger 44",
        "        remembered of Ann: Is allergic to nuts.",
        "        … “May I?”",
        '      tool why(fact="f")',
        f"        → {RESULT}…",
        "      sent in step 1: 444 tokens … (the result of why)",
        "  Gryag: Better not▌",
        "  kill -9 7, after 2 words",
        "      in the store: 1 open run, its prompt, no answer",
        "      resumes run 01234567… from its journal",
        "  Gryag: Better not, Ann.",
        "\nTrue now",
        "  ✓ one reply",
        "  ✗ nothing lost",
        "\nEvery check held. Now talk with a model: tertulia chat",
    ]


def test_a_wide_terminal_shows_beside_the_conversation_what_the_model_was_sent() -> None:
    lines = shown(width=120)

    left, right = zip(*(line.partition("│")[::2] for line in lines if "│" in line), strict=True)
    assert [line.strip() for line in left if line.strip()] == [
        "process 7 runs the bot",
        "Ann: I'm allergic to nuts.",
        "Gryag: Better not▌",
        "kill -9 7, after 2 words",
        "Gryag: (the same message) Better not, Ann.",
    ]
    assert [line.strip() for line in right][1:6] == [
        "learned of Ann: Is allergic to nuts.",
        "from m1: “I'm allergic to nuts.”",
        "sent to the model: 444 tokens",
        "static 400 · trigger 44",
        "remembered of Ann: Is allergic to nuts.",
    ]
    assert lines[-5:] == [
        "True now",
        "✓ one reply",
        "✗ nothing lost",
        "",
        "Some checks did not hold, which is a bug in Tertulia.",
    ]


def test_a_narrow_terminal_shows_it_below() -> None:
    lines = shown(width=60)

    assert lines[:8] == [
        "Memory",
        "process 7 runs the bot",
        "Ann: I'm allergic to nuts.",
        "      learned of Ann: Is allergic to nuts.",
        "        from m1: “I'm allergic to nuts.”",
        "      sent to the model: 444 tokens",
        "        static 400 · trigger 44",
        "        remembered of Ann: Is allergic to nuts.",
    ]
    assert max(map(len, lines)) <= 60


def test_json_is_one_object_a_line() -> None:
    lines: list[str] = []
    screen = JsonScreen(lines.append)

    screen.show(Said(author="Ann", text="Hello.\nYou?", message_id="m1"))
    screen.close()
    screen.end(True)

    assert lines == [
        '{"kind":"said","author":"Ann","text":"Hello.\\nYou?","message_id":"m1","reply_to":null}',
        '{"kind":"end","held":true}',
    ]

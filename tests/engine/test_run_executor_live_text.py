import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tertulia.engine.run_executor import LiveText, LiveTexts
from tertulia.models.base import Response
from tertulia.parts import Text
from tertulia.run.model_calls import AttemptFailed
from tertulia.tasks.blocks import parse
from tertulia.turns import model

_PIECES = [
    "```", "~~~", "````", "markdown", "md", "py", "\n", "\n", "# «send»", "# «sned»", " # «wait»", "# «Кобзар»", "hi",
    " ", "<think>", "</think>", "\ufeff", "\r\n",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join)


def shown(text: str) -> str:
    speech = LiveText("")
    return "".join([*map(speech.feed, text), speech.finish()])


@pytest.mark.parametrize(
    "text",
    [
        "```markdown\nOh\n# «send»\nhi\n```",
        "```\n  # «send»\nhi\n```",
        "```\n# «sned» hi\n```",
        "```\n\n<think>b</think># «send»\nhi\n```",
    ],
)
def test_nothing_is_shown_of_what_may_be_a_fence_around_blocks(text: str) -> None:
    assert shown(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "```md\n# «send»\nhi",
        "```markdown",
        "```\ncode\n```",
        "```py\n# «send»\n```",
        "```\n# «Кобзар»\n```",
        "``",
        "Hi\n```md\n",
    ],
)
def test_other_code_is_shown(text: str) -> None:
    assert shown(text) == text.rstrip()


@given(TEXTS)
@example("```markdown\nOh\n# «send»\nhi\n```")
def test_nothing_is_shown_early_but_what_is_said(text: str) -> None:
    assert shown(text).strip() in parse(text).text


def test_of_several_responses_those_that_failed_are_not_shown() -> None:
    texts = LiveTexts(lambda: LiveText(""))
    said = [
        texts.feed(piece)
        for piece in (
            Text(text="One "),
            AttemptFailed(),
            Text(text="Two "),
            Response(turn=model("Two ")),
            AttemptFailed(),
            Text(text="Three "),
            Response(turn=model("Three ")),
            Text(text="four"),
        )
    ]

    assert (said, texts.text) == (["One", "", "Two", "", "", "Three", "", "four"], "Three\n\nfour")


def test_an_attempt_that_fails_twice_takes_nothing_else_with_it() -> None:
    texts = LiveTexts(lambda: LiveText(""))
    for piece in (Text(text="One"), Response(turn=model("One")), Text(text="Two"), AttemptFailed(), AttemptFailed()):
        texts.feed(piece)

    assert texts.text == "One"

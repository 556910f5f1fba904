import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.run.live_text import LiveText
from palaver.tasks.blocks import parse

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
        "```md\n# «send»\nhi",
        "```\n\n<think>b</think># «send»\nhi\n```",
    ],
)
def test_nothing_is_shown_of_what_may_be_a_fence_around_blocks(text: str) -> None:
    assert shown(text) == ""


@pytest.mark.parametrize(
    "text", ["```\ncode\n```", "```py\n# «send»\n```", "```\n# «Кобзар»\n```", "``", "Hi\n```md\n"]
)
def test_other_code_is_shown(text: str) -> None:
    assert shown(text) == text.rstrip()


@given(TEXTS)
@example("```markdown\nOh\n# «send»\nhi\n```")
def test_nothing_is_shown_early_but_what_is_said(text: str) -> None:
    assert shown(text).strip() in parse(text).said

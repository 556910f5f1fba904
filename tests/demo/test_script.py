"""The scripted model answers from its prompt: it knows a fact only if memory put it there."""

import pytest

from tertulia.demo.script import EXPLAIN, LONG, MENU, RECALL, REMIND, REMINDER, answer
from tertulia.models.scripted import Line
from tertulia.parts import ToolCall, ToolResult
from tertulia.turns import Prompt, user

FACTS = '{\n  "key_facts": {"Allergy":"Is allergic to peanuts."},\n}'


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (
            Prompt.of(FACTS, RECALL),
            "Better not: satay is made of peanuts, and I remember that Ann is allergic to peanuts.",
        ),
        (Prompt.of(RECALL), "I do not remember anything that speaks against it."),
        (Prompt.of(FACTS, EXPLAIN), ToolCall(name="recall", args={})),
        (Prompt.of(REMIND), ToolCall(name="remind_me", args={"when": "in 2 seconds", "text": REMINDER})),
        (Prompt.of(LONG), MENU),
        (Prompt.of("Hello?"), "I have no answer to that in my script."),
        (
            Prompt.of(user(ToolResult(name="recall", value=[{"id": "f1", "fact": "Is allergic."}]))),
            ToolCall(name="why", args={"fact": "f1"}),
        ),
        (Prompt.of(user(ToolResult(name="recall", value=[]))), "recall told me nothing that I can use: []"),
        (
            Prompt.of(user(ToolResult(name="why", value=[{"who": "Ann", "when": "today", "said": "No nuts."}]))),
            "Ann said so here, on today: “No nuts.”",
        ),
        (Prompt.of(user(ToolResult(name="remind_me", value={"due": "18:00"}))), "I will, at 18:00."),
    ],
)
def test_an_answer_follows_from_the_prompt(prompt: Prompt, expected: Line) -> None:
    assert answer(prompt) == expected

"""The script of the demo: the people, what they say, and the answers of the model to the prompts that it gets. Pure."""

import json
import re
from typing import Any

from tertulia.messages import Author
from tertulia.models.scripted import Line
from tertulia.parts import ToolCall, ToolResult
from tertulia.turns import Prompt

ANN, BO, CY = (Author(id=name.lower(), name=name) for name in ("Ann", "Bo", "Cy"))

FACT = "By the way, I'm allergic to peanuts."
SMALL_TALK = (
    (BO, "Good to know! Dinner is on Friday at eight."),
    (CY, "I'll bring bread and a big bowl of satay."),
    (BO, "And I'll make the salad."),
    (CY, "Great, see you there."),
)
RECALL = "Gryag, may I try Cy's satay?"
EXPLAIN = "Gryag, how do you know that?"
REMIND = "Gryag, remind me in 2 seconds to take the bread out."
LONG = "Gryag, write down the menu for all of us, please."

REMINDER = "Cy, take the bread out!"
MENU = (
    "Here is the menu for Friday. To begin with there is Bo's salad, with tomatoes, olives and a lot of fresh mint. "
    "Then comes the bread of Cy, warm from the oven, with butter and a bowl of satay that stands on the other side of "
    "the table, far away from Ann. For Ann there is hummus instead. And to end with, there are baked apples with "
    "honey for everybody, without a single nut."
)


def answer(prompt: Prompt) -> Line:
    """Return the scripted answer. What it says of people and tools is read from the prompt, and from nowhere else."""
    last = prompt.turns[-1]
    results = [part for part in last.parts if isinstance(part, ToolResult)]
    if results:
        return _after_tool(results[-1].name, results[-1].value)
    if RECALL in last.text:
        return _from_memory(prompt)
    if EXPLAIN in last.text:
        return ToolCall(name="recall", args={})
    if REMIND in last.text:
        return ToolCall(name="remind_me", args={"when": "in 2 seconds", "text": REMINDER})
    return MENU if LONG in last.text else "I have no answer to that in my script."


def _after_tool(name: str, value: Any) -> Line:
    match name, value:
        case "recall", [{"id": fact_id}, *_]:
            return ToolCall(name="why", args={"fact": fact_id})
        case "why", [{"who": who, "when": when, "said": said}, *_]:
            return f"{who} said so here, on {when}: “{said}”"
        case "remind_me", {"due": due}:
            return f"I will, at {due}."
    return f"{name} told me nothing that I can use: {value}"


def _from_memory(prompt: Prompt) -> str:
    """Answer from the facts about the author that the prompt holds."""
    found = re.search(r'"key_facts": (\{.*\})', "\n".join(turn.text for turn in prompt.turns))
    facts = json.loads(found[1]).values() if found else ()
    allergy = next((fact for fact in facts if "allergic" in fact), None)
    if allergy is None:
        return "I do not remember anything that speaks against it."
    return f"Better not: satay is made of peanuts, and I remember that Ann {allergy[0].lower()}{allergy[1:]}"

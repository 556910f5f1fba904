"""What stands for media in a prompt, and never comes back from a model."""

import pytest

from conversation.engines import GROUP, Recorded, engine_with, said, talked
from palaver.messages import Quote
from palaver.models.scripted import Scripted
from palaver.parts import Media, Text
from palaver.prompt.media_markers import markers_in
from palaver.turns import Layer, Prompt, user

POLL = Media(media_kind="poll", unique_id="p1")
HEADER = "From: Alice (1) — id: 1"
BLOCK = (
    "Here is the current conversation context (last up to 60 messages):\n\n"
    "```\nAlice: look [Image] [Audio x2] [REPLY TO THIS]\n```\n\n[RESPOND]"
)


@pytest.mark.parametrize(
    ("layer", "markers"),
    [
        (Layer(name="trigger", turns=(user(HEADER, "[poll part]"),)), {"[poll part]"}),
        (Layer(name="static", turns=(user("[#7f3a] Person\nlook [my story part]"),)), {"[my story part]"}),
        (Layer(name="trigger", turns=(user("a [spare part]"),)), set()),
        (Layer(name="trigger", turns=(user(POLL),)), {"[poll]"}),
        (Layer(name="trigger", turns=(user("[empty message]"),)), {"[empty message]"}),
        (Layer(name="static", instruction="# Persona\n[Image] is how you mark it."), set()),
        (Layer(name="static", instruction="**Original message**: [Image x2]\n[Video]"), {"[Image x2]"}),
        (Layer(name="static", instruction=f"You are Gryag.\n\n{BLOCK}"), {"[Image]", "[Audio x2]"}),
        (Layer(name="dynamic", turns=(user('{"quote": {"text": "[Video]"}, "memories": ["[Image]"]}'),)), {"[Video]"}),
        (Layer(name="dynamic", turns=(user('{"quote": {"text": "[Video]'),)), set()),
    ],
)
def test_markers_are_those_we_wrote(layer: Layer, markers: set[str]) -> None:
    assert markers_in(Prompt(layers=(layer,))) == markers


@pytest.mark.parametrize(
    ("profile", "marker"), [("headers", "[poll part]"), ("layered", "[poll]"), ("block", "[Attachment]")]
)
async def test_what_stood_for_media_in_a_prompt_is_not_said(profile: str, marker: str) -> None:
    platform = Recorded()
    answer = f"{marker} Nice, a [spare part].\n# «wait»\ndelay: 0\n# «send»\nSee {marker} here"

    async with engine_with(Scripted(answer), platform, profile=profile) as engine:
        await talked(engine, said("", parts=(Text(text="Gryag, look"), POLL), place=GROUP))

    assert platform.texts == ["Nice, a [spare part].", "See here"]


async def test_nor_is_that_of_a_message_that_is_replied_to() -> None:
    platform = Recorded()
    quote = Quote(message_id="9", parts=(Media(media_kind="photo", unique_id="p2"),))

    async with engine_with(Scripted("[Image] A cat."), platform) as engine:
        await talked(engine, said("What is it?", reply_to=quote))

    assert platform.texts == ["A cat."]

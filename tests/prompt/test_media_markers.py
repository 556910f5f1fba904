"""What stands for media in a prompt, and never comes back from a model."""

import pytest

from engine.engines import GROUP, engine_with, said, talked
from media import media_files
from tertulia import turns
from tertulia.messages import Quote
from tertulia.models.base import Model, TakesMedia
from tertulia.models.gemini.client import Gemini
from tertulia.models.local.client import Local
from tertulia.models.openai.client import OpenAI
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Opaque, Text
from tertulia.prompt.media_markers import markers_in
from tertulia.testing import RecordedPlatform
from tertulia.turns import Layer, Prompt, Role, user
from tertulia.wire.repair import repair_prompt
from tertulia.wire.rules import INLINE_LIMIT

FLASH = "gemini-3.8-flash"
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
        (Layer(name="static", turns=(user("[#7f3a] Person\nlook [photo], a [spare] one"),)), {"[photo]"}),
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


PHOTO = Media(media_kind="photo", unique_id="p3", mime="image/jpeg", data=media_files.image("JPEG"))
VOICE = Media(media_kind="voice", unique_id="v1", mime="audio/ogg", data=b"OggS")
ARCHIVE = Media(media_kind="document", unique_id="z1", mime="application/zip", data=b"PK")
SENT = (PHOTO, VOICE, ARCHIVE, Media(media_kind="sticker", unique_id="s1", rendered_text="a cat", data=b"x"))


@pytest.mark.parametrize(
    ("model", "markers"),
    [
        (Gemini("gemini-3.8-flash", key="k"), {"[document]"}),
        (OpenAI("gpt-5.6", key="k"), {"[document]", "[voice]"}),
        (OpenAI("deepseek-chat", key="k", vendor="deepseek"), {"[document]", "[voice]", "[photo]"}),
        (Local(), {"[document]", "[voice]", "[photo]"}),
        (Scripted("hi"), set()),
    ],
    ids=["gemini", "openai", "deepseek", "local", "scripted"],
)
def test_what_a_service_gets_as_words_is_a_marker(model: Model, markers: set[str]) -> None:
    prompt = Prompt(layers=(Layer(name="trigger", turns=(user("look", *SENT),)),))
    takes = model.takes if isinstance(model, TakesMedia) else None

    assert markers_in(prompt, takes=takes) == markers


def test_media_of_the_agents_own_are_words_for_a_service_that_takes_none_from_it() -> None:
    prompt = Prompt(layers=(Layer(name="buffered", turns=(turns.model("Here.", PHOTO),)),))

    assert markers_in(prompt, takes=OpenAI("gpt-5.6", key="k").takes) == {"[photo]"}
    assert markers_in(prompt, takes=Gemini("gemini-3.8-flash", key="k").takes) == set()


@pytest.mark.parametrize(("count", "markers"), [(1, set()), (2, {"[photo]", "[media]"})])
def test_of_more_than_a_request_may_carry_the_words_are_markers(count: int, markers: set[str]) -> None:
    large = Media(media_kind="photo", unique_id="p9", mime="image/jpeg", data=b"\xff" * (INLINE_LIMIT // 2))
    drawn = turns.model(Opaque(raw={"inlineData": {"mimeType": "image/png", "data": "AAAA"}}), by=FLASH)
    layer = Layer(name="trigger", turns=(user("draw"), drawn, user("look", *[large] * count)))
    prompt = Prompt(layers=(layer,))
    sent = repair_prompt(prompt, FLASH, wire="gemini")
    words = {part.text for turn in sent.turns for part in turn.parts if isinstance(part, Text)}

    assert markers_in(prompt, takes=Gemini(FLASH, key="k").takes) == markers
    assert words - {"draw", "look"} == markers


class Reader(Scripted):
    """A model whose service gets only words."""

    def takes(self, _: Media, __: Role) -> bool:
        return False


async def test_the_words_for_media_that_a_service_does_not_take_are_not_said() -> None:
    texts = []
    for model in (Scripted("[photo] Nice."), Reader("[photo] Nice.")):
        platform = RecordedPlatform()
        async with engine_with(model, platform) as engine:
            await talked(engine, said("", parts=(Text(text="Gryag, look"), PHOTO)))
        texts += platform.texts

    assert texts == ["[photo] Nice.", "Nice."]


@pytest.mark.parametrize(
    ("profile", "marker"), [("headers", "[poll part]"), ("layered", "[poll]"), ("block", "[Attachment]")]
)
async def test_what_stood_for_media_in_a_prompt_is_not_said(profile: str, marker: str) -> None:
    platform = RecordedPlatform()
    answer = f"{marker} Nice, a [spare part].\n# «wait»\ndelay: 0\n# «send»\nSee {marker} here"

    async with engine_with(Scripted(answer), platform, profile=profile) as engine:
        await talked(engine, said("", parts=(Text(text="Gryag, look"), POLL), place=GROUP))

    assert platform.texts == ["Nice, a [spare part].", "See here"]


async def test_nor_is_that_of_a_message_that_is_replied_to() -> None:
    platform = RecordedPlatform()
    quote = Quote(message_id="9", parts=(Media(media_kind="photo", unique_id="p2"),))

    async with engine_with(Scripted("[Image] A cat."), platform) as engine:
        await talked(engine, said("What is it?", reply_to=quote))

    assert platform.texts == ["A cat."]

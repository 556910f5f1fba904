"""Every profile with media in the window, in the batch and in its quote: what goes itself, and what as words."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import BOB, DELIMITER, DIRECT, GROUP, NOON, PERSONA, a_message, a_photo, a_quote, a_talk
from sizes import size
from tertulia.context import gather, sources
from tertulia.context.budget import Budget
from tertulia.context.gather import ContextOptions, InMemoryKnowledge, SourceInputs
from tertulia.context.log import InMemoryLog
from tertulia.messages import Message, Place
from tertulia.models.gemini.encode import encode_request as to_gemini
from tertulia.models.openai.encode import encode_request as to_openai
from tertulia.parts import Media, Text
from tertulia.profiles import PROFILES
from tertulia.sim.gemini import rules as gemini
from tertulia.sim.openai import rules as openai
from tertulia.turns import Prompt
from tertulia.wire import lint
from tertulia.wire.repair import repair_prompt

GEMINI, OPENAI = "gemini-3.8-flash", "gpt-5.6"
VOICE = Media(media_kind="voice", unique_id="voice", mime="audio/ogg", data=b"OggS")
PAGES = Media(media_kind="document", unique_id="pages", mime="application/pdf", data=b"%PDF-1.7", label="plan.pdf")
STICKER = Media(media_kind="sticker", unique_id="sticker", mime="image/webp", data=b"RIFF", label="🐦 from Birds")


def a_chat(place: Place) -> list[Message]:
    """Media at the numbers 2, 20, 40 and from 44 on; 46 is the same photo as 44."""
    talk = a_talk(48, place=place)
    media = {2: a_photo(unique_id="first"), 20: VOICE, 40: PAGES, 44: a_photo(unique_id="cat"), 45: STICKER}
    media |= {46: a_photo(unique_id="cat"), 47: a_photo(unique_id="dog")}
    return [replace(one, parts=(*one.parts, media[at])) if at in media else one for at, one in enumerate(talk)]


async def built(profile: str, place: Place) -> Prompt:
    """The prompt of an album of two that replies to the first photo, of which one is there already."""
    talk = a_chat(place)
    options = ContextOptions()
    given = PROFILES[profile].sources(SourceInputs(log=InMemoryLog(talk), memory=InMemoryKnowledge(), options=options))
    quote = a_quote(message_id="2", author=talk[2].author, parts=talk[2].parts)
    asks = Text(text="which one?")
    batch = [
        a_message(id="48", place=place, author=BOB, parts=(asks, a_photo(unique_id="new")), album="a", reply_to=quote),
        a_message(id="49", place=place, author=BOB, parts=(a_photo(unique_id="dog"),), album="a"),
    ]
    scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER, model=GEMINI)
    return PROFILES[profile].build(await gather(batch[0], [scene, *given], NOON, batch=batch))


def that_go(prompt: Prompt) -> list[str]:
    parts = (part for turn in prompt.turns for part in turn.parts)
    return [part.unique_id for part in parts if isinstance(part, Media) and part.has_content]


def words(prompt: Prompt) -> str:
    parts = (part for turn in prompt.turns for part in turn.parts)
    shown = (part.text if isinstance(part, Text) else part.words if isinstance(part, Media) else "" for part in parts)
    return "\n".join([prompt.instruction, *shown])


ASKED = ["new", "first"]  # the album, then what it replies to


@pytest.mark.parametrize(
    ("profile", "place", "go"),
    [
        ("tail", GROUP, ["cat", "dog", *ASKED]),
        ("layered", GROUP, ["cat", "dog", *ASKED]),
        ("plain", DIRECT, ["pages", "cat", "sticker", "dog", *ASKED]),
        ("tail", DIRECT, ["pages", "cat", "sticker", "dog", *ASKED]),
        ("layered", DIRECT, ["cat", "sticker", "dog", *ASKED]),
        ("native", GROUP, ["first", "voice", "pages", "cat", "sticker", "dog", "new"]),  # what is quoted is recent
        ("headers", GROUP, ["new", "dog", "first"]),
        ("block", GROUP, ["new", "dog", "first"]),
        ("single", GROUP, ["new", "dog", "first"]),
    ],
)
async def test_what_goes_itself(profile: str, place: Place, go: list[str]) -> None:
    assert that_go(await built(profile, place)) == go


@pytest.mark.parametrize(
    ("profile", "place", "told"),
    [
        ("tail", GROUP, "[photo, the same as in message 47, 2 photos back]"),
        ("layered", GROUP, "[photo, the same as in message 47, 2 photos back]"),
        ("plain", DIRECT, "[photo, the same as above, 2 photos back]"),
        ("native", GROUP, "[photo, the same as above, 2 photos back]"),
    ],
)
async def test_the_trigger_says_where_a_photo_is_that_goes_already(profile: str, place: Place, told: str) -> None:
    prompt = await built(profile, place)

    trigger = next(layer for layer in prompt.layers if layer.name == "trigger")
    assert told in words(Prompt(layers=(trigger,)))


@pytest.mark.parametrize("place", [GROUP, DIRECT], ids=["group", "direct"])
@pytest.mark.parametrize("profile", list(PROFILES))
async def test_every_request_with_media_is_legal(profile: str, place: Place) -> None:
    prompt = await built(profile, place)

    body = to_gemini(repair_prompt(prompt, GEMINI, wire="gemini"), model=GEMINI)
    assert lint(body, model=GEMINI, strict=True) == []
    assert gemini.check(json.loads(body), model=GEMINI, strict=True) is None

    body = to_openai(repair_prompt(prompt, OPENAI, wire="openai"), model=OPENAI)
    assert lint(body, model=OPENAI, strict=True) == []
    assert openai.check(json.loads(body), model=OPENAI, strict=True) is None


@given(
    st.sampled_from(list(PROFILES)),
    st.sampled_from([GROUP, DIRECT]),
    st.lists(st.sampled_from([None, VOICE, PAGES, STICKER, a_photo(), a_photo(unique_id="p2")]), max_size=60),
    st.integers(0, 24),
    st.builds(Budget, media=st.integers(0, 6), media_tokens=st.integers(0, 9_000), window=st.integers(100, 9_000)),
)
@settings(max_examples=size(20, full=300), deadline=None)
async def test_wherever_a_history_with_media_is_cut_the_request_is_legal_and_always_the_same(
    profile: str, place: Place, media: list[Media | None], history: int, budget: Budget
) -> None:
    said = a_talk(len(media), place=place)
    talk = [replace(one, parts=(*one.parts, its)) if its else one for one, its in zip(said, media, strict=True)]
    options = ContextOptions(history_size=history, budget=budget)
    scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER, model=GEMINI)
    target = a_message("what now?", id="target", place=place, author=BOB)

    bodies = []
    for _ in range(2):
        log = InMemoryLog(replace(one) for one in talk)  # nothing is cached
        given_sources = PROFILES[profile].sources(SourceInputs(log=log, memory=InMemoryKnowledge(), options=options))
        prompt = PROFILES[profile].build(await gather(target, [scene, *given_sources], NOON))
        bodies.append(to_gemini(repair_prompt(prompt, GEMINI, wire="gemini"), model=GEMINI))

    assert bodies[0] == bodies[1]
    assert lint(bodies[0], model=GEMINI, strict=True) == []

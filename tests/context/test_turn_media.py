"""Media that the agent's model and its tools made: they count, and become words, like all others."""

import json
from collections.abc import Collection

import pytest
from msgspec.structs import replace

from people import BOB, DELIMITER, DIRECT, GRYAG, NOON, PERSONA, a_message, a_photo, a_talk
from tertulia.context import Context, gather, sources
from tertulia.context.budget import Budget
from tertulia.context.log import InMemoryLog
from tertulia.context.media_boundary import MEDIA_MARKS
from tertulia.media.values import StoredFile
from tertulia.messages import Message
from tertulia.models.gemini.encode import encode_request as to_gemini
from tertulia.models.openai.encode import encode_request as to_openai
from tertulia.parts import Media, Text, ToolCall, ToolResult, media_in
from tertulia.profiles import PROFILES
from tertulia.sim.gemini import rules as gemini
from tertulia.sim.openai import rules as openai
from tertulia.turns import Turn, model, user
from tertulia.wire import lint
from tertulia.wire.repair import repair_prompt

FLASH = "gemini-3.8-flash"


def drawn(number: int) -> Media:
    return a_photo(unique_id=f"drawn {number}", data=None, sha256=f"{number:064x}", mime="image/png")


def chart_turns(number: int, media: Media) -> list[Turn]:
    """A call of a tool that returns a picture, and the answer with a picture that the model made."""
    call = ToolCall(name="chart", id=f"c{number}", signature="c2ln")
    return [
        model(call, by=FLASH),
        user(ToolResult(name="chart", id=call.id, value="ok", media=(media,))),
        model(Text(text="Here."), by=FLASH),
    ]


def a_day(pictures: int) -> InMemoryLog:
    """A chat in which every second message is the agent's, with a picture of a tool in its turns."""
    log = InMemoryLog()
    for at, said in enumerate(a_talk(2 * pictures, place=DIRECT, authors=(BOB, GRYAG))):
        if at % 2:
            log.add(replace(said, parts=(*said.parts, drawn(at))), turns=chart_turns(at, drawn(at)))
        else:
            log.add(said)
    return log


async def asked(log: InMemoryLog, *media: Media, model: str = FLASH, budget: Budget | None = None) -> Context:
    target = a_message("which one?", id="target", place=DIRECT, author=BOB, parts=(Text(text="which one?"), *media))
    scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER, model=model)
    return await gather(target, [scene, sources.window(log, media_marks=MEDIA_MARKS, budget=budget)], NOON)


def that_go(context: Context) -> list[str]:
    parts = [part for turns in context.turns.values() for turn in turns for part in turn.parts]
    parts += (part for message in (*context.window, *context.batch) for part in message.parts)
    return [one.unique_id for part in parts for one in media_in(part) if one.has_content]


async def test_pictures_of_tools_are_within_the_budget() -> None:
    budget = Budget(media=8)
    for pictures in range(1, 16):
        assert 0 < len(that_go(await asked(a_day(pictures), budget=budget))) <= 6


async def test_pictures_of_tools_become_words_in_steps() -> None:
    firsts = [that_go(await asked(a_day(pictures), budget=Budget(media=8)))[0] for pictures in range(1, 16)]

    assert len(set(firsts)) <= 4


async def test_a_picture_of_a_tool_that_a_person_sends_again_goes_once() -> None:
    again = replace(drawn(3), unique_id="again")

    context = await asked(a_day(3), again)

    assert that_go(context) == ["drawn 1", "drawn 3", "drawn 5"]
    assert context.target.parts[1].words == "[photo, the same as above, 2 photos back]"  # type: ignore[union-attr]


async def test_a_picture_that_a_model_made_and_does_not_get_back_is_not_above() -> None:
    log = InMemoryLog()
    made = drawn(0)
    log.add(a_message("draw", id="0", place=DIRECT, author=BOB))
    log.add(a_message(id="1", place=DIRECT, author=GRYAG, parts=(made,)), turns=[model(made, by="gpt-5.6")])

    gpt, flash = [await asked(log, replace(made, unique_id="again"), model=name) for name in ("gpt-5.6", FLASH)]

    assert (that_go(gpt), that_go(flash)) == (["again"], ["drawn 0"])


@pytest.mark.parametrize("profile", ["tail", "layered", "native"])
@pytest.mark.parametrize("many", [0, 1, 8])
async def test_turns_whose_media_are_words_are_legal(profile: str, many: int) -> None:
    log = a_day(6)
    signed = replace(drawn(100), signature="c2ln")
    made = [model(Text(text="Look.", signature="c2ln"), signed, by=FLASH)]
    log.add(a_message(id="100", place=DIRECT, author=GRYAG, parts=(drawn(100),)), turns=made)
    context = await asked(log, budget=Budget(media=many))
    prompt = PROFILES[profile].build(context)

    body = to_gemini(repair_prompt(prompt, FLASH, wire="gemini"), model=FLASH)
    assert lint(body, model=FLASH, strict=True) == []
    assert gemini.check(json.loads(body), model=FLASH, strict=True) is None
    body = to_openai(repair_prompt(prompt, "gpt-5.6", wire="openai"), model="gpt-5.6")
    assert lint(body, model="gpt-5.6", strict=True) == []
    assert openai.check(json.loads(body), model="gpt-5.6", strict=True) is None


async def test_a_picture_in_words_has_no_signature() -> None:
    log = InMemoryLog()
    log.add(a_message("draw", id="0", place=DIRECT, author=BOB))
    made = replace(drawn(0), signature="c2ln")
    log.add(a_message(id="1", place=DIRECT, author=GRYAG, parts=(made,)), turns=[model(made, by=FLASH)])

    context = await asked(log, budget=Budget(media=0))

    assert context.turns["1"][0].parts == (made.without_content(),)
    assert made.without_content().signature is None


class Files:
    """Stored files, by the unique ids of their media."""

    largest = 20_000_000

    def __init__(self, **files: StoredFile) -> None:
        self._files = files

    async def known_files(self, unique_ids: Collection[str]) -> dict[str, StoredFile]:
        return {name: file for name, file in self._files.items() if name in unique_ids}


def a_sound(name: str) -> Message:
    said = Media(media_kind="voice", unique_id=name, file_id=name, seconds=3, size=12_000)
    return a_message(id=name, place=DIRECT, author=BOB, parts=(said,))


@pytest.mark.parametrize("levels", [False, True])
async def test_the_length_of_a_stored_file_decides_not_what_its_sender_said(levels: bool) -> None:
    hours = StoredFile(sha256="0" * 64, size=12_000, mime="audio/ogg", seconds=3 * 3600)
    log = InMemoryLog([a_sound("first"), a_sound("second")])
    source = sources.levels if levels else sources.window
    scene = sources.agent_settings(persona=PERSONA, model=FLASH)
    target = a_message("and?", id="target", place=DIRECT, author=BOB)

    context = await gather(target, [scene, source(log, files=Files(second=hours))], NOON)

    shown = [part.has_content for one in context.history for part in one.parts if isinstance(part, Media)]
    assert shown == [True, False]

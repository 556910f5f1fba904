"""A bot from a config describes and hears media, over the simulators of the services."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes import Files
from media import media_files
from tertulia.app import open_bot
from tertulia.config import load_config
from tertulia.engine.engine import Engine
from tertulia.messages import Author, Message, Place
from tertulia.parts import Media, Text
from tertulia.platform import Platform
from tertulia.sim import GeminiSim, OpenAISim
from tertulia.sim.behaviours import Answer, Ask, Echo

PLACE = Place(platform="recorded", id="7", kind="direct")
GEMINI = 'model = "gemini-3.8-flash"\n[behavior]\ndebounce = 0\n'
PERSON = Author(id="7", name="Оля", language="uk")
FILES = {"photo": media_files.image("JPEG"), "voice": media_files.sound("ogg", "libopus")}


def a_file(media: Media) -> bytes:
    return FILES[media.media_kind]


class Sees:
    """A model that describes a picture, and answers all else."""

    def __init__(self) -> None:
        self.described: list[Any] = []

    def answer(self, ask: Ask) -> Answer:
        if ask.last_text.startswith("Describe this"):
            self.described.append(ask.request)
            return Answer(text="Червоне коло на зеленому.")
        return Answer(text="Гарно.")


@asynccontextmanager
async def a_bot(folder: Path, config: str, platform: Platform, **variables: str) -> AsyncIterator[Engine]:
    (folder / "tertulia.toml").write_text(config)
    environment = {"GEMINI_API_KEY": "k", **variables}
    async with (
        open_bot(load_config(folder / "tertulia.toml", environment), environment, platforms=[platform]) as engine,
        engine,
    ):
        yield engine


def sent(number: int, *parts: Media | Text) -> Message:
    return Message(id=str(number), place=PLACE, author=PERSON, parts=parts)


async def test_the_own_model_describes_a_photo_once_in_the_language_of_the_person(tmp_path: Path) -> None:
    eyes, platform = Sees(), Files(a_file)
    photo = Media(media_kind="photo", unique_id="u1", file_id="photo", mime="image/jpeg")
    async with (
        GeminiSim(behaviour=eyes) as sim,
        a_bot(tmp_path, GEMINI, platform, TERTULIA_GEMINI_BASE_URL=sim.url) as engine,
    ):
        for number in range(3):
            await engine.receive(sent(number, photo))
            await engine.settled()

    [described] = eyes.described
    [asked, question] = described["contents"][0]["parts"]
    assert asked["inlineData"]["mimeType"] == "image/jpeg"
    assert question["text"].endswith("leave words that can be read or heard as they are.")
    assert "the language with the tag uk" in question["text"]
    assert platform.texts == ["Гарно."] * 3


async def test_a_voice_is_transcribed_for_a_model_that_does_not_hear(tmp_path: Path) -> None:
    platform = Files(a_file)
    voice = Media(media_kind="voice", unique_id="v1", file_id="voice", mime="audio/ogg", seconds=4)
    config = (
        'model = "openai:gpt-4o"\n[behavior]\ndebounce = 0\n[media]\ndescribe = "none"\ntranscribe = "openai:whisper-1"'
    )
    said = "Купи молока."
    async with OpenAISim(behaviour=Echo(), transcribe=lambda data: said if data == FILES["voice"] else "?") as sim:
        variables = {"TERTULIA_OPENAI_BASE_URL": sim.url, "OPENAI_API_KEY": "k"}
        async with a_bot(tmp_path, config, platform, **variables) as engine:
            await engine.receive(sent(1, voice))
            await engine.settled()

    heard, answered = sim.requests
    assert (heard.path, answered.path) == ("/v1/audio/transcriptions", "/v1/chat/completions")
    assert "[voice of 4 seconds described: Купи молока.]" in str(answered.body["messages"])
    assert len(platform.texts) == 1


@pytest.mark.parametrize("profile", ["layered", "tail", "plain"])
async def test_the_words_for_a_voice_have_one_length_whenever_its_file_comes(tmp_path: Path, profile: str) -> None:
    """Its file has one second; how long it is by its message never changes."""
    voice = Media(media_kind="voice", unique_id="v1", file_id="voice", mime="audio/ogg", seconds=7)
    config = f'model = "openai:gpt-4o"\nprofile = "{profile}"\n[behavior]\ndebounce = 0\n'
    async with OpenAISim(behaviour=Echo()) as sim:
        variables = {"TERTULIA_OPENAI_BASE_URL": sim.url, "OPENAI_API_KEY": "k"}
        async with a_bot(tmp_path, config + '[media]\ndescribe = "none"', Files(a_file), **variables) as engine:
            for number in range(20):
                await engine.receive(sent(number, *([voice] if number == 0 else [Text(text=f"text {number}")])))
                await engine.settled()

    shown = [re.findall(r"\[voice[^\]]*\]", str(one.body["messages"])) for one in sim.requests]
    assert shown == [["[voice of 7 seconds]"]] * 20


@pytest.mark.parametrize("describe", ['"none"', '"gemini-2.5-flash"'])
async def test_a_config_says_who_describes(tmp_path: Path, describe: str) -> None:
    eyes = Sees()
    photo = Media(media_kind="photo", unique_id="u1", file_id="photo", mime="image/jpeg")
    config = f"{GEMINI}[media]\ndescribe = {describe}"
    async with (
        GeminiSim(behaviour=eyes) as sim,
        a_bot(tmp_path, config, Files(a_file), TERTULIA_GEMINI_BASE_URL=sim.url) as engine,
    ):
        await engine.receive(sent(1, photo))
        await engine.settled()

    paths = [request.path for request in sim.requests]
    assert ["gemini-2.5-flash" in path for path in paths].count(True) == (describe != '"none"')
    assert len(eyes.described) == (describe != '"none"')

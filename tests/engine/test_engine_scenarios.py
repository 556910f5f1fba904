"""The seventeen scenarios of a message and what it refers to, from a platform through an engine to a service."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import DIRECT, GROUP, ME, engine_with, talked
from media.media_files import image, sound
from media.web import Server, answer
from prompt.scenarios import SCENARIOS, Scenario, message_of
from sizes import size
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent
from tertulia.media.values import MediaOptions
from tertulia.models.openai.client import AudioForms, OpenAI
from tertulia.platform import Received
from tertulia.sim.openai import Echo, OpenAISim
from tertulia.testing import RecordedPlatform

Kinds = tuple[str, list[str]]  # the text, and the types of the elements after it


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """A file for each address of the scenarios, no two of them equal."""
    named = {word for scenario in SCENARIOS for word in str(scenario).replace("]", "'").split("'") if "https:" in word}
    names = sorted({word[word.index("example.com/") + 11 :].split()[0] for word in named})
    numbered = {name: number for number, name in enumerate(names, 1)}
    return {
        name: sound("mp3", "mp3", seconds=number / 10) if name.endswith("mp3") else image("JPEG", None, quality=number)
        for name, number in numbered.items()
    }


@pytest.fixture
async def site(files: dict[str, bytes]) -> AsyncIterator[str]:
    web = Server(b"")
    web.answers = {name: answer(data) for name, data in files.items()}
    async with await web.start():
        yield f"http://127.0.0.1:{web.port}"


def kinds_of(content: str | list[dict[str, Any]]) -> Kinds:
    if isinstance(content, str):
        return content, []
    text, *others = content
    return text["text"], [element["type"] for element in others]


def expected(scenario: Scenario, sound_type: str) -> Kinds:
    text, types = kinds_of(scenario.said)
    return text, [one.replace("audio_url", sound_type) for one in types]


@pytest.mark.parametrize("takes", ["audio_url", "input_audio"][: size(1, full=2)])
async def test_all_seventeen_arrive_with_the_right_elements(site: str, takes: Any) -> None:
    async with (
        OpenAISim(behaviour=Echo(), audio=takes) as sim,
        OpenAI("compatible-1", key="k", base_url=sim.url, audio_forms=AudioForms()) as model,
        engine_with(model, profile="single", media=MediaOptions(allowed_addresses=(site,))) as engine,
    ):
        for number, scenario in enumerate(SCENARIOS):
            engine.persona = Persona(name=scenario.personality, text="You are kind.")
            place = replace(DIRECT, id=str(number))
            await talked(engine, message_of(scenario, site=site, own=ME.id, id="1", place=place))

    accepted = [request.body["messages"][-1]["content"] for request in sim.requests if request.status == 200]
    assert len(SCENARIOS) == 17
    assert [kinds_of(content) for content in accepted] == [expected(scenario, takes) for scenario in SCENARIOS]
    assert [one.rule for one in sim.requests if one.status != 200] == ["part-type"] * (takes == "audio_url")


async def test_with_real_agents_each_reads_its_own_words_as_its_own_and_those_of_another_under_its_name(
    site: str,
) -> None:
    names = {"albert-einstein": "Albert Einstein", "isaac-newton": "Isaac Newton"}
    platform = RecordedPlatform()
    async with (
        OpenAISim(behaviour=Echo(), audio="audio_url") as sim,
        OpenAI("compatible-1", key="k", base_url=sim.url, audio_forms=AudioForms()) as model,
        engine_with(
            model,
            platform,
            profile="single",
            agents=[Agent(name=name) for name in names.values()],
            media=MediaOptions(allowed_addresses=(site,)),
        ) as engine,
    ):
        inbox = engine.inbox(platform.name)
        for number, scenario in enumerate(SCENARIOS):
            place = replace(GROUP, id=str(number))
            message = message_of(scenario, site=site, own=ME.id, id="1", place=place)
            if message.reply_to and message.reply_to.author and message.reply_to.author.persona:
                words = replace(message, id="0", parts=message.reply_to.parts, reply_to=None)
                await inbox.apply([Received(message=words, addressed=("Albert Einstein",))], key=f"{number} before")
                await engine.settled()  # the service says what it is told: these are Einstein's words now
                quote = replace(message.reply_to, message_id=list(platform.shown)[-1], author=ME)
                message = replace(message, reply_to=quote)
            addressed = (names[scenario.personality],)
            await inbox.apply([Received(message=message, addressed=addressed)], key=str(number))
            await engine.settled()
            assert platform.deliveries[-1].agent
            assert platform.deliveries[-1].agent.name == addressed[0], scenario.number

    accepted = [request.body["messages"][-1]["content"] for request in sim.requests if request.status == 200]
    asked = [kinds_of(content) for content in accepted]
    wanted = [expected(scenario, "audio_url") for scenario in SCENARIOS]
    named = [(text.replace("Albert Einstein (albert-einstein)", "Albert Einstein"), types) for text, types in wanted]
    assert [one for one in asked if one in named] == named

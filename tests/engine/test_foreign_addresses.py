"""A URL of a person, a quote or a tool never reaches a model's server: that server may be one inside our network."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, engine_with, said, talked
from tertulia.chat import Chat
from tertulia.engine.describers import by_model
from tertulia.media.addresses import AddressFetcher, Fetched
from tertulia.messages import Quote
from tertulia.models.gemini.client import BASE_URL, Gemini
from tertulia.models.openai.client import OpenAI
from tertulia.parts import Media, Text, ToolResult
from tertulia.sim.behaviours import Actor
from tertulia.sim.gemini import GeminiSim
from tertulia.sim.openai import OpenAISim
from tertulia.sim.telegram import image
from tertulia.store import Store
from tertulia.turns import model as own_turn
from tertulia.turns import user

INSIDE = ["http://169.254.169.254/latest", "http://localhost:9200/", "file:///etc/passwd"]


def photo(uri: str) -> Media:
    return Media(media_kind="photo", unique_id=uri, mime="image/png", uri=uri)


def message(uri: str) -> Any:
    return said("look", parts=(photo(uri), Text(text="look")))


def quote(uri: str) -> Any:
    return said("look", reply_to=Quote(message_id="5", author=ALICE, parts=(photo(uri),)))


@pytest.fixture
async def sim() -> AsyncIterator[OpenAISim]:
    async with OpenAISim(behaviour=Actor(steps=1, parallel=1)) as served:
        yield served


@pytest.fixture
async def model(sim: OpenAISim) -> AsyncIterator[OpenAI]:
    async with OpenAI("gpt-5.6", key="k", base_url=sim.url) as client:
        yield client


@pytest.mark.parametrize("uri", INSIDE)
@pytest.mark.parametrize("made", [message, quote])
@pytest.mark.parametrize("described", [False, True])
async def test_address_of_a_person_is_not_sent(
    store: Store, sim: OpenAISim, model: OpenAI, uri: str, made: Any, described: bool
) -> None:
    async with engine_with(model, store=store, describe=by_model(model) if described else None) as engine:
        await talked(engine, made(uri))

    assert sim.requests
    assert not any(uri in str(one.body) for one in sim.requests)


@pytest.mark.parametrize("made", [message, quote])
async def test_address_of_a_person_that_cannot_be_followed_is_logged_once(
    store: Store, model: OpenAI, made: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    uris = ["not a url", "ftp://files.example/a.png", "javascript:alert(1)", "", "http://"]
    async with engine_with(model, store=store) as engine:
        for start in (11, 21):
            await talked(engine, *(replace(made(uri), id=str(number)) for number, uri in enumerate(uris, start)))

    told = [line for line in caplog.messages if "goes in words" in line]
    assert told == [f"photo {uri} goes in words: this is no http or https address" for uri in uris if uri]


@pytest.mark.parametrize("uri", INSIDE)
async def test_address_of_a_tool_is_not_sent(store: Store, sim: OpenAISim, model: OpenAI, uri: str) -> None:
    def camera() -> Media:
        """Takes a photo."""
        return photo(uri)

    async with engine_with(model, store=store, tools=[camera]) as engine:
        await talked(engine, said("look"))

    assert len(sim.requests) > 1
    assert not any(uri in str(one.body) for one in sim.requests)


@pytest.mark.parametrize("made", [message, quote])
@pytest.mark.parametrize("described", [False, True])
async def test_what_looks_like_an_uploaded_file_is_not_one_if_a_person_wrote_it(
    store: Store, made: Any, described: bool
) -> None:
    async with GeminiSim() as gemini, Gemini("gemini-3.8-flash", key="k", base_url=gemini.url) as own:
        uris = ["http://10.0.0.1/v1/files/x", f"{gemini.url}/v1beta/files/x", f"{BASE_URL}/v1beta/files/x"]
        async with engine_with(own, store=store, describe=by_model(own) if described else None) as engine:
            await talked(engine, *(replace(made(uri), id=str(number)) for number, uri in enumerate(uris, 1)))

    assert len(gemini.requests) >= len(uris)
    assert not any(uri in str(one.body) or one.method == "GET" for one in gemini.requests for uri in uris)


@pytest.mark.parametrize("uri", INSIDE)
async def test_address_of_a_tool_is_not_sent_by_a_chat(sim: OpenAISim, model: OpenAI, uri: str) -> None:
    def camera() -> Media:
        """Takes a photo."""
        return photo(uri)

    chat = Chat(model, tools=[camera])
    await chat.send_message("look")
    await chat.send_message("and now?")

    assert len(sim.requests) > 2
    assert not any(f'"url":"{uri}' in str(one.body).replace(" ", "").replace("'", '"') for one in sim.requests)
    results = [part for turn in chat.history for part in turn.parts if isinstance(part, ToolResult)]
    assert {one.uri for result in results for one in result.media} == {None}


async def test_address_of_a_tool_is_fetched_by_a_chat(
    sim: OpenAISim, model: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetch(self: AddressFetcher, url: str, *, limit: int) -> Fetched:
        return Fetched(data=image(8, 8), mime="text/plain", name=url)

    def camera() -> Media:
        """Takes a photo."""
        return photo("https://example.org/cat")

    monkeypatch.setattr(AddressFetcher, "fetch", fetch)
    await Chat(model, tools=[camera]).send_message("look")

    sent = str(sim.requests[-1].body)
    assert ("data:image/png;base64," in sent, "example.org" in sent) == (True, False)


async def test_address_of_a_model_goes_back_to_it_only_if_it_is_a_file_of_its_service() -> None:
    async with GeminiSim() as gemini, Gemini("gemini-3.8-flash", key="k", base_url=gemini.url) as own:
        file = await own.upload(image(8, 8), mime="image/png")
        made = [own_turn(photo(uri), by=own.name) for uri in (file.uri, INSIDE[0])]
        await Chat(own, history=[user("draw"), made[0], user("again"), made[1]]).send_message("and?")

    assert [uri in str(gemini.requests[-1].body) for uri in (file.uri, INSIDE[0])] == [True, False]


async def test_chat_sends_the_addresses_that_its_user_gives(sim: OpenAISim, model: OpenAI) -> None:
    await Chat(model).send_message([photo(INSIDE[0]), "look"])

    assert INSIDE[0] in str(sim.requests[0].body)

"""A URL of a person, a quote or a tool never reaches a model's server: that server may be one inside our network."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine.engines import ALICE, engine_with, said, talked
from palaver.chat import Chat
from palaver.engine.media_descriptions import by_model
from palaver.messages import Quote
from palaver.models.openai.client import OpenAI
from palaver.parts import Media, Text
from palaver.sim.behaviours import Actor
from palaver.sim.openai import OpenAISim
from palaver.store import Store

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


@pytest.mark.parametrize("uri", INSIDE)
async def test_address_of_a_tool_is_not_sent(store: Store, sim: OpenAISim, model: OpenAI, uri: str) -> None:
    def camera() -> Media:
        """Takes a photo."""
        return photo(uri)

    async with engine_with(model, store=store, tools=[camera]) as engine:
        await talked(engine, said("look"))

    assert len(sim.requests) > 1
    assert not any(uri in str(one.body) for one in sim.requests)


async def test_chat_sends_the_addresses_that_its_user_gives(sim: OpenAISim, model: OpenAI) -> None:
    await Chat(model).send_message([photo(INSIDE[0]), "look"])

    assert INSIDE[0] in str(sim.requests[0].body)

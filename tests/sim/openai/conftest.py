"""The simulator, and the real OpenAI client of it."""

from collections.abc import AsyncIterator

import openai
import pytest

from tertulia.sim.openai import Actor, OpenAISim


@pytest.fixture
async def sim() -> AsyncIterator[OpenAISim]:
    async with OpenAISim(behaviour=Actor(steps=2, parallel=2)) as running:
        yield running


@pytest.fixture
async def client(sim: OpenAISim) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=sim.url, api_key="key", max_retries=0) as connected:
        yield connected

"""The simulator, and the real OpenAI client of it."""

from collections.abc import AsyncIterator

import openai
import pytest

from tertulia.sim.openai import OpenAISim


@pytest.fixture
async def sim() -> AsyncIterator[OpenAISim]:
    async with OpenAISim() as running:
        yield running


@pytest.fixture
async def client(sim: OpenAISim) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=sim.url, api_key="key", max_retries=0) as connected:
        yield connected

"""An OpenAI-compatible service that echoes, and no keys of the developer's."""

from collections.abc import AsyncIterator

import pytest

from tertulia.sim.openai import Echo, OpenAISim


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "TERTULIA_OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def sim() -> AsyncIterator[OpenAISim]:
    async with OpenAISim(behaviour=Echo()) as running:
        yield running

"""A Gemini that echoes, and no keys of the developer's."""

from collections.abc import AsyncIterator

import pytest

from tertulia.sim.gemini import Echo, GeminiSim


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "TERTULIA_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def sim() -> AsyncIterator[GeminiSim]:
    async with GeminiSim(behaviour=Echo()) as running:
        yield running

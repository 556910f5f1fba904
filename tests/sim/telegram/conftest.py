"""A simulated Telegram and a plain HTTP client of its first bot."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from sim.telegram.api import Api
from tertulia.sim.telegram import TelegramSim


@pytest.fixture
async def sim() -> AsyncIterator[TelegramSim]:
    async with TelegramSim() as sim:
        yield sim


@pytest.fixture
async def api(sim: TelegramSim) -> AsyncIterator[Api]:
    async with httpx2.AsyncClient(base_url=sim.url, timeout=20) as client:
        yield Api(client, sim.token)

"""The simulators as pytest fixtures: `pytest_plugins = ["tertulia.testing.fixtures"]` in a `conftest.py`.

They need `tertulia[sim]`. Each is a real server on a loopback socket in a thread of its own, so that tests with and
without `await` can use it: `Gemini("gemini-3.8-flash", key="k", base_url=gemini_sim.url)`.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

import pytest

from tertulia.sim import GeminiSim, OpenAISim, TelegramSim

S = TypeVar("S", bound=AbstractAsyncContextManager[Any])


@pytest.fixture
def gemini_sim() -> Iterator[GeminiSim]:
    """Yield a strict Gemini API at `gemini_sim.url`; `gemini_sim.requests` is what it was asked."""
    with serve(GeminiSim()) as sim:
        yield sim


@pytest.fixture
def openai_sim() -> Iterator[OpenAISim]:
    """Yield a strict OpenAI API at `openai_sim.url`; `openai_sim.requests` is what it was asked."""
    with serve(OpenAISim()) as sim:
        yield sim


@pytest.fixture
def telegram_sim() -> Iterator[TelegramSim]:
    """Yield a Telegram Bot API at `telegram_sim.url` for the bot of `telegram_sim.token`."""
    with serve(TelegramSim()) as sim:
        yield sim


@contextmanager
def serve(sim: S) -> Iterator[S]:
    """Serve a simulator in a thread until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="tertulia simulator", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(sim.__aenter__(), loop).result()
        try:
            yield sim
        finally:
            asyncio.run_coroutine_threadsafe(sim.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

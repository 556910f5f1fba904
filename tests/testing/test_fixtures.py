"""The simulators serve tests that await and tests that do not."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tertulia import Chat, SyncChat
from tertulia.models import Gemini, OpenAI
from tertulia.sim import GeminiSim, OpenAISim, TelegramSim
from tertulia.testing.fixtures import gemini_sim, openai_sim, telegram_sim

__all__ = ["gemini_sim", "openai_sim", "telegram_sim"]


async def test_a_chat_with_the_gemini_simulator(gemini_sim: GeminiSim) -> None:
    async with Gemini("gemini-3.8-flash", key="k", base_url=gemini_sim.url) as model:
        assert (await Chat(model).send_message("Hello!")).text

    assert len(gemini_sim.requests) == 1


def test_a_chat_with_the_openai_simulator_without_await(openai_sim: OpenAISim) -> None:
    with SyncChat(Chat(OpenAI("gpt-5.6", key="k", base_url=openai_sim.url))) as chat:
        assert chat.send_message("Hello!").text

    assert len(openai_sim.requests) == 1


def test_people_write_to_the_telegram_simulator_without_await(telegram_sim: TelegramSim) -> None:
    alice = telegram_sim.user("Alice")
    poll = f"{telegram_sim.url}/bot{telegram_sim.token}/getUpdates"

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(httpx2.get, poll, params={"timeout": 20}, timeout=30)
        alice.send(telegram_sim.private(alice), "Hello!")

        assert [update["message"]["text"] for update in waiting.result().json()["result"]] == ["Hello!"]


async def test_a_test_that_awaits_waits_for_the_telegram_simulator(telegram_sim: TelegramSim) -> None:
    async with httpx2.AsyncClient() as client:
        await client.get(f"{telegram_sim.url}/bot{telegram_sim.token}/getMe")
    await telegram_sim.until(lambda: len(telegram_sim.calls) == 1)

    assert [call.method for call in telegram_sim.calls] == ["getMe"]


@pytest.mark.parametrize("module", ["tertulia.testing", "tertulia.testing.platform_world"])
def test_what_needs_no_pytest_does_not_import_it(module: str) -> None:
    code = f"import sys, {module}; sys.exit('pytest' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

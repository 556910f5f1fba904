"""The quick start, followed step by step: its files, its commands and what they print."""

import asyncio
import re
import socket
import sys
from pathlib import Path

import pytest

from cli.command import tertulia
from tertulia.app import run_bot
from tertulia.sim import GeminiSim
from tertulia.sim.behaviours import Behaviour
from tertulia.sim.gemini import Answer, Ask, Call, Script

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "quick-start.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
FINDINGS = re.findall(r"^✓ .*$", PAGE, flags=re.MULTILINE)


def block(language: str, holds: str, page: str = PAGE) -> str:
    [found] = [code for code in re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL) if holds in code]
    return str(found)


class Barman:
    """Rolls a die whenever it may, then says what came of it."""

    def answer(self, ask: Ask) -> Answer:
        if ask.results:
            return Answer(text=f"{ask.results[0]}")
        return Answer(calls=[Call(name="roll_dice", args={"sides": 1})])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the bot after steps 2, 3 and 9, with a free port."""
    monkeypatch.delenv("TERTULIA_DB", raising=False)  # of the other tests
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("my_chat", "my_tools"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert tertulia("init", ".", GEMINI_API_KEY="any", TZ="Europe/Kyiv").returncode == 0
    (tmp_path / "persona.md").write_text(block("text", "You are Gryag"))
    (tmp_path / "my_chat.py").write_text(block("python", "class LineChat"))
    (tmp_path / "my_tools.py").write_text(block("python", "def roll_dice"))
    platform = block("toml", "[platforms.lines]").replace("7000", str(free_port()))
    config = (tmp_path / "tertulia.toml").read_text()
    (tmp_path / "tertulia.toml").write_text(f"{block('toml', 'roll_dice')}\n{config}\n{platform}")
    return tmp_path


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def test_the_check_prints_what_the_page_shows(folder: Path) -> None:
    async with GeminiSim() as sim:
        environment = {"GEMINI_API_KEY": "any", "TERTULIA_GEMINI_BASE_URL": sim.url}
        checked = await asyncio.to_thread(tertulia, "check", **environment)

    printed = re.sub(r"\(\d+ tokens\)", "(14 tokens)", checked.stdout).replace(", roll_dice", "")
    assert (printed.splitlines(), checked.returncode) == (FINDINGS, 0)


async def test_the_bot_answers_with_its_tool(folder: Path) -> None:
    [port] = re.findall(r"^port = (\d+)", (folder / "tertulia.toml").read_text(), re.MULTILINE)

    assert b"Alice rolled 1" in await answer_of(folder, int(port), Barman())
    assert (folder / "tertulia.db").exists()


async def test_the_bot_of_the_readme_answers(folder: Path) -> None:
    port = free_port()
    code = block("python", "class LineChat", README).replace("7000", str(port))
    (folder / "my_chat.py").write_text(code)
    platform = block("toml", "[platforms.lines]", README)
    (folder / "tertulia.toml").write_text(f'model = "gemini-3.8-flash"\n{platform}')

    assert len(code.partition("class ")[2].replace("\n\n", "\n").splitlines()) <= 24
    assert await answer_of(folder, port, Script(["Good evening."])) == b"Good evening.\n"


async def answer_of(folder: Path, port: int, behaviour: Behaviour) -> bytes:
    """Run the bot of a folder, and return what it answers to Alice."""
    async with GeminiSim(behaviour=behaviour) as sim:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GEMINI_API_KEY", "any")
            patch.setenv("TERTULIA_GEMINI_BASE_URL", sim.url)
            patch.setenv("TERTULIA_BEHAVIOR_DEBOUNCE", "0")
            bot = asyncio.create_task(run_bot(folder / "tertulia.toml"))
            reader, writer = await connect(port)
            writer.write(b"Alice\nRoll the dice!\n")
            answer = await reader.readline()
            writer.write_eof()
            await reader.read()  # until the bot has closed its side
            writer.close()
            bot.cancel()
            await asyncio.wait([bot])
    return answer


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect as soon as the bot listens."""
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)


def test_every_command_of_the_page_exists() -> None:
    for command in set(re.findall(r"^tertulia ([a-z]+)|`tertulia ([a-z]+(?: [a-z]+)?)", PAGE, flags=re.MULTILINE)):
        words = next(filter(None, command)).split()
        words = words[:2] if words[0] in ("memory", "db", "model") else words[:1]
        assert tertulia(*words, "--help").returncode == 0, words

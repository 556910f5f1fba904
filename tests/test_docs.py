"""The code in the README and the docs runs as it stands."""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from cli.command import tertulia
from tertulia import Behavior, Capabilities, Chat, Delivery, Engine, Platform, RunContext, errors
from tertulia.events import Event
from tertulia.models import Gemini, Model, OpenAI
from tertulia.platform import Change, Inbox
from tertulia.sim import GeminiSim, OpenAISim
from tertulia.sim.behaviours import behaviour_named
from tertulia.testing.platform_contract import Fault, PlatformWorld

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in "chat wire prompt engine agents memory config testing".split()),
]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(code: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, text=True, check=False)


# On a busy machine a search warns that it used words alone; that is no fault of a page.
EACH_BLOCK = """
import json, logging, sys

logging.getLogger("tertulia.memory").setLevel(logging.ERROR)
for name, code in json.load(sys.stdin).items():
    exec(compile(code, name, "exec"), {"__name__": "__main__"})
"""


def test_code_runs_as_it_stands() -> None:
    """The blocks of all pages run in one interpreter, each by itself; a traceback names the block."""
    code = {
        f"{page.name}, block {number}": code
        for page in PAGES
        for number, code in enumerate(blocks(page, "python"), start=1)
    }
    elsewhere = ("127.0.0.1:8910", "import pytest", "from conftest")  # run by the tests below
    own = {name: block for name, block in code.items() if not any(text in block for text in elsewhere)}

    done = run(EACH_BLOCK, given=json.dumps(own))

    assert {name.partition(",")[0] for name in own} == {page.name for page in PAGES}
    assert (done.returncode, done.stderr) == (0, "")


def test_the_bot_of_the_page_on_platforms_runs_until_it_is_asked_to_stop() -> None:
    code = blocks(ROOT / "docs" / "platforms.md", "python")[0]
    with subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as bot:
        assert bot.stdout
        said = bot.stdout.readline()
        bot.terminate()
        _, errors = bot.communicate()

    assert (said, bot.returncode, errors) == (b"Good morning, Alice.\n", 0, b"")


def test_the_tests_of_a_bot_on_the_page_on_platforms_pass(tmp_path: Path) -> None:
    [code] = [code for code in blocks(ROOT / "docs" / "platforms.md", "python") if "def test_" in code]
    (tmp_path / "test_bot.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_bot.py"]

    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout


def test_the_tests_of_the_page_on_testing_pass(tmp_path: Path) -> None:
    page = ROOT / "docs" / "testing.md"
    files = {"pytest.ini": blocks(page, "ini"), "tertulia.toml": blocks(page, "toml")}
    code = {"conftest.py": "import pytest", "test_bot.py": "gemini_sim)", "test_config.py": "bot_engine("}
    code["test_telegram.py"] = "TelegramSim()"
    files |= {name: [one for one in blocks(page, "python") if holds in one] for name, holds in code.items()}
    for name, [text] in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]

    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert (done.returncode, "9 passed" in done.stdout) == (0, True), done.stdout


async def test_the_official_sdk_talks_to_the_simulator_as_the_page_says() -> None:
    import asyncio

    [code] = [code for code in blocks(ROOT / "docs" / "wire.md", "python") if "127.0.0.1:8910" in code]
    async with GeminiSim() as sim:
        done = await asyncio.to_thread(run, code.replace("http://127.0.0.1:8910", sim.url))

    assert (done.returncode, done.stderr) == (0, "")
    assert "Hello" in done.stdout


async def test_the_scripts_of_the_page_call_a_tool_and_answer(tmp_path: Path) -> None:
    poured = list[str]()

    def pour(drink: str) -> str:
        poured.append(drink)
        return "done"

    for name, text in zip(("gemini", "openai"), blocks(ROOT / "docs" / "wire.md", "jsonl"), strict=True):
        (tmp_path / name).write_text(text)
        behaviour = behaviour_named(f"repeat:{tmp_path / name}")
        async with GeminiSim(behaviour=behaviour) as gemini, OpenAISim(behaviour=behaviour) as openai:
            models: dict[str, Model] = {
                "gemini": Gemini("gemini-3.8-flash", key="any", base_url=gemini.url),
                "openai": OpenAI("gpt-5.6", key="any", base_url=openai.url),
            }
            async with Chat(models[name], tools=[pour]) as chat:
                assert [(await chat.send_message("Tea!")).text for _ in range(2)] == ["Here you are."] * 2

    assert poured == ["tea"] * 4


def test_the_broken_request_of_the_page_is_named_as_it_prints(tmp_path: Path) -> None:
    [shell] = [code for code in blocks(ROOT / "docs" / "wire.md", "sh") if "broken.json" in code]
    printed = blocks(ROOT / "docs" / "wire.md", "text")[0]
    command = shell.replace("tertulia lint", f"{sys.executable} -m tertulia lint")

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)

    assert (done.returncode, done.stdout.split(), done.stderr) == (1, printed.split(), "")


def test_every_local_link_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text("utf-8"))]

    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_architecture_stays_a_page() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").split()) < 3_000


def test_architecture_names_the_modules_that_there_are() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    source = ROOT / "src" / "tertulia"
    folders = (
        ".",
        "engine",
        "run",
        "wire",
        "context",
        "toolbox",
        "models",
        "store",
        "tasks",
        "memory",
        "formats",
        "prompt",
    )
    rooms = {
        folder: {file.stem for file in (source / folder).glob("*.py")} - {"__init__", "__main__"} for folder in folders
    }

    named = set(re.findall(r"\w+", text))

    assert {room: modules - named for room, modules in rooms.items()} == {room: set() for room in rooms}


def test_the_dependencies_are_pinned_with_hashes_and_name_no_host() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        text = file.read_text()
        assert "://" not in text
        pins = re.findall(r"^[\w.\-\[\]]+==\S+.*(?:\n +--hash.*)+", text, flags=re.MULTILINE)
        assert len(pins) == len(re.findall(r"^[\w.\-\[\]]+==", text, flags=re.MULTILINE))


def test_importing_tertulia_loads_no_vendor_package() -> None:
    code = "import json, sys, tertulia.wire, tertulia.models, tertulia.chat; print(json.dumps(sorted(sys.modules)))"
    vendors = {
        "google",
        "openai",
        "aiogram",
        "discord",
        "pydantic",
        "numpy",
        "xllamacpp",
        "starlette",
        "uvicorn",
        "prompt_toolkit",
    }

    loaded = json.loads(run(code).stdout)

    assert {name.partition(".")[0] for name in loaded} & vendors == set()


@pytest.mark.parametrize("profile", ["layered", "tail", "native", "block", "headers", "single"])
def test_the_conversation_of_the_docs_is_rendered(profile: str) -> None:
    [conversation] = blocks(ROOT / "docs" / "prompt.md", "json")

    done = tertulia("render", profile, "--to", "gemini", given=conversation)

    assert (done.returncode, done.stderr) == (0, "")
    assert "Whose?" in json.dumps(json.loads(done.stdout))


def _members(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


def _fields(kinds: Iterable[Any]) -> Iterator[str]:
    for kind in kinds:
        yield kind.__name__
        yield from kind.__struct_fields__


ERRORS = [name for name, kind in vars(errors).items() if isinstance(kind, type)]
NAMED: dict[str, list[tuple[str, list[str]]]] = {
    "docs/engine.md": [
        ("events", [*_fields(get_args(Event))]),
        ("parameters of an engine", [*inspect.signature(Engine).parameters]),
        ("members of an engine", _members(Engine)),
    ],
    "docs/platforms.md": [
        ("members of a platform", _members(Platform)),
        ("members of an inbox", _members(Inbox)),
        ("what happens and is sent", [*_fields([Capabilities, Delivery, *get_args(Change)])]),
        ("members of a world", _members(PlatformWorld)),
        ("faults", [*get_args(Fault)]),
    ],
    "docs/config.md": [("fields of a behavior", [*Behavior.__struct_fields__])],
    "docs/chat.md": [("fields of a run's context", [*RunContext.__struct_fields__])],
    "src/tertulia/errors.py": [("errors", ERRORS)],
}


@pytest.mark.parametrize("page", NAMED)
def test_a_page_names_everything_of_what_it_lists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    listed = re.findall(r"`[^`\n]+`", text) if page.endswith(".md") else [text.split('"""')[1]]
    known = {word for code in listed for word in re.findall(r"[\w ]*\w", code)}
    known |= {word for code in listed for word in re.findall(r"\w+", code)}

    unnamed = {what: [name for name in names if name not in known] for what, names in NAMED[page]}

    assert {what: names for what, names in unnamed.items() if names} == {}

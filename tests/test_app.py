"""A bot from one file: opened, run in a process of its own, and reloaded while it runs."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.test_commands import told
from people import NOON
from tertulia.app import check_models, open_bot, open_platform, persona_of, reload_on_change, run_bot
from tertulia.config import Config, ConfigFile, PersonaConfig, PlatformConfig, load_config, read_config
from tertulia.context.values import Persona
from tertulia.engine.engine import Engine
from tertulia.engine.limits import Limits
from tertulia.errors import InvalidValue, KeyMissing, StoreRefused, TertuliaError
from tertulia.media.values import StoredFile
from tertulia.models import CachedGemini, Gemini, Scripted
from tertulia.sim import GeminiSim
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

EXAMPLES = Path(__file__).parent.parent / "examples"
RECORDED = PlatformConfig(use="tertulia.testing:RecordedPlatform")


WALLS = """from pathlib import Path
from tertulia import Platform
class Nameless(Platform):
    async def run(self, inbox): ...
    async def send(self, delivery): ...
class Failing(Nameless):
    name = "wall"
    def __init__(self, folder: Path = Path()) -> None:
        folder.mkdri()
class Plain(Nameless):
    name = "wall"
    def send(self, delivery): ...
class Foldered(Nameless):
    name = "wall"
    def __init__(self, folder: Path, other: str) -> None:
        self.options = folder, other
"""


def a_config(folder: Path, text: str = "", **more: Any) -> ConfigFile:
    config = 'model = "gemini-3.8-flash"\n[persona]\nfile = "persona.md"\n' + text
    (folder / "persona.md").write_text("You are Gryag.")
    (folder / "tertulia.toml").write_text(config)
    return replace(load_config(folder / "tertulia.toml", {}), **more)


async def test_everything_a_config_says_reaches_the_engine(tmp_path: Path) -> None:
    file = a_config(tmp_path, "[limits]\nmessages = 3\n[settings]\ntemperature = 0.5", platforms={"one": RECORDED})

    async with open_bot(file, {"GEMINI_API_KEY": "any"}) as engine:
        assert engine.persona == Persona(text="You are Gryag.")
        assert engine.limits == Limits(messages=3)
        assert engine.settings.temperature == 0.5
        assert [model.name for model in engine.models] == ["gemini-3.8-flash"]
        assert [spec.name for spec in engine.toolbox.specs][:3] == ["calculate", "current_time", "remind_me"]
        assert engine.memory is not None


@pytest.mark.parametrize(
    ("models", "cached", "warned"),
    [
        ('"gemini-3.8-flash"', [True], []),
        (
            '["openai:gpt-5.6", "gemini-3.8-flash", "gemma-4-31b-it"]',
            [False, True, False],
            [
                "cache: gpt-5.6: only models of Gemini have explicit caches",
                "cache: gemma-4-31b-it: this model has no explicit caches",
            ],
        ),
    ],
)
async def test_a_config_may_say_that_prompts_are_cached(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, models: str, cached: list[bool], warned: list[str]
) -> None:
    (tmp_path / "tertulia.toml").write_text(f"model = {models}\ncache = true\n")
    file = replace(load_config(tmp_path / "tertulia.toml", {}), platforms={"one": RECORDED})

    async with open_bot(file, {"GEMINI_API_KEY": "any", "OPENAI_API_KEY": "any"}) as engine:
        assert [isinstance(model, CachedGemini) for model in engine.models] == cached
    assert caplog.messages == warned


async def test_files_of_media_are_where_the_config_says_and_move_when_that_changes(tmp_path: Path) -> None:
    image = StoredFile(sha256="", size=0, mime="image/png")
    for text, folder in (("[media]\nfolder = 'photos'", "photos"), ("", "tertulia.db-media")):
        file = a_config(tmp_path, text, platforms={"one": RECORDED})
        async with open_bot(file, {"GEMINI_API_KEY": "any"}):
            pass
        async with Store.open(file.store) as store:
            stored = await store.media.add("cat", b"a cat", image, at=NOON)
            assert store.media.folder.path == tmp_path / folder
            assert store.media.folder.names() == {stored.sha256}
    assert not (tmp_path / "photos").exists()


@pytest.mark.parametrize(
    ("text", "environment", "error", "line"),
    [
        ("", {}, KeyMissing, "no key for gemini-3.8-flash: set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (
            "[memory]\nmodel = 'gpt'",
            {"GEMINI_API_KEY": "k"},
            InvalidValue,
            "tertulia.toml:5: memory.model: no model is called 'gpt'",
        ),
        (
            "[media]\ndescribe = 'gpt'",
            {"GEMINI_API_KEY": "k"},
            InvalidValue,
            "tertulia.toml:5: media.describe: no model is called 'gpt'",
        ),
        (
            "[media]\ntranscribe = 'gemini-3.8-flash'",
            {"GEMINI_API_KEY": "k"},
            InvalidValue,
            "tertulia.toml:5: media.transcribe: no transcription service has 'gemini-3.8-flash': "
            "write openai:whisper-1",
        ),
        (
            "[media]\ntranscribe = 'openai:whisper-1'",
            {"GEMINI_API_KEY": "k"},
            KeyMissing,
            "no key for whisper-1 at https://api.openai.com/v1: set OPENAI_API_KEY",
        ),
    ],
)
async def test_what_is_missing_is_said_before_anything_is_stored(
    tmp_path: Path, text: str, environment: dict[str, str], error: type[Exception], line: str
) -> None:
    with pytest.raises(error, match=line):
        async with open_bot(a_config(tmp_path, text), environment):
            pass

    assert not (tmp_path / "tertulia.db").exists()


@pytest.mark.parametrize(
    ("use", "options", "line"),
    [
        ("nowhere:X", {}, "platforms.mine.use: cannot import nowhere: ModuleNotFoundError: No module named 'nowhere'"),
        ("tertulia.testing:Clock", {}, "platforms.mine: tertulia.testing:Clock is no subclass of tertulia.Platform"),
        ("line_chat:LineChat", {"prot": 1}, "got an unexpected keyword argument 'prot'; it takes: port"),
        ("line_chat:LineChat", {"port": "first"}, "platforms.mine: port must be a whole number, not 'first'"),
        ("tertulia:Platform", {}, "tertulia:Platform has no run and no send: write `async def`"),
        ("os:sep", {}, "os:sep is no subclass of tertulia.Platform"),
        ("walls:Nameless", {}, "Nameless has no `name`: set it on the class or in __init__"),
        ("walls:Failing", {}, "walls.py:9: AttributeError: 'PosixPath' object has no attribute 'mkdri'"),
        ("walls:Plain", {}, "walls.py:12: Plain.send must be a coroutine: write `async def send`"),
    ],
)
def test_a_platform_that_cannot_be_made_is_one_line(
    use: str, options: dict[str, Any], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "walls.py").write_text(WALLS)
    with pytest.raises(InvalidValue) as refused:
        open_platform("mine", PlatformConfig(use=use, options=options), ConfigFile(config=Config()))

    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "[telegram]"])
def test_a_wrong_token_is_that_of_the_table_of_telegram(text: str) -> None:
    file = read_config(text, {"TERTULIA_TELEGRAM_TOKEN": "no-token"}, path=Path("tertulia.toml"))

    with pytest.raises(InvalidValue, match=r"^tertulia\.toml:1: telegram: the token of a Telegram bot is a number"):
        open_platform("telegram", file.platforms["telegram"], file)


def test_a_number_of_a_variable_is_a_number_for_the_platform() -> None:
    options = {"port": "7000"}  # as TERTULIA_PLATFORMS_MINE_PORT gives it
    made: Any = open_platform(
        "mine", PlatformConfig(use="line_chat:LineChat", options=options), ConfigFile(config=Config())
    )

    assert made.port == 7000


@pytest.mark.parametrize(
    ("text", "error", "line"),
    [
        ('zone = "../x"', InvalidValue, "/tertulia.toml:2: zone: no time zone is called '../x'; give an IANA name"),
        ('profile = "flat"', InvalidValue, "/tertulia.toml:2: profile: "),
        (
            'memory.model = "smolm2"',
            InvalidValue,
            ":2: memory.model: no model is called 'smolm2', did you mean smollm2?",
        ),
        (
            'tools = [\n"memry"\n]',
            InvalidValue,
            ":2: tools: no tool is called 'memry', did you mean memory? There are ",
        ),
        (
            'tools = ["tertulia.backoff:throw"]',
            InvalidValue,
            ":2: tools: there is no throw in tertulia.backoff; there are",
        ),
        (
            'platforms.one.use = "tertulia.testing.fakes:Clok"',
            InvalidValue,
            ":2: platforms.one.use: there is no Clok in ",
        ),
        (
            '[platforms.one]\nuse = "tertulia.testing:RecordedPlatform"\nfoldr = 1',
            InvalidValue,
            ":4: platforms.one.foldr: got an unexpected keyword argument 'foldr'; it takes: errors, capabilities, ",
        ),
        (
            'platforms.one.use = "tertulia.testing:__name__"',
            InvalidValue,
            ":2: platforms.one.use: tertulia.testing:__name",
        ),
        ('store = "persona.md/bot.db"', StoreRefused, "/persona.md/bot.db: its folder cannot be made: "),
        ('tools = ["ends_at_once:tool"]', InvalidValue, "cannot import ends_at_once: SystemExit: 7"),
    ],
)
async def test_a_bot_that_cannot_be_opened_says_why(
    tmp_path: Path, text: str, error: type[Exception], line: str
) -> None:
    (tmp_path / "ends_at_once.py").write_text("raise SystemExit(7)")
    a_config(tmp_path)
    (tmp_path / "tertulia.toml").write_text(f'model = "gemini-3.8-flash"\n{text}')
    with pytest.raises(error) as refused:
        async with open_bot(load_config(tmp_path / "tertulia.toml", {}), {"GEMINI_API_KEY": "any"}):
            pass

    assert line in str(refused.value)


@pytest.mark.parametrize("where", ["__init__", "open"])
async def test_a_platform_that_fails_at_the_start_is_one_line_without_its_secrets(tmp_path: Path, where: str) -> None:
    (tmp_path / f"fails_in_{where}.py").write_text(
        "from tertulia.testing import RecordedPlatform\n"
        "class Fails(RecordedPlatform):\n"
        "    def __init__(self, token):\n"
        "        super().__init__()\n"
        "        self.token = token\n"
        "        if __name__.endswith('__init__'): raise ValueError('no ' + token)\n"
        "    async def open(self):\n"
        "        raise ValueError('no ' + self.token)\n"
    )
    a_config(tmp_path, f'[platforms.mine]\nuse = "fails_in_{where}:Fails"\ntoken = "t0p"')

    with pytest.raises(TertuliaError, match=r"tertulia\.toml.*: ValueError: no \*\*\*$"):
        await run_bot(tmp_path / "tertulia.toml", {"GEMINI_API_KEY": "any"})


def test_a_path_of_a_platform_is_relative_to_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "walls.py").write_text(WALLS)
    options = {"folder": "rooms", "other": "rooms"}

    made: Any = open_platform("one", PlatformConfig(use="walls:Foldered", options=options), a_config(tmp_path))

    assert made.options == (tmp_path / "rooms", "rooms")


def test_a_platform_gets_its_options() -> None:
    made = open_platform("one", RECORDED, ConfigFile(config=Config()))

    assert isinstance(made, RecordedPlatform)


def test_a_persona_is_that_of_the_config_without_its_file() -> None:
    assert persona_of(Config(persona=PersonaConfig(name="G", file="x", text="t"))) == Persona(name="G", text="t")


async def test_changes_of_persona_and_limits_are_taken_over_and_others_wait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = a_config(tmp_path, platforms={"one": RECORDED})
    steps: asyncio.Queue[str] = asyncio.Queue()
    looked = asyncio.Semaphore(0)

    async def sleep(_: float) -> None:
        looked.release()
        (tmp_path / "tertulia.toml").write_text(await steps.get())

    head = 'model = "gemini-3.8-flash"\n[persona]\nfile = "persona.md"\n'
    caplog.set_level("INFO", logger="tertulia.app")
    async with open_bot(file, {"GEMINI_API_KEY": "any"}) as engine:
        watching = asyncio.create_task(reload_on_change(engine, file, {}, sleep=sleep))
        for text in (
            head + "[limits]\nmessages = 3",
            head + "[limits]\nmessages = 'x'",
            "",  # about to be written
            'profile = "tail"\n' + head + "[limits]\nmessages = 4",
            'profile = "tail"\n' + head + "[limits]\nmessages = 4\n[web]",
        ):
            await looked.acquire()
            steps.put_nowait(text)
        await looked.acquire()
        watching.cancel()
        limits = engine.limits

    assert limits == Limits(messages=4)
    assert [record.getMessage().replace(str(tmp_path), "") for record in caplog.records] == [
        "taken over: limits",
        "the change of /tertulia.toml is not taken over: /tertulia.toml:5: "
        "limits.messages must be a whole number, not 'x'",
        "taken over: limits",
        "taken over at the next start: profile",
        "/tertulia.toml is right again",
        "taken over at the next start: web",
    ]


async def test_a_new_name_is_that_of_the_agent_in_rooms_at_once(tmp_path: Path) -> None:
    file, names = a_config(tmp_path, "[web]"), []
    texts = [file.path.read_text().replace("[persona]", '[persona]\nname = "Gryag"')] if file.path else []

    async def sleep(_: float) -> None:
        names.append(engine.platforms["web"].me.name)
        (tmp_path / "tertulia.toml").write_text(texts.pop())

    async with open_bot(file, {}, models=[Scripted()]) as engine:
        with pytest.raises(IndexError):  # there is no further change
            await reload_on_change(engine, file, {}, sleep=sleep)

    assert names == ["agent", "Gryag"]


async def test_a_reload_leaves_what_an_owner_set_until_the_same_thing_changes_in_the_file(tmp_path: Path) -> None:
    owned = '[behavior]\ndebounce = 0\nowners = ["recorded:1"]\n[limits]\n'
    file, platform = a_config(tmp_path, owned), RecordedPlatform()
    steps: list[tuple[str, str]] = [("persona.md", "You are a gardener."), ("tertulia.toml", "call_timeout = 9")]
    seen: list[tuple[str, Limits]] = []

    async def sleep(_: float) -> None:
        seen.append((engine.persona.text, engine.limits))
        name, text = steps.pop()
        path = tmp_path / name
        path.write_text((path.read_text() if name == "tertulia.toml" else "") + text)

    async with open_bot(file, {}, models=[Scripted()], platforms=[platform]) as engine, engine:
        await told(engine, platform, "/persona You are a pirate.")
        await told(engine, platform, "/limit 3", key="c2")
        with pytest.raises(IndexError):  # there is no further change
            await reload_on_change(engine, file, {}, sleep=sleep)

    changed = Limits(messages=3, call_timeout=9)
    assert seen == [
        ("You are a pirate.", Limits(messages=3)),
        ("You are a pirate.", changed),
        ("You are a gardener.", changed),
    ]


async def test_a_cap_on_money_for_a_model_without_a_price_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = a_config(tmp_path)
    changes = ['[persona]\nname = "New"\n[limits.total]\nmoney = 1.0']

    async def sleep(_: float) -> None:
        (tmp_path / "tertulia.toml").write_text(changes.pop())

    async with Store.open(":memory:") as store:
        engine = Engine(store, Scripted(name="unpriced"), [RecordedPlatform()])
        with pytest.raises(IndexError):  # there is no further change
            await reload_on_change(engine, file, {}, sleep=sleep)

    assert (engine.limits, engine.persona) == (Limits(), Persona())
    assert [record.getMessage().replace(str(tmp_path), "") for record in caplog.records] == [
        "the change of /tertulia.toml is not taken over: "
        "money is capped, but unpriced has no price: set it in Behavior(prices=…)"
    ]


async def test_a_model_or_a_key_that_its_service_refuses_is_logged_before_somebody_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with GeminiSim() as sim:
        models = [
            Gemini(name, key=key, base_url=sim.url)
            for name, key in (("gemini-3.8-flash", "any"), ("gemini-99-ultra", "any"), ("gemini-3.8-flash", "bad-key"))
        ]
        await check_models([*models, Gemini("gemini-3.8-flash", key="any", base_url="http://127.0.0.1:9"), Scripted()])
        for model in models:
            await model.aclose()

    assert [message.partition(":")[0] for message in caplog.messages] == [
        "gemini-99-ultra cannot answer",
        "gemini-3.8-flash cannot answer",
    ]
    assert "Gemini does not know gemini-99-ultra" in caplog.messages[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running(folder: Path, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tertulia", "run"),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES), **environment},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def logged(process: asyncio.subprocess.Process, message: str) -> dict[str, Any]:
    """Read the log up to a message."""
    assert process.stderr is not None
    while line := await process.stderr.readline():
        found: dict[str, Any] = json.loads(line)
        if found["message"] == message:
            return found
    raise AssertionError(message)


async def test_tertulia_run_answers_reloads_and_ends(tmp_path: Path) -> None:
    port = free_port()
    a_config(tmp_path, f'[behavior]\ndebounce = 0\n[platforms.lines]\nuse = "line_chat:LineChat"\nport = {port}')
    async with GeminiSim() as sim:
        environment = {"GEMINI_API_KEY": "any", "TERTULIA_GEMINI_BASE_URL": sim.url}
        async with running(tmp_path, **environment) as process:
            await logged(process, "lines: receiving messages")
            reader, writer = await connect(port)
            writer.write(b"Olena\nHow are you?\n")
            answer = await reader.readline()
            sent = await logged(process, "reply sent")
            (tmp_path / "persona.md").write_text("You are another.")
            await logged(process, "taken over: persona")
            process.terminate()
            status = await process.wait()
            writer.close()

    assert answer.strip()
    assert {name: sent[name] for name in ("level", "logger", "message", "place")} == {
        "level": "info",
        "logger": "tertulia.bot",
        "message": "reply sent",
        "place": "lines/Olena",
    }
    assert status == 0


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect as soon as the server listens."""
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)


def test_the_example_is_a_config() -> None:
    text = (EXAMPLES / "tertulia.toml").read_text()

    assert read_config(text, {}).platforms == {
        "lines": PlatformConfig(use="line_chat:LineChat", options={"port": 7000})
    }

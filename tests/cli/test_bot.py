"""`tertulia init`, `tertulia check` and `tertulia run`."""

import asyncio
import json
import os
import re
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from cli.command import tertulia
from people import NOON
from tertulia.app import open_bot
from tertulia.bot_check import Finding, check_bot
from tertulia.config import Config, load_config, read_config
from tertulia.config_reader import keys_of
from tertulia.engine.store_protocols import AddedAgent, OwnerSetting
from tertulia.errors import StoreRefused
from tertulia.media.file_folder import FileFolder, Owner
from tertulia.media.values import StoredFile
from tertulia.models.local.weights import WEIGHTS
from tertulia.platforms.terminal.found_model import RememberedChoice, save_choice
from tertulia.redaction import redact_keys
from tertulia.sim import GeminiSim, OpenAISim
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.wire.media_limits import MediaTaken

TEMPLATE = files("tertulia.cli").joinpath("template.toml").read_text(encoding="utf-8")
NO_DEFAULT = re.compile(
    r"^# (place|person|total|answer_if|error_text|forget_question|prices|budget\.counter|temperature|top_p|top_k"
    r"|max_tokens|seed|thinking|thoughts|tool_choice|safety|answer|use|blocks|stickers|\[platforms|\[agents|persona\.file)\b"
)  # lines with examples


def uncommented(*, examples: bool) -> str:
    """The template with its keys in force."""
    lines = []
    for line in TEMPLATE.replace("{model}", "qwen").replace("{zone}", "UTC").splitlines():
        key = re.match(r"# [\w.\"-]+ = |# \[", line)
        if key and (examples or not NO_DEFAULT.match(line)):
            lines.append(line.removeprefix("# "))
        elif not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines)


def test_the_template_has_every_key_of_a_config() -> None:
    table = ""
    written = set()
    for line in uncommented(examples=True).splitlines():
        if header := re.match(r"\[([\w.]+)\]", line):
            table = header[1] + "."
        elif key := re.match(r"([\w.]+)(?:\.\"[^\"]+\")? =", line):
            written.add(table + key[1])

    keys = {key.name for key in keys_of(Config)}
    open_tables = ("platforms", "agents")
    assert {name for name in written if not name.startswith(open_tables)} == keys - {*open_tables}


def test_the_defaults_of_the_template_are_those_of_the_code(tmp_path: Path) -> None:
    (tmp_path / "tertulia.toml").write_text(uncommented(examples=False).replace('file = "persona.md"', ""))

    assert load_config(tmp_path / "tertulia.toml", {}).config == read_config('model = "qwen"\nzone = "UTC"', {}).config


def test_init_writes_short_prompts_for_a_model_that_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    with (tmp_path / "models" / WEIGHTS["qwen"].file).open("wb") as weights:
        weights.truncate(WEIGHTS["qwen"].size)
    names = []
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for folder, variables in {
        "small": {"TERTULIA_MODELS": str(tmp_path)},
        "better": {"TERTULIA_MODELS": str(tmp_path / "models")},
        "keyed": {"GEMINI_API_KEY": "any"},
    }.items():
        tertulia("init", folder, **variables)
        config = load_config(tmp_path / folder / "tertulia.toml", {}).config
        names.append((config.model, config.profile, len(config.tools)))

    assert names == [("smollm2", "plain", 0), ("qwen", "plain", 0), ("gemini-3.8-flash", "layered", 4)]


def test_init_takes_the_model_that_a_chat_would_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    keyed = tertulia("init", "keyed", GROQ_API_KEY="any")
    choice = RememberedChoice(model="openai:gpt-5.6", keys={"OPENAI_API_KEY": "secret"})
    save_choice(choice, tmp_path / "tertulia" / "chat.json")
    pasted = tertulia("init", "pasted")

    models = [load_config(tmp_path / name / "tertulia.toml", {}).config.model for name in ("keyed", "pasted")]
    assert models == ["groq:llama-3.3-70b-versatile", "openai:gpt-5.6"]
    assert len(keyed.stdout.splitlines()) == 3
    line = "The key that you pasted is for tertulia chat alone: set OPENAI_API_KEY for the bot"
    assert pasted.stdout.splitlines()[1] == line


def test_init_writes_a_file_that_can_be_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = tertulia("init", "mybot", GEMINI_API_KEY="any", TZ="Europe/Kyiv")
    again = tertulia("init", "mybot")
    nowhere = tertulia("init", "mybot/persona.md/other")

    assert (made.returncode, made.stdout.splitlines()[0]) == (0, "wrote mybot/tertulia.toml and mybot/persona.md")
    assert (
        made.stdout.splitlines()[-1] == "Say who the bot is in persona.md, then: cd mybot, tertulia check, tertulia run"
    )
    assert (nowhere.returncode, nowhere.stderr) == (
        2,
        "tertulia: mybot/persona.md/other could not be written: Not a directory\n",
    )
    assert (again.returncode, again.stderr) == (2, "tertulia: mybot/tertulia.toml exists already; it is not replaced\n")
    config = load_config(tmp_path / "mybot" / "tertulia.toml", {}).config
    assert (config.model, config.zone) == ("gemini-3.8-flash", "Europe/Kyiv")
    assert config.persona.text.startswith("You are a friendly member")


async def test_check_says_what_works_and_what_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tertulia.toml").write_text(
        'model = ["gemini-3.8-flash", "openai:gpt-5.6"]\nzone = "UTC"\ntools = ["clock"]\n'
        '[platforms.one]\nuse = "tertulia.testing:RecordedPlatform"\n[platforms.two]\nuse = "nowhere:Two"\n'
    )
    for name in ("OPENAI_API_KEY", "TERTULIA_DB"):
        monkeypatch.delenv(name, raising=False)
    async with GeminiSim() as sim:
        variables = {"GEMINI_API_KEY": "any", "TERTULIA_GEMINI_BASE_URL": sim.url, "TERTULIA_LIMITS_MESAGES": "3"}
        done = await asyncio.to_thread(tertulia, *"check --json".split(), **variables)

    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [(one["what"], one["ok"]) for one in found] == [
        ("config", True),
        ("variable", False),
        ("zone", True),
        ("profile", True),
        ("persona", True),
        ("store", True),
        ("tools", True),
        ("model", True),
        ("model", False),
        ("platform one", True),
        ("platform two", False),
    ]
    assert found[1]["line"] == "TERTULIA_LIMITS_MESAGES is no setting; did you mean TERTULIA_LIMITS_MESSAGES?"
    assert found[5]["line"] == "tertulia.db will be made"
    assert re.fullmatch(r"gemini-3.8-flash answers \(\d+ tokens\)", found[7]["line"])
    assert found[8]["line"].startswith("no key for gpt-5.6")


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        (
            [],
            [("page", True, "http://127.0.0.1:8765"), ("traces", True, "spans go to http://127.0.0.1:4318/v1/traces")],
        ),
        (
            ["tertulia.platforms.web.page", "tertulia.traces.tracing"],
            [
                ("page", False, "the page needs a web server: pip install 'tertulia[web]'"),
                ("traces", False, "traces need OpenTelemetry: pip install 'tertulia[traces]'"),
            ],
        ),
    ],
)
async def test_check_looks_at_the_page_and_the_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: list[str], found: list[tuple[str, bool, str]]
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "tertulia.toml").write_text(
        'model = "smollm2"\n[web]\n[traces]\nendpoint = "http://127.0.0.1:4318/v1/traces"'
    )

    findings = [one async for one in check_bot(tmp_path / "tertulia.toml", {})]

    assert [(one.what, one.ok, one.line) for one in findings[-2:]] == found


async def test_check_looks_at_each_agent(tmp_path: Path) -> None:
    (tmp_path / "tertulia.toml").write_text(
        'model = "smollm2"\n[agents.Albert]\npersona.text = "Be Albert."\nmodel = "openai:gpt-5.6"\ntools = ["clock"]\n'
        '[agents.Marie]\ntools = ["nothing"]'
    )

    found = [one async for one in check_bot(tmp_path / "tertulia.toml", {"TERTULIA_AGENTS_MARIE_KNOWS": "all"})]

    *agents, refused = [one for one in found if one.what.startswith("agent")]
    assert agents == [
        Finding(what="agent Albert", ok=True, line="10 characters, persona.text"),
        Finding(what="agent Albert", ok=True, line="current_time"),
        Finding(what="agent Marie", ok=True, line="none: persona.file or persona.text says who the bot is"),
    ]
    assert "tertulia.toml:7: agents.Marie.tools: no tool is called 'nothing'" in refused.line
    assert [one.what for one in found if one.what in ("persona", "variable")] == []
    assert len([one for one in found if one.what == "model"]) == 2


async def test_check_says_that_the_page_is_not_safe(tmp_path: Path) -> None:
    (tmp_path / "tertulia.toml").write_text('model = "smollm2"\n[web]\nhost = "0.0.0.0"')

    *_, page = [one async for one in check_bot(tmp_path / "tertulia.toml", {})]

    assert (page.what, page.ok) == ("page", False)
    assert "web: host 0.0.0.0 can be reached by others: give certificate and key" in page.line


async def test_check_asks_who_describes_and_transcribes_media(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tertulia.toml").write_text(
        'model = "gemini-3.8-flash"\n[media]\ndescribe = "openai:gpt-4o"\ntranscribe = "openai:whisper-1"\n'
    )
    async with GeminiSim() as gemini, OpenAISim(keys=frozenset({"good"})) as openai:
        urls = {"TERTULIA_GEMINI_BASE_URL": gemini.url, "TERTULIA_OPENAI_BASE_URL": openai.url, "GEMINI_API_KEY": "any"}
        good, bad = [
            await asyncio.to_thread(tertulia, *"check --json".split(), **urls, OPENAI_API_KEY=key)
            for key in ("good", "wrong")
        ]

    found = [json.loads(line) for line in good.stdout.splitlines()]
    refused = [json.loads(line) for line in bad.stdout.splitlines()]
    said = [(one["what"], one["ok"], one["line"]) for one in found if one["what"] in ("model", "transcriber")]
    assert [(what, ok) for what, ok, _ in said] == [("model", True), ("model", True), ("transcriber", True)]
    assert said[2][2] == "openai:whisper-1 is there"
    assert [one["ok"] for one in refused if one["what"] in ("model", "transcriber")] == [True, False, False]


async def test_check_says_that_a_model_which_is_to_describe_media_sees_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in ("tertulia.app", "tertulia.bot_check"):
        monkeypatch.setattr(f"{module}.media_taken", lambda _: MediaTaken())  # as of a local model
    (tmp_path / "tertulia.toml").write_text(
        'model = "openai:gpt-4o"\nstore = ":memory:"\nmedia.describe = "openai:o3-mini"\n'
    )
    async with OpenAISim() as openai:
        keys = {"TERTULIA_OPENAI_BASE_URL": openai.url, "OPENAI_API_KEY": "any"}
        found = [one.line async for one in check_bot(Path("tertulia.toml"), keys) if one.what == "model"]
        async with open_bot(load_config(Path("tertulia.toml"), keys), keys, platforms=[RecordedPlatform()]):
            pass

    assert [line.endswith("; it sees no pictures, and describes only documents") for line in found] == [False, True]
    assert caplog.messages == ["media.describe: openai:o3-mini: it sees no pictures, and describes only documents"]


async def test_check_says_which_models_have_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tertulia.toml").write_text(
        'model = ["gemini-3.8-flash", "openai:gpt-4o"]\ncache = true\nstore = ":memory:"\n'
    )
    async with GeminiSim() as gemini, OpenAISim() as openai:
        keys = {
            "TERTULIA_GEMINI_BASE_URL": gemini.url,
            "TERTULIA_OPENAI_BASE_URL": openai.url,
            **dict.fromkeys(("GEMINI_API_KEY", "OPENAI_API_KEY"), "any"),
        }
        found = [one async for one in check_bot(Path("tertulia.toml"), keys) if one.what == "model"]

    assert [one.ok for one in found] == [True, True]
    assert [one.line.partition("; ")[2] for one in found] == [
        "its prompts are cached",
        "cache = true does nothing for gpt-4o: only models of Gemini have explicit caches",
    ]


async def test_check_says_when_what_decodes_media_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tertulia.toml").write_text('store = ":memory:"')
    for module in ("PIL", "av"):
        monkeypatch.setitem(sys.modules, module, None)

    found = [one async for one in check_bot(tmp_path / "tertulia.toml", {})]

    assert [one for one in found if one.what == "media"] == [
        Finding(what="media", ok=True, line="tertulia[media] is not installed: no pillow, av")
    ]


def test_without_a_file_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = "cannot read tertulia.toml: No such file or directory; `tertulia init` writes one"

    ran, checked = tertulia("run"), tertulia("check")

    assert (ran.returncode, last_line(ran.stderr)) == (2, ("critical", line))
    assert (checked.returncode, checked.stdout) == (1, f"✗ config: {line}\n")


def last_line(log: str) -> tuple[str, str]:
    """The level and the message of the last line of a log, each line of which is JSON."""
    *_, last = map(json.loads, log.splitlines())
    return last["level"], last["message"]


def test_run_needs_a_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tertulia("init")

    ran = tertulia("run")

    line = (
        "tertulia.toml names no platform: set TERTULIA_TELEGRAM_TOKEN, add [web] or [platforms.NAME], "
        "or talk to the bot with `tertulia chat`"
    )
    assert (ran.returncode, last_line(ran.stderr)) == (2, ("critical", line))


def test_other_commands_use_the_store_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TERTULIA_DB", raising=False)
    (tmp_path / "tertulia.toml").write_text('store = "bot.db"')

    assert tertulia("outbox").stderr.startswith("tertulia: the store bot.db: it does not exist")


@pytest.mark.parametrize(
    ("folder", "ok", "line"),
    [
        ("photos", True, "files in photos"),
        ("later/photos", True, "later/photos will be made"),
        ("a file", False, "the folder of media a file: a file cannot be written (Not a directory)"),
        ("/proc/x", False, "the folder of media /proc/x: /proc cannot be written (No such file or directory)"),
        (
            "taken",
            False,
            "the folder of media {here}/taken: it belongs to the store /dev/null; name another folder with"
            " media.folder, or remove .store in it if that store is gone or has another folder",
        ),
    ],
)
async def test_check_names_the_folder_of_media(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, ok: bool, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "a file").write_text("no folder")
    FileFolder(tmp_path / "taken", owner=Owner("a" * 32, "/dev/null")).claim()
    (tmp_path / "tertulia.toml").write_text(f'model = "x"\ntools = []\nmedia.folder = "{folder}"\n')

    findings = [one async for one in check_bot(Path("tertulia.toml"), {}) if one.what == "media"]

    assert findings == [Finding(what="media", ok=ok, line=redact_keys(line.format(here=tmp_path)))]
    assert not (tmp_path / "later").exists()
    assert os.listdir(tmp_path / "photos") == []


async def test_check_says_what_to_do_where_the_store_was_removed_and_its_folder_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tertulia.toml").write_text('model = "x"\ntools = []\n')
    path, folder = tmp_path / "tertulia.db", tmp_path / "tertulia.db-media"
    async with Store.open(path) as store:
        await store.media.add("p1", b"\xff\xd8", StoredFile(sha256="", size=0, mime="image/jpeg"), at=NOON)
    path.unlink()
    line = (
        f"the folder of media {folder}: it has files of an earlier {path}; to begin anew remove the folder too,"
        " or put there the folder of the backup that is now the store"
    )

    before = [one async for one in check_bot(Path("tertulia.toml"), {}) if one.what in ("store", "media")]
    with pytest.raises(StoreRefused, match=re.escape(line)):
        Store.open(path).__enter__()
    after = [one async for one in check_bot(Path("tertulia.toml"), {}) if one.what in ("store", "media")]

    assert before[1:] == [Finding(what="media", ok=False, line=redact_keys(line))]
    assert after == [Finding(what="store", ok=False, line=redact_keys(f"the store tertulia.db: {line}"))]


async def test_check_says_what_owners_changed_as_long_as_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    head = 'model = "x"\ntools = []\npersona.text = "Gryag."\n'
    (tmp_path / "tertulia.toml").write_text(f'{head}behavior.owners = ["telegram:1"]\n')
    limit = {"messages": 20, "seconds": 60.0}
    async with Store.open(tmp_path / "tertulia.db") as store:
        for name, value, replaced in (
            ("persona", {"text": "A pirate."}, {"text": "Gryag."}),
            ("limit", {**limit, "messages": 3}, {**limit, "messages": 10}),  # the file was changed since
        ):
            await store.owner_settings.put(OwnerSetting(name=name, value=value, replaced=replaced, at=NOON))
        beside = [one async for one in check_bot(Path("tertulia.toml"), {}) if one.what in ("persona", "limit")]

    found = [one async for one in check_bot(Path("tertulia.toml"), {}) if one.what in ("persona", "limit")]
    (tmp_path / "tertulia.toml").write_text(head)
    unowned = [one async for one in check_bot(Path("tertulia.toml"), {}) if one.what in ("persona", "limit")]

    line = "an owner changed it by /persona on 2025-01-15; /persona - takes that of tertulia.toml"
    assert found == beside == [*unowned, Finding(what="persona", ok=True, line=line)]


async def test_check_shows_the_agents_that_owners_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tables = '[agents.Ada]\npersona.text = "You are Ada."\n[agents.Bob]\nnames = ["Zen*"]\n'
    (tmp_path / "tertulia.toml").write_text(f'model = "x"\nbehavior.owners = ["telegram:1"]\n{tables}')
    async with Store.open(tmp_path / "tertulia.db") as store:
        await store.agents.add(AddedAgent(name="Eve", text="You are Eve.", at=NOON))
        await store.agents.add(AddedAgent(name="Zeno", text="You are Zeno.", at=NOON))

    found = [one async for one in check_bot(Path("tertulia.toml"), {}) if one.what.startswith("agent ")]

    added = "an owner added it by /agent add on 2025-01-15"
    left_out = "; it is left out, since people could not tell it from those of the config"
    assert found[-2:] == [
        Finding(what="agent Eve", ok=True, line=f"12 characters, {added}"),
        Finding(what="agent Zeno", ok=False, line=f"13 characters, {added}{left_out}"),
    ]

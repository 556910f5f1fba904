"""A bot in one file, and in variables."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tertulia.config import (
    RENAMED,
    Config,
    ConfigFile,
    MemoryConfig,
    PersonaConfig,
    PlatformConfig,
    SettingsConfig,
    find_config,
    from_environment,
    load_config,
    read_config,
)
from tertulia.config_reader import keys_of
from tertulia.context.budget import Budget
from tertulia.context.gather import ContextBlock, ContextOptions
from tertulia.context.sources import stickers
from tertulia.engine.behavior import Behavior
from tertulia.engine.limits import Cap, Limits
from tertulia.errors import InvalidValue
from tertulia.models.prices import PRICES, Price
from tertulia.tasks.task import Retry

WHOLE = """
model = ["gemini-3.8-flash", "openai:gpt-5.6"]
store = "data/bot.db"
zone = "Europe/Kyiv"
profile = "tail"
tools = ["clock", "my_tools:roll"]

[persona]
name = "Gryag"
file = "persona.md"

[settings]
temperature = 0.7
thinking = "low"

[context]
history_size = 200
block.max_messages = 20
budget.window = 50_000
sources = ["tertulia.context.sources:stickers"]

[behavior]
names = ["гряг"]
debounce = 0
max_debounce = 0.5
during_run = "next_step"
retry.limit = 2
model_may = ["block"]
keep_updates = "30 days"
prices."my-model" = { input = 1, output = 2 }
answer_if = "builtins:bool"
blocks = []

[limits]
messages = 5
person.tokens = 100_000

[memory]
model = "gemini-3.5-flash-lite"

[platforms.mine]
use = "my_chat:Mine"
room = 7
"""


def test_a_whole_file(tmp_path: Path) -> None:
    (tmp_path / "persona.md").write_text("You are Gryag.\n")
    (tmp_path / "tertulia.toml").write_text(WHOLE)

    assert replace(load_config(tmp_path / "tertulia.toml", {}), reader=None) == ConfigFile(
        config=Config(
            model=("gemini-3.8-flash", "openai:gpt-5.6"),
            store="data/bot.db",
            zone="Europe/Kyiv",
            profile="tail",
            tools=("clock", "my_tools:roll"),
            persona=PersonaConfig(name="Gryag", file="persona.md", text="You are Gryag."),
            settings=SettingsConfig(temperature=0.7, thinking="low"),
            context=ContextOptions(
                history_size=200,
                block=ContextBlock(max_messages=20),
                budget=Budget(window=50_000),
                sources=(stickers,),  # type: ignore[arg-type]
            ),
            behavior=Behavior(
                names=("гряг",),
                debounce=0.0,
                max_debounce=0.5,
                during_run="next_step",
                retry=Retry(limit=2),
                model_may=frozenset({"block"}),
                keep_updates=30 * Behavior().keep_updates / 7,
                prices={**PRICES, "my-model": Price(input=1.0, output=2.0)},
                answer_if=bool,
                blocks=(),
            ),
            limits=Limits(messages=5, person=Cap(tokens=100_000)),
            memory=MemoryConfig(model="gemini-3.5-flash-lite"),
            platforms={"mine": {"use": "my_chat:Mine", "room": 7}},
        ),
        platforms={"mine": PlatformConfig(use="my_chat:Mine", options={"room": 7})},
        folder=tmp_path,
        path=tmp_path / "tertulia.toml",
    )


def test_without_anything_there_are_the_defaults() -> None:
    assert from_environment({}) == Config()


def test_the_old_names_of_variables_work() -> None:
    environment = {
        "ENABLE_SYSTEM_CONTEXT_BLOCK": "true",
        "SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES": "200",
        "SYSTEM_CONTEXT_BLOCK_INCLUDE_META": "false",
        "ENABLE_MULTI_LEVEL_CONTEXT": "0",
        "HISTORY_SIZE": "0",
        "TERTULIA_PROFILE": "tail",
        "TERTULIA_MEMORY": "off",
        "TERTULIA_DB": "/srv/bot.db",
    }

    assert from_environment(environment) == Config(
        store="/srv/bot.db",
        profile="tail",
        context=ContextOptions(
            history_size=0,
            levels=False,
            block=ContextBlock(enabled=True, max_messages=200, include_meta=False),
        ),
        memory=MemoryConfig(enabled=False),
    )


def test_every_key_has_a_variable_of_its_own() -> None:
    variables = [key.variable for key in keys_of(Config)]

    assert len(set(variables)) == len(variables)
    assert not {"TERTULIA_MODELS", "TERTULIA_CONFIG", "TERTULIA_TRACEBACK"} & set(
        variables
    )  # these mean something else
    assert set(RENAMED.values()) <= {key.name for key in keys_of(Config)}


@pytest.mark.parametrize("word", ["TRUE", " yes ", "On", "1"])
def test_words_for_yes(word: str) -> None:
    assert from_environment({"ENABLE_SYSTEM_CONTEXT_BLOCK": word}).context.block.enabled


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("ENABLE_MULTI_LEVEL_CONTEXT", "maybe", "ENABLE_MULTI_LEVEL_CONTEXT must be true or false, not 'maybe'"),
        ("SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES", "9", "must be a whole number from 10 to 200, not '9'"),
        ("SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES", "²0", "must be a whole number from 10 to 200, not '²0'"),
        ("HISTORY_SIZE", "-1", "HISTORY_SIZE must be a whole number from 0 to 100000, not '-1'"),
        ("TERTULIA_LIMITS_PERSON_MONEY", "much", "TERTULIA_LIMITS_PERSON_MONEY must be a number, not 'much'"),
    ],
)
def test_a_bad_variable_is_named(name: str, value: str, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        from_environment({name: value})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[behavior]\ndebounce = 5\nmax_debounce = 1", "tertulia.toml:3: Behavior: 0 <= debounce <= max_debounce"),
        ('[behavior]\nanswer_if = "nowhere:x"', "tertulia.toml:2: behavior.answer_if: cannot import nowhere: Module"),
        ('[behavior]\nanswer_if = "os:x"', "tertulia.toml:2: behavior.answer_if: there is no x in os"),
        ('[persona]\nname = "x"\nfile = "no.md"', "tertulia.toml:3: cannot read the persona no.md: No such file"),
        ("[platforms]\nmine = 1", r"tertulia.toml:2: platforms.mine must be a table: \[platforms.mine\], not 1"),
        ("[platforms.mine]\nroom = 1", "tertulia.toml:1: platforms.mine.use must be the class of the platform, as "),
        ('[behavior]\nanswer_if = "tertulia.config:load_objct"', "answer_if: there .* did you mean load_object"),
        (
            '[behavior]\nanswer_if = "tertulia.backoff:x"',
            "answer_if: there is no x in tertulia.backoff; there are backoff",
        ),
        ('[behavior]\nanswer_if = "rules.py:x"', 'behavior.answer_if: a module is named without .py: "rules:x"'),
        ("[settings]\ntemperature = -5", "tertulia.toml:2: settings.temperature must be a number from 0 to 2, not -5"),
        ("[settings]\ntop_p = 1.5", "tertulia.toml:2: settings.top_p must be a number from 0 to 1, not 1.5"),
        ("[settings]\ntop_k = 0", "tertulia.toml:2: settings.top_k must be a whole number from 1 on, not 0"),
        ("[settings]\nmax_tokens = -5", "settings.max_tokens must be a whole number from 1 on, not -5"),
        ("[settings]\nthinking = -2", "settings.thinking must be a whole number from -1 on or one of .* not -2"),
        ("[media]\nkeep = 0", "tertulia.toml:2: media.keep must be longer than nothing"),
        ('[media]\nallowed_addresses = ["nas:99999"]', "tertulia.toml:2: 'nas:99999' cannot be allowed: a port is a"),
        (
            "[context.budget]\nmedia = -1",
            "tertulia.toml:2: context.budget.media must be a whole number from 0 on, not -1",
        ),
        (
            "[persona]\ntools = []",
            "tertulia.toml:2: there is no key persona.tools; tools belongs above the first table",
        ),
        ("[limits]\ntools = []", "tertulia.toml:2: there is no key limits.tools; tools belongs above the first table"),
        ("[limit]\nmessages = 1", r"tertulia.toml:1: there is no key limit, did you mean limits\? Allowed are: model"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint) as refused:
        read_config(text, {})

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({"TERTULIA_PERSONA_FILE": "no.md"}, "TERTULIA_PERSONA_FILE: cannot read the persona no.md: No such file"),
        (
            {"TERTULIA_PERSONA_FILE": "\0"},
            r"TERTULIA_PERSONA_FILE: cannot read the persona '\\x00': embedded null byte",
        ),
        ({"TERTULIA_BEHAVIOR_DEBOUNCE": "-5"}, "TERTULIA_BEHAVIOR_DEBOUNCE: Behavior: 0 <= debounce"),
        ({"TERTULIA_PLATFORMS": "[" * 100_000}, "TERTULIA_PLATFORMS must be a table"),
    ],
)
def test_a_variable_that_is_refused_late_is_named_too(environment: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{complaint}"):
        read_config("", environment)


@pytest.mark.parametrize(
    "text",
    [
        '[[platforms.mine]]\nuse = "a:B"\ntoken = "t0p"',
        'platforms = [{token = "t0p"}]',
        '[platforms]\nmine = "t0p"',
        '[platforms.mine]\nuse = {token = "t0p"}',
    ],
)
def test_no_option_of_a_platform_is_in_an_error(text: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_config(text, {})

    assert "t0p" not in str(refused.value)


def test_platforms_may_be_a_variable() -> None:
    environment = {"TERTULIA_PLATFORMS": '{"mine": {"use": "my_chat:Mine", "room": 7}}'}

    assert read_config("platforms = 5", environment).platforms == {
        "mine": PlatformConfig(use="my_chat:Mine", options={"room": 7})
    }


def test_a_variable_sets_the_option_of_a_platform() -> None:
    text = '[platforms.mine]\nuse = "my_chat:Mine"\nroom = 7'
    environment = {"TERTULIA_PLATFORMS_MINE_TOKEN": "t0p", "TERTULIA_PLATFORMS_OTHER_TOKEN": "?"}

    assert read_config(text, environment).platforms == {
        "mine": PlatformConfig(use="my_chat:Mine", options={"room": 7, "token": "t0p"})
    }


def test_the_config_is_that_of_the_folder_or_of_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_config(tmp_path) is None
    (tmp_path / "tertulia.toml").touch()
    assert find_config(tmp_path) == tmp_path / "tertulia.toml"
    monkeypatch.setenv("TERTULIA_CONFIG", "/etc/bot.toml")
    assert find_config(tmp_path) == Path("/etc/bot.toml")


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"No such file or directory; `tertulia init` writes one"):
        load_config(tmp_path / "tertulia.toml", {})
    (tmp_path / "tertulia.toml").write_bytes(b"\xff")
    with pytest.raises(InvalidValue, match=r"tertulia.toml is no text in UTF-8"):
        load_config(tmp_path / "tertulia.toml", {})


def test_models_are_a_list_also_where_one_is_named() -> None:
    assert Config(model="qwen").models == ("qwen",)
    assert replace(Config(), model=("a", "b")).models == ("a", "b")
    assert Config().models == ()

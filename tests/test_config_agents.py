"""Several agents in one file: `[agents]` and a table for each."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from people import NOON
from tertulia.app import open_cast, open_platform, with_accounts
from tertulia.bot_check import unknown_variables
from tertulia.config import AgentOptions, cast_of, load_config, read_config
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.limits import Cap, Limits
from tertulia.errors import InvalidValue
from tertulia.models import Scripted
from tertulia.profiles import PROFILES
from tertulia.store import Store

ALBERT = """
[agents]
default = "marie"
locked = true

[agents."Albert Einstein"]
persona.file = "albert.md"
names = ["Albert", "alb*"]
model = ["gemini-3.8-flash", "openai:gpt-5.6"]
profile = "tail"
tools = ["clock", "memory"]
settings.temperature = 1.0
memory = "own"
knows = "present"
limits.total.money = 1
avatar = "albert.png"
language = "uk"
places = ["telegram:-100123", "direct"]
may_send = ["Marie", "irc:#physics"]
accounts = ["second"]

[agents.Marie]
tools = []

[platforms.second]
use = "my_chat:Mine"
"""


def test_a_table_is_an_agent(tmp_path: Path) -> None:
    (tmp_path / "albert.md").write_text("You are Albert.\n")
    (tmp_path / "tertulia.toml").write_text(ALBERT)
    file = load_config(tmp_path / "tertulia.toml", {"TERTULIA_AGENTS_MARIE_PROFILE": "native"})

    albert = Agent(
        name="Albert Einstein",
        persona=Persona(text="You are Albert."),
        names=("Albert", "alb*"),
        profile=PROFILES["tail"],
        settings=file.agents["Albert Einstein"].settings,
        memory="own",
        knows="present",
        limits=Limits(total=Cap(money=1.0)),
        avatar="albert.png",
        language="uk",
        places=("telegram:-100123", "direct"),
        may_send=("Marie", "irc:#physics"),
        accounts=("second",),
    )
    assert albert.settings is not None
    assert albert.settings.temperature == 1.0
    assert file.agent_options == AgentOptions(default="marie", locked=True)
    assert cast_of(file) == Cast(
        agents=(albert, Agent(name="Marie", profile=PROFILES["native"])), default_name="marie", locked=True
    )


def test_without_tables_the_persona_is_the_only_agent() -> None:
    named = read_config('[persona]\nname = "Gryag"\ntext = "You are Gryag."\n[behavior]\nnames = ["гряг*"]', {})

    assert cast_of(named) == Cast(
        agents=(Agent(name="Gryag", persona=Persona(name="Gryag", text="You are Gryag."), names=("гряг*",)),)
    )
    assert cast_of(read_config("", {})) == Cast(agents=(Agent(name=""),))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[agents.a]\nnam = 1", "tertulia.toml:2: there is no key agents.a.nam, did you mean names? Allowed are: pers"),
        ('[agents.a]\npersona.txt = ""', "tertulia.toml:2: there is no key agents.a.persona.txt, did you mean text?"),
        ("[agents.a]\nlimits.messages = 1", "there is no key agents.a.limits.messages. Allowed are: place, person, t"),
        ('[agents.a]\nmemory = "mine"', "tertulia.toml:2: agents.a.memory must be one of own, shared, not 'mine'"),
        ('[agents.a]\n\nnames = ["b*x"]', "tertulia.toml:3: 'b*x' is no name: write names such as gryag, or gryag*"),
        ('[agents.a]\nplaces = ["x"]', "tertulia.toml:2: places must hold places as `service:id`, such as telegram:-"),
        ('[agents.a]\nprofile = "x"', "tertulia.toml:2: agents.a.profile: no profile is called 'x'; there are layered"),
        ('[agents.a]\nlanguage = "x"', "tertulia.toml:2: agents.a.language: 'x' has no lines; add them to behavior.l"),
        ('[agents.a]\naccounts = ["x"]', "tertulia.toml:2: agents.a.accounts: there is no platform 'x'"),
        ('[agents.a]\nmay_send = ["b"]', "tertulia.toml:2: agents.a.may_send: agent 'a': may_send must hold places as"),
        ('[agents.a]\npersona.file = "no.md"', "tertulia.toml:2: cannot read the persona no.md: No such file or dir"),
        ('zone = ""\n[agents.a.persona]\nname = "b"', "tertulia.toml:2: agents.a: agent 'a': its persona is named 'b'"),
        ("[agents.a]\n[agents.A]", "tertulia.toml:2: agents.A: two agents are named 'A': give each its own name"),
        ('[agents.a]\nnames = ["bb*"]\n[agents.bbc]', "tertulia.toml:3: agents.bbc: agent 'bbc': people could not te"),
        ("[agents]\na = 1", "tertulia.toml:2: agents.a must be a table: [agents.a], not 1"),
        ("agents = 1", "tertulia.toml:1: agents must be a table (in a variable: as JSON), not 1"),
        ("[agents]\nlocked = 1", "tertulia.toml:2: agents.locked must be true or false, not 1"),
        (
            '[agents]\ndefault = "b"\n[agents.a]',
            "tertulia.toml:2: agents.default: no agent is named 'b'; the agents: a",
        ),
        ('[agents]\ndefault = "b"', "tertulia.toml:2: agents.default: no agent is named 'b'; the agents: one without"),
        ('[persona]\ntext = "x"\n[agents.a]', "tertulia.toml:2: persona.text: where there are tables [agents.NAME],"),
        ('[behavior]\nnames = ["x"]\n[agents.a]', "tertulia.toml:2: behavior.names: where there are tables [agents"),
    ],
)
def test_what_is_wrong_with_an_agent_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_config(text, {})

    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_each_key_of_an_agent_has_a_variable() -> None:
    environment = {"TERTULIA_AGENTS_MARIE_KNOWS": "present", "TERTULIA_AGENTS_LOCKED": "yes"}

    file = read_config("[agents.marie]", environment)

    assert (file.agents["marie"].knows, file.agent_options.locked) == ("present", True)
    assert unknown_variables(environment, file.agents) == []
    assert [one.line.split(" is ")[0] for one in unknown_variables(environment)] == ["TERTULIA_AGENTS_MARIE_KNOWS"]
    with pytest.raises(InvalidValue, match=r"^TERTULIA_AGENTS_MARIE_KNOWS must be one of all, present, not 'x'"):
        read_config("[agents.marie]", {"TERTULIA_AGENTS_MARIE_KNOWS": "x"})


async def opened(text: str, **options: Any) -> list[tuple[list[str], list[str] | None]]:
    """The models and the tools of each agent."""
    file = read_config(text, {})
    async with Store.open(":memory:") as store, AsyncExitStack() as stack:
        environment = {"GEMINI_API_KEY": "any", "OPENAI_API_KEY": "any"}
        cast = await open_cast(file, store, stack, environment, now=lambda: NOON, zone="UTC", **options)
        return [
            (
                [f"{type(model).__name__} {model.name}" for model in one.models],
                None if one.tools is None else [spec.name for spec in one.tools.specs],
            )
            for one in cast.agents
        ]


async def test_the_models_and_tools_of_agents_are_opened() -> None:
    text = """
        cache = true
        [agents.a]
        model = ["gemini-3.8-flash", "openai:gpt-5.6"]
        tools = ["clock"]
        [agents.b]
        model = "mine"
        tools = []
        [agents.c]
    """
    mine = Scripted("yes", name="mine")

    found = await opened(text, models={"mine": mine})

    assert found == [
        (["CachedGemini gemini-3.8-flash", "OpenAI gpt-5.6"], ["current_time"]),
        (["Scripted mine"], []),
        ([], None),
    ]
    assert [models for models, _ in await opened(text, models=None)] == [[], [], []]
    assert await opened("", models={}) == [([], None)]


async def test_a_model_or_tool_of_an_agent_that_cannot_be_opened_is_named() -> None:
    with pytest.raises(InvalidValue, match=r"^tertulia.toml:2: agents.a.model: .*nothing"):
        await opened('[agents.a]\nmodel = "nothing"', models={})
    with pytest.raises(InvalidValue, match=r"^tertulia.toml:2: agents.a.tools: .*nothing"):
        await opened('[agents.a]\ntools = ["nothing"]', models={})


def test_the_accounts_of_agents_are_platforms_by_the_names_of_their_tables(tmp_path: Path) -> None:
    (tmp_path / "tertulia.toml").write_text(
        '[telegram]\n[agents.Ada]\naccounts = ["telegram"]\n[agents.Bob]\naccounts = ["telegram2"]\n'
        '[platforms.telegram2]\nuse = "telegram"\n'
    )
    tokens = {"TERTULIA_TELEGRAM_TOKEN": "11:secret", "TERTULIA_PLATFORMS_TELEGRAM2_TOKEN": "22:secret"}
    file = load_config(tmp_path / "tertulia.toml", tokens)
    platforms = [open_platform(name, one, file) for name, one in file.platforms.items()]

    cast = with_accounts(cast_of(file), file, platforms)

    assert [(one.name, one.accounts) for one in cast.agents] == [("Ada", ("telegram-11",)), ("Bob", ("telegram-22",))]

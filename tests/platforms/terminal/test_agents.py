"""Several agents in the terminal: who answers, by `--agent` and `/agent`, and whom a line is said to."""

from pathlib import Path

import pytest

from cli.command import tertulia
from platforms.terminal.pseudo import terminal
from platforms.terminal.test_main import CHAT, FLASH, beside, environment, piped_here
from platforms.terminal.test_session import Talk
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.models import Scripted
from tertulia.platforms.terminal.commands import ONE_AGENT
from tertulia.sim import GeminiSim
from tertulia.sim.behaviours import Echo
from tertulia.store import Store

CAST = Cast(agents=tuple(Agent(name=name, persona=Persona(text=f"You are {name}.")) for name in ("Ada", "Bob")))
CONFIG = """model = "gemini-3.8-flash"
store = "bot.db"
tools = []
[agents.Ada]
persona.text = "You are Ada."
[agents.Bob]
persona.text = "You are Bob."
tools = ["clock"]
"""


async def test_another_agent_answers_and_says_its_own_words() -> None:
    lines = ("hi", "/agent Bob", "and you?", "/system", "/system You are Rob.", "/history")
    talk = Talk(Scripted("I am Ada.", "I am Bob."), *lines, cast=CAST)

    async with Store.open(":memory:") as store:
        assert await talk.run_on(store) == 0
        messages = await store.log.read((await store.place_settings.listed())[0], 0, 9)

    assert talk.seen == [
        "I am Ada.", "Here: Bob (answers where nobody is named).", "Not here: Ada.", "I am Bob.",
        "You are Bob.", "You are Rob.", "you: hi", "Ada: I am Ada.", "you: and you?", "Bob: I am Bob.",
    ]  # fmt: skip
    assert [one.agent for one in messages] == [None, "Ada", None, "Bob"]


async def test_who_answered_last_goes_on_and_another_one_does_not_know_what_was_said() -> None:
    async with Store.open(":memory:") as store:
        await Talk(Scripted("I am Bob."), "my secret is blue", cast=CAST, agent="Bob").run_on(store)
        model = Scripted("Blue.", "Who knows.")
        await Talk(model, "what is it?", "/agent Ada", "what is it?", cast=CAST).run_on(store)

    knows = [any("blue" in turn.text for layer in asked.layers for turn in layer.turns) for asked in model.prompts]
    assert knows == [True, False]


async def test_where_there_is_one_agent_there_is_nothing_to_choose() -> None:
    talk = Talk(Scripted("Hi."), "/agents", "/agent Bob", "/help")

    assert await talk.run() == 0

    assert talk.seen[:2] == [ONE_AGENT, ONE_AGENT]
    assert not [line for line in talk.seen[2:] if line.startswith("/agent")]


def test_an_agent_of_the_config_is_asked_with_its_persona_and_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tertulia.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    with beside(GeminiSim(behaviour=Echo())) as sim:
        env = environment(sim)
        status, out, _ = piped_here("--agent", "bob", given="hi\n", env=env)
        piped_here(given="hi\n", env=env)

    asked = [str(request.body["systemInstruction"]) for request in sim.requests]
    assert (status, out) == (0, "hi\n")
    assert ["You are Bob." in asked[0], "You are Ada." in asked[1]] == [True, True]
    assert [["tools" in request.body] for request in sim.requests] == [[True], [False]]


def test_an_agent_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nowhere = tertulia("chat", "--agent", "Eve", "hi")
    (tmp_path / "tertulia.toml").write_text(CONFIG)
    unknown = tertulia("chat", "--agent", "Eve", "hi")
    (tmp_path / "tertulia.toml").write_text('model = "gemini-3.8-flash"\n')
    single = tertulia("chat", "--agent", "Eve", "hi")

    assert [(one.returncode, one.stderr) for one in (nowhere, unknown, single)] == [
        (2, "tertulia: --agent Eve: there is no tertulia.toml in this folder\n"),
        (2, "tertulia: --agent Eve: there is no such agent in tertulia.toml; the agents: Ada, Bob\n"),
        (2, "tertulia: --agent Eve: tertulia.toml has no table [agents.NAME]\n"),
    ]


async def test_the_line_says_whom_one_speaks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tertulia.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    async with GeminiSim(behaviour=Echo()) as sim, terminal(*CHAT, *FLASH, environment=environment(sim)) as tty:
        await tty.see("Ada >")
        tty.type("/agent Bob\r")
        await tty.see("Bob >")
        tty.type("hello\r")
        await tty.see("Bob >")
        tty.type("/quit\r")

        assert await tty.left() == 0

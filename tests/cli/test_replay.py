"""`tertulia replay` shows what a changed bot would have said, beside a bot that runs."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import stored_rows
from cli.command import Here, tertulia, tertulia_process
from inspector.evening import MODEL, an_evening
from tertulia import Store
from tertulia.sim import GeminiSim
from tertulia.sim.behaviours import Script
from tertulia.testing.fixtures import serve

SCRIPT = ["Ahoy, Alice.", "Seat 3A be free. Take it.", "Aye."]
TALK = {
    "now": "2025-01-15T12:00:00Z",
    "persona": {"name": "gryag", "text": "You are kind."},
    "messages": [
        {"id": "1", "author": {"id": "5", "name": "Alice"}, "parts": [{"kind": "text", "text": "Hello!"}]},
        {
            "id": "2",
            "author": {"id": "9", "name": "Gryag", "persona": "gryag"},
            "parts": [{"kind": "text", "text": "Hi."}],
        },
    ],
}


@pytest.fixture
def sim(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiSim]:
    with serve(GeminiSim(behaviour=Script(SCRIPT))) as sim:
        monkeypatch.setenv("GEMINI_API_KEY", "k")
        monkeypatch.setenv("TERTULIA_GEMINI_BASE_URL", sim.url)
        yield sim


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = tmp_path / "evening.db"

    async def talk() -> None:
        async with an_evening(path):
            pass

    asyncio.run(talk())
    return str(path)


def test_answers_stand_beside_each_other_while_a_bot_has_the_store(here: Here, db: str, sim: GeminiSim) -> None:
    """The costs are stored beside the bot, and nothing else is."""

    async def beside() -> tuple[tuple[int, str, str], list[str]]:
        async with Store.open(db) as store:
            shown = await asyncio.to_thread(
                here, "replay", "Friends", "--persona", "You are a pirate.", "--model", MODEL, "--db", db
            )
            return shown, [one.call.purpose for one in await store.usage.calls(most=3)]

    (status, shown, errors), purposes = asyncio.run(beside())

    assert (status, purposes) == (0, ["replay"] * 3)
    assert errors.splitlines()[-1].startswith("100 %: 3 of 3, $0.")
    lines = [line.rstrip() for line in shown.splitlines()]
    assert lines[1:4] == [
        "Alice: Gryag, hello!",
        f"then, {MODEL}, layered        │ now, {MODEL}, layered",
        "Hello, Alice.                          │ Ahoy, Alice.",
    ]
    assert "Seat 3A is free. Take it.              │ Seat 3A be free. Take it." in lines
    assert lines[-2] == "3 of 3 answers changed"
    assert lines[-1].startswith("then 9 requests, 1,878 tokens, $0.0033; now 3 requests, ")


def test_without_a_change_the_requests_are_checked(here: Here, db: str) -> None:
    assert here("replay", "Friends", "--db", db) == (0, "9 of 9 requests rebuilt byte for byte\n", "")
    stored_rows.on_file(db, stored_rows.change, "calls", {"id": 1}, sha256="0" * 64)

    status, shown, _ = here("replay", "Friends", "--db", db)
    first, last = shown.splitlines()

    assert (status, last) == (0, "8 of 9 requests rebuilt byte for byte")
    assert first.endswith("step 0, try 1: not as it was sent: the program encodes otherwise since")


def test_a_file_is_replayed_as_json(here: Here, sim: GeminiSim, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(TALK))

    status, shown, _ = here("replay", str(file), "--model", MODEL, "--profile", "native", "--json")
    found = json.loads(shown)

    assert status == 0
    (run,) = found["runs"]
    assert (run["asked"], run["before"]["texts"], run["after"]["texts"]) == (
        ["Alice: Hello!"],
        ["Hi."],
        ["Ahoy, Alice."],
    )
    assert (found["sum"]["changed"], found["sum"]["after"]["calls"]) == (1, 1)
    asked = json.dumps(sim.requests[0].body)
    assert "You are kind." in asked
    assert "Hi." not in asked


def test_a_cap_of_the_config_ends_it_in_one_line(db: str, sim: GeminiSim, tmp_path: Path) -> None:
    """What was said before the cap is shown."""
    config = tmp_path / "tertulia.toml"
    config.write_text(f'model = "{MODEL}"\n[limits.total]\ntokens = 100\n')

    ran = tertulia("replay", "Friends", "--persona", "You are a pirate.", "--db", db, TERTULIA_CONFIG=str(config))

    assert ran.returncode == 2
    assert ran.stdout.splitlines()[-2] == "1 of 1 answer changed"
    assert ran.stderr.splitlines()[-1] == "tertulia: nothing more is replayed today: a spend cap is reached"
    assert len(sim.requests) == 1


def test_what_cannot_be_replayed_is_refused_in_one_line(db: str, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(TALK))
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps({**TALK, "messages": TALK["messages"][:1]}))  # type: ignore[index]
    refused = [
        tertulia("replay", *arguments, "--db", db).stderr
        for arguments in (
            ["Nowhere"],
            ["Friends", "--since", "2026-01-01"],
            ["Friends", "--profile", "nice"],
            ["Friends", "--persona", "You are a pirate."],
            ["Friends", "--persona", "persona.md"],
            ["Friends", "--model", "gpt-9"],
            [str(file)],
            [str(empty), "--profile", "plain"],
        )
    ]

    assert [line.partition("tertulia: ")[2].strip()[:58] for line in refused] == [
        "nothing is stored of a place Nowhere; there are: Friends (",
        "nothing was answered in Friends since then",
        "no profile is called 'nice'; there are layered, tail, nati",
        "which model is to be asked? Say it with --model; no tertul",
        "there is no file persona.md; a persona that is no file has",
        "no model is called 'gpt-9', did you mean openai:gpt-5? The",
        "a file has no requests to check; say what is changed: --pe",
        f"{empty}: the agent answers nothing in it"[:58],
    ]


def test_its_help_has_an_example() -> None:
    ran = tertulia_process("replay", "--help")

    assert (ran.returncode, "Example: tertulia replay Friends" in ran.stdout) == (0, True)

"""`tertulia inspect` shows the bot, the requests of a place as bars, and a run on its time line."""

import asyncio
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.command import Here, tertulia_process
from cli.stores import a_store, held
from engine.engines import GROUP, engine_with, talked
from inspector.evening import NOW, an_evening, doubt, in_group
from store.builders import PROMPT, a_run
from tertulia import Store
from tertulia.engine.agents.agent import Agent
from tertulia.models import Scripted
from tertulia.models.calls import Call
from tertulia.turns import Layer, Prompt


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("evening") / "s.db"

    async def spend() -> None:
        async with an_evening(path) as store:
            await doubt(store)

    asyncio.run(spend())
    return str(path)


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


def runs_of(here: Here, db: str) -> list[str]:
    return [run["id"] for run in json.loads(here("runs", "--json", "--db", db)[1])]


def test_without_an_argument_it_shows_how_the_bot_is(here: Here, db: str) -> None:
    status, shown, errors = here("inspect", "--db", db)
    lines = shown.splitlines()

    assert (status, errors) == (0, "")
    assert lines[0] == "Gryag is not running. 1 reply waits for your decision."
    assert lines[4] == f"store:   {db}: 7 messages, 4 prompts, 0 facts, 0 episodes"
    assert lines[5].startswith("decide:  Perhaps. to Friends (recorded): nobody knows whether it arrived")
    assert cells(lines[7:9])[1][:3] == ["Friends (recorded)", "to decide", "Gryag: Perhaps."]
    assert [row[-1] for row in cells(lines[11:])] == ["failed", "done", "done"]


def test_a_model_that_does_not_answer_is_named_with_its_last_error(here: Here, db: str, tmp_path: Path) -> None:
    own = shutil.copy(db, tmp_path / "own.db")

    async def fail() -> None:
        at = datetime.now(UTC)
        call = Call(model="m", begun_at=at, ended_at=at, status="failed", error="Overloaded", why="busy")
        async with Store.open(own) as store:
            await store.usage.add(call, place=None)

    asyncio.run(fail())
    shown = here("inspect", "--db", str(own))[1]

    assert re.search(r"^down:    m since [-\d: ]+: Overloaded: busy$", shown, re.MULTILINE)


def test_a_bot_whose_only_model_is_down_is_not_said_to_answer(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    async def fail() -> None:
        at = datetime.now(UTC)
        call = Call(model="m", begun_at=at, ended_at=at, status="failed", error="Overloaded", why="busy")
        async with Store.open(path) as store:
            await store.runs.begin(a_run(taken=()), PROMPT, at=at)
            await store.usage.add(call, place=GROUP)

    asyncio.run(fail())
    with held(path):
        shown = here("inspect", "--db", str(path))[1]

    assert shown.splitlines()[0] == "The bot runs, but m does not answer."


def test_a_place_has_its_requests_as_bars_and_its_decisions(here: Here, db: str) -> None:
    _, answered, _ = runs_of(here, db)
    lines = here("inspect", "friends", "--db", db)[1].splitlines()

    assert lines[0] == "Friends (recorded), 2025-01-15: 4 requests"
    assert lines[1].startswith("$0.00")
    assert lines[1].endswith("0 breaks of the prefix")
    assert f"{answered[:8]}.1 after look" in lines[4]
    assert [("█" in line, "·" in line) for line in lines[2:6]] == [(True, False)] * 3 + [(False, True)]
    assert [row[-1] for row in cells(lines[8:])] == [
        "not addressed to the bot: no mention, name or reply to it, and no rule that answers more",
        *["answered; it spoke to the bot by name"] * 3,
    ]
    empty = here("inspect", "friends", "--day", "2025-01-01", "--db", db)[1].splitlines()
    assert empty[2] == "there are requests on 2025-01-15"


def test_what_broke_the_prefix_is_named_below_its_bar(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    async def ask() -> None:
        async with Store.open(path) as store:
            for number, rules in enumerate(("Be kind.", "Be brief.")):
                prompt = Prompt(layers=(Layer(name="static", instruction=rules), *PROMPT.layers[1:]))
                run = a_run(id=f"r{number}", target=str(number), taken=(), place=GROUP, began_at=NOW)
                await store.runs.begin(run, prompt, at=NOW)

    asyncio.run(ask())
    lines = here("inspect", "recorded:-100", "--db", str(path))[1].splitlines()

    assert lines[-1].strip() == "▲ static: its instruction changed"


def test_a_run_has_its_time_line_its_layers_and_its_reply(here: Here, db: str) -> None:
    _, answered, _ = runs_of(here, db)
    lines = here("inspect", answered[:8], "--db", db)[1].splitlines()

    assert lines[0] == "Alice: Gryag, is 3A free?"
    assert lines[1] == f"run {answered} in Friends (recorded), 2025-01-15 12:00: done in 2.0 s"
    assert [row[0] for row in cells(lines[5:13])] == [
        "Message", "Gather", "Request 1", "Wait", "Request 1, try 2", "look", "Request 2", "Send",
    ]  # fmt: skip
    assert lines[14].startswith("request 1 to gemini-3.8-flash, about ")
    assert [row[0] for row in cells(lines[15:21])] == ["layer", "tools", "static", "dynamic", "buffered", "trigger"]
    assert lines[-1] == "reply, sent: Seat 3A is free. Take it."


def test_machines_get_the_values_of_the_inspector(here: Here, db: str) -> None:
    _, answered, _ = runs_of(here, db)

    assert json.loads(here("inspect", "--json", "--db", db)[1])["runs_done"] == 0
    place = json.loads(here("inspect", "Friends", "--json", "--db", db)[1])
    assert (len(place["strata"]["strips"]), len(place["decisions"]["messages"])) == (4, 4)
    assert json.loads(here("inspect", answered, "--json", "--db", db)[1])["row"]["run"]["id"] == answered


def test_what_is_not_there_is_refused_in_one_line(here: Here, tmp_path: Path) -> None:
    empty = str(a_store(tmp_path / "s.db"))

    refusal = "tertulia: nothing is stored of a place Pub; there are none\n"
    assert here("inspect", "Pub", "--db", empty) == (2, "", refusal)
    assert here("inspect", "--db", empty)[1].splitlines()[0] == "The bot has answered nothing yet."


def test_it_reads_beside_a_bot_that_runs(db: str) -> None:
    with held(Path(db)):
        shown = tertulia_process("inspect", "Friends", "--db", db)

    assert (shown.returncode, shown.stderr) == (0, "")


def test_where_there_are_several_agents_decisions_and_runs_name_theirs(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    agents = (Agent(name="Ada"), Agent(name="Bob"))

    async def speak() -> None:
        async with (
            Store.open(path) as store,
            engine_with(Scripted("Yes.", "No."), store=store, agents=agents) as engine,
        ):
            await talked(engine, in_group("Ada and Bob?", 1))

    asyncio.run(speak())
    (run, _) = runs_of(here, str(path))
    place, home, one = (here("inspect", *what, "--db", str(path))[1] for what in (("Friends",), (), (run,)))

    assert [row[3] for row in cells(place.splitlines()) if "Ada and Bob?" in row[2:3]] == ["Ada", "Bob"]
    assert sorted(row[3] for row in cells(home.splitlines())[-2:]) == ["Ada", "Bob"]
    assert f"run {run} of Ada in Friends (recorded)" in one

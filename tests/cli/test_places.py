"""`tertulia why`, `runs` and `transcript` show what was said and decided, beside a bot that runs."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.command import Here, tertulia_process
from cli.stores import a_store, held
from engine.engines import BOB, GROUP, engine_with, said, talked
from people import GRYAG, NOON
from store.builders import an_outgoing
from tertulia import Store
from tertulia.engine.limits import Limits
from tertulia.messages import Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import Text


@pytest.fixture
def db(tmp_path: Path) -> str:
    """Alice and Bob talk in a group; Alice is over the rate limit at the end."""
    path = tmp_path / "s.db"

    async def talk() -> None:
        at = {"place": GROUP, "sent_at": NOON}
        quote = Quote(message_id="1", author=BOB, parts=(Text(text="so\nit is"),))
        async with (
            Store.open(path) as store,
            engine_with(Scripted("Noon."), store=store, limits=Limits(messages=1), now=lambda: NOON) as engine,
        ):
            await talked(engine, said("so\nit is", 1, author=BOB, **at), said("Gryag, the time?", 2, **at))
            await talked(engine, said("Gryag?", 3, reply_to=quote, **at))
            await talked(engine, said("gone", 4, author=BOB, **at))
            await engine.delete(GROUP, "4")

    asyncio.run(talk())
    return str(path)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()]


def runs_of(here: Here, db: str) -> list[str]:
    return [run["id"] for run in json.loads(here("runs", "--json", "--db", db)[1])]


def test_why_is_a_table_of_the_messages_of_a_place(here: Here, db: str) -> None:
    answer, _ = runs_of(here, db)
    status, shown, errors = here("why", "friends", "--db", db)

    assert (status, errors) == (0, "")
    assert cells(shown) == [
        ["message", "sent", "who", "text", "addressed", "decision", "run"],
        ["1", "2025-01-15 12:00", "Bob", "so it is", "not addressed"],
        ["2", "2025-01-15 12:00", "Alice", "Gryag, the time?", "by name", "answered", f"{answer[:8]}, done"],
        ["3", "2025-01-15 12:00", "Alice", "Gryag?", "by name", "rate limit", "a notice"],
        ["4", "2025-01-15 12:00", "Bob", "(deleted)", "not addressed"],
    ]
    assert cells(here("why", "recorded:-100", "--last", "1", "--db", db)[1])[1][:1] == ["4"]


def test_why_tells_all_about_one_message(here: Here, db: str) -> None:
    answer, _ = runs_of(here, db)

    assert here("why", "recorded:-100", "2", "--db", db)[1].splitlines() == [
        "message 2 by Alice (1), 2025-01-15 12:00: Gryag, the time?",
        "decision:  answered",
        "when:      2025-01-15 12:00",
        "addressed: by name",
        f"run:       {answer}, done",
        f"sent:      tertulia prompt {answer}",
    ]
    assert here("why", "recorded:-100", "3", "--db", db)[1].splitlines()[1:] == [
        "decision:  its author is over the rate limit (limits.messages)",
        "when:      2025-01-15 12:00",
        "addressed: by name",
        "run:       a notice",
    ]


def test_machines_get_messages_with_decisions_and_their_runs(here: Here, db: str) -> None:
    (found,) = json.loads(here("why", "Friends", "2", "--json", "--db", db)[1])
    (made,) = found["decisions"]

    assert found["message"]["parts"] == [{"kind": "text", "text": "Gryag, the time?"}]
    assert (made["reason"], made["address"], made["edited"], made["agent"]) == ("answered", "name", False, "")
    assert (made["run"]["id"], made["run"]["status"], made["run"]["taken"]) == (made["run_id"], "done", ["2"])
    assert made["why"] == "answered"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("Pub",), "nothing is stored of a place Pub; there are: Friends (recorded:-100)"),
        (("Friends", "77"), "message 77 of Friends (recorded) is not stored: it may be a command"),
        (("Friends", "sent-1"), "message sent-1 of Friends (recorded) is the bot's own"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(here: Here, db: str, given: tuple[str, ...], why: str) -> None:
    own = json.loads(here("transcript", "Friends", "--json", "--db", db)[1])[2]["id"]
    given = tuple(own if one == "sent-1" else one for one in given)

    assert here("why", *given, "--db", db) == (2, "", f"tertulia: {why.replace('sent-1', own)}\n")


def test_a_place_without_a_title_is_offered_by_its_id(here: Here, tmp_path: Path) -> None:
    db = str(a_store(tmp_path / "s.db", messages=[said("a", 1, place=replace(GROUP, title=""))]))

    assert here("why", "Bob", "--db", db)[2] == (
        "tertulia: nothing is stored of a place Bob; there are: recorded:-100\n"
    )


def test_a_place_may_be_named_as_the_log_names_it(here: Here, db: str) -> None:
    assert here("why", "recorded/-100", "--db", db) == here("why", "Friends", "--db", db)


def test_two_places_of_one_title_are_told_apart_by_their_ids(here: Here, tmp_path: Path) -> None:
    other = replace(GROUP, id="-200", thread="7")
    db = str(a_store(tmp_path / "s.db", messages=[said("a", 1, place=GROUP), said("b", 2, place=other)]))

    assert here("why", "Friends", "--db", db)[2] == (
        "tertulia: 2 places are called Friends: Friends (recorded:-100), Friends (recorded:-200/7)\n"
    )
    assert cells(here("why", "recorded:-200/7", "--db", db)[1])[1] == ["2", "Alice", "b", "waiting"]


def test_runs_are_a_table_of_all_or_of_those_that_failed(here: Here, db: str) -> None:
    answer, notice = runs_of(here, db)
    began = ["2025-01-15 12:00", "Friends (recorded)"]
    first = [answer[:8], *began, "2", "1", "scripted", "0.0 s", "done"]
    second = [notice[:8], *began, "3", "1", "0.0 s", "failed", "the rate limit of the author is reached"]

    assert cells(here("runs", "--db", db)[1])[1:] == [first, second]
    assert cells(here("runs", "--failed", "--place", "Friends", "--db", db)[1])[1:] == [second]
    assert cells(here("runs", "--last", "1", "--db", db)[1])[1:] == [second]


def test_a_transcript_has_what_people_and_the_bot_said(here: Here, db: str) -> None:
    assert here("transcript", "Friends", "--db", db)[1].splitlines() == [
        "2025-01-15 12:00  Bob: so",
        "    it is",
        "2025-01-15 12:00  Alice: Gryag, the time?",
        "2025-01-15 12:00  Gryag (to Alice: Gryag, the time?): Noon.",
        "2025-01-15 12:00  Alice (to Bob: so it is): Gryag?",
        "2025-01-15 12:00  Bob: (deleted)",
    ]
    assert [one["id"] for one in json.loads(here("transcript", "Friends", "--json", "--last", "2", "--db", db)[1])][
        1
    ] == "4"


def test_a_transcript_says_which_answers_were_perhaps_not_received(here: Here, tmp_path: Path) -> None:
    doubtful = an_outgoing("Noon.\nPerhaps.", id="d1", status="doubtful", author=GRYAG, sent_at=NOON)
    db = str(a_store(tmp_path / "s.db", replies=[doubtful]))

    assert here("transcript", "Friends", "--db", db)[1].splitlines() == [
        "2025-01-15 12:00  gryag: Noon.",
        "    Perhaps. (perhaps not received)",
    ]


def test_there_may_be_nothing(here: Here, tmp_path: Path) -> None:
    empty = str(a_store(tmp_path / "s.db"))

    assert here("runs", "--db", empty) == (0, "nothing was answered yet\n", "")
    assert here("runs", "--failed", "--db", empty) == (0, "no run has failed\n", "")
    assert here("runs", "--json", "--db", empty) == (0, "[]\n", "")
    refusal = "tertulia: nothing is stored of a place Pub; there are none\n"
    assert here("transcript", "Pub", "--db", empty) == (2, "", refusal)


def test_they_read_beside_a_bot_that_runs(db: str) -> None:
    with held(Path(db)):
        shown = [tertulia_process(name, *place, "--db", db) for name, *place in (("why", "Friends"), ("runs",))]

    assert [(one.returncode, one.stderr) for one in shown] == [(0, ""), (0, "")]

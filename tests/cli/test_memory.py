"""`tertulia memory` shows what is known of people and why, and forgets it."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cli.command import Here, tertulia
from cli.stores import a_store, held
from memory.known import a_fact, taught
from people import BOB, DIRECT, GROUP, NOON, a_message, a_photo
from stored_rows import change, on_file
from tertulia import Author, Message, Place, Store
from tertulia.memory.values import Fact
from tertulia.store.sqlite import connection

LATER = NOON + timedelta(days=1)
TEA = a_fact("likes tea", id="aa1", sources=("m1", "m2"), confidence=0.8)
KYIV = a_fact("lives in Kyiv", id="b1", key="home", sources=("m3",))
LVIV = a_fact("живе у Львові", id="b2", key="home", sources=("m4",), learned_at=LATER)
SHY = a_fact("is shy", id="c1", place=DIRECT)
GIN = a_fact("likes gin", id="d1", about=BOB, scope="everywhere", sources=("m9",))
TWIN = a_fact("likes rum", id="e1", place=replace(GROUP, platform="discord"))
PAST = replace(KYIV, held_until=LATER, superseded_by="b2")
ALL = (TEA, KYIV, LVIV, SHY, GIN, TWIN)
MESSAGES = (
    a_message("I like\ttea", id="m1"),
    a_message("", id="m2", author=BOB, parts=(a_photo(),), sent_at=None),
    a_message("Kyiv!", id="m3"),
    a_message("Львів", id="m4"),
    a_message("sh", id="m1", place=DIRECT),
)


class Known(msgspec.Struct):
    fact: Fact
    messages: tuple[Message, ...]


def remembering(path: Path, *facts: Fact) -> str:
    async def learn() -> None:
        async with Store.open(path) as store:
            for fact in facts:
                await taught(store, [fact])

    a_store(path, messages=MESSAGES)
    asyncio.run(learn())
    return str(path)


@pytest.fixture
def db(tmp_path: Path) -> str:
    return remembering(tmp_path / "s.db", *ALL)


def shown(here: Here, *arguments: str) -> str:
    status, out, err = here("memory", *arguments)
    assert (status, err) == (0, "")
    return out


def known(here: Here, db: str, *arguments: str) -> list[Fact]:
    return msgspec.json.decode(shown(here, "list", "--json", "--db", db, *arguments), type=list[Fact])


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()]


@pytest.fixture
def in_kyiv(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Europe/Kyiv")
    time.tzset()


@pytest.mark.usefixtures("in_kyiv")
def test_what_is_known_is_a_table(here: Here, db: str) -> None:
    assert cells(shown(here, "list", "--db", db, "--about", "u123", "--platform", "telegram")) == [
        ["id", "about", "fact", "said in", "for", "sure", "learned"],
        ["aa1", "Alice (u123)", "likes tea", "Friends (telegram)", "that chat", "80%", "2025-01-15 14:00"],
        ["b2", "Alice (u123)", "живе у Львові", "Friends (telegram)", "that chat", "100%", "2025-01-16 14:00"],
        ["c1", "Alice (u123)", "is shy", "7 (telegram)", "their direct chats", "100%", "2025-01-15 14:00"],
    ]
    assert cells(shown(here, "list", "--db", db, "--all"))[2] == [
        "b1", "Alice (u123)", "lives in Kyiv", "Friends (telegram)", "that chat", "100%", "2025-01-15 14:00",
        "2025-01-16 14:00",
    ]  # fmt: skip


def test_machines_get_the_facts_themselves(here: Here, db: str) -> None:
    assert known(here, db) == [TEA, LVIV, SHY, GIN, TWIN]
    assert known(here, db, "--all") == [TEA, PAST, LVIV, SHY, GIN, TWIN]
    assert known(here, db, "--about", "u456") == [GIN]


@pytest.mark.parametrize(("asked", "said"), [((), "nothing is remembered\n"), (("--json",), "[]\n")])
def test_there_may_be_none(here: Here, tmp_path: Path, asked: tuple[str, ...], said: str) -> None:
    assert shown(here, "list", *asked, "--db", remembering(tmp_path / "s.db")) == said


@pytest.mark.usefixtures("in_kyiv")
def test_why_shows_the_messages_with_who_when_and_where(here: Here, db: str) -> None:
    said = shown(here, "why", "a", "--db", db)

    assert said.splitlines()[0] == "aa1 about Alice (u123): likes tea"
    assert cells(said)[1:] == [
        ["who", "when", "where", "said"],
        ["Alice (u123)", "2025-01-15 14:00", "Friends (telegram)", "I like tea"],
        ["Bob (u456)", "Friends (telegram)", "(1 part without words)"],
    ]


def test_machines_are_told_why(here: Here, db: str) -> None:
    said = shown(here, "why", "aa1", "--json", "--db", db)

    assert msgspec.json.decode(said, type=Known) == Known(fact=TEA, messages=MESSAGES[:2])


def test_a_reason_may_be_gone(here: Here, db: str) -> None:
    on_file(db, change, "fact_sources", {"message_id": "m9"}, message_id="elsewhere")
    said = "d1 about Bob (u456): likes gin\nthe messages it was learned from are hidden, or gone\n"

    assert shown(here, "why", "d1", "--db", db) == said


def test_facts_are_forgotten_beside_a_running_bot_with_what_they_superseded(here: Here, db: str) -> None:
    with held(Path(db)):
        said = shown(here, "forget", "aa", "b2", "--db", db)
        left = known(here, db, "--all")

    assert said == (
        "forgotten: aa1 about Alice (u123): likes tea\n"
        "forgotten: b1 about Alice (u123): lives in Kyiv\n"
        "forgotten: b2 about Alice (u123): живе у Львові\n"
    )
    assert left == [SHY, GIN, TWIN]
    assert b"likes tea" not in Path(db).read_bytes()


def test_all_about_a_person_is_forgotten(here: Here, db: str) -> None:
    said = json.loads(shown(here, "forget", "--about", "u123", "--platform", "telegram", "--json", "--db", db))

    assert [fact["id"] for fact in said["forgotten"]] == ["aa1", "b1", "b2", "c1"]
    assert known(here, db, "--all") == [GIN, TWIN]


def test_a_file_that_may_not_be_written_is_named(here: Here, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "connect_beside", connection.connect_read_only_beside)

    status, said, why = here("memory", "forget", "aa1", "--db", db)

    assert (status, said) == (2, "")
    assert why.startswith(f"tertulia: the store {db}: it may not be opened or written (")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("forget",), "say which facts to forget by their ids, or whose with --about"),
        (("forget", "aa1", "--about", "u123"), "say which facts to forget by their ids, or whose with --about"),
        (("forget", "b"), "2 ids begin with b: b1, b2"),
        (("forget", "aa1", "zz"), "there is no fact zz"),
        (("forget", ""), "there is no fact "),
        (("why", "\x1b[2J"), "there is no fact \\u001b[2J"),
        (("list", "--about", "u123"), "u123 is somebody on each of discord, telegram; say which with --platform"),
        (("list", "--about", "u0"), "nothing is remembered of anybody with the id u0"),
        (("list", "--about", "u456", "--platform", "x"), "nothing is remembered of anybody with the id u456 on x"),
        (("export", "--platform", "telegram"), "--platform goes with --about"),
    ],
)
def test_what_cannot_be_is_one_line_and_changes_nothing(
    here: Here, db: str, arguments: tuple[str, ...], why: str
) -> None:
    assert here("memory", *arguments, "--db", db) == (2, "", f"tertulia: {why}\n")
    assert len(known(here, db, "--all")) == 6


def test_everything_is_exported_a_fact_a_line_with_its_reasons(db: str) -> None:
    lines, some = (
        [
            msgspec.json.decode(line, type=Known)
            for line in tertulia("memory", "export", *more, "--db", db).stdout.splitlines()
        ]
        for more in ((), ("--about", "u456"))
    )

    assert [line.fact for line in lines] == [TEA, PAST, LVIV, SHY, GIN, TWIN]
    assert lines[0].messages == MESSAGES[:2]
    assert [line.fact for line in some] == [GIN]


def test_what_people_wrote_does_not_steer_the_terminal(here: Here, tmp_path: Path) -> None:
    place = Place(platform="x\x9b2J", id="1", kind="group", title="\x1b]0;owned\x07\r\nFriends\u202e")
    her = Author(id="h\x1b[1m", name="\x1b[31mEve\u202e")
    a_store(tmp_path / "s.db", messages=[a_message("\x1b[31mred\x9b", id="m1", place=place, author=her)])
    db = remembering(tmp_path / "s.db", a_fact("\x1b[31mred\n\x9b", about=her, place=place, id="h\x1b[1m"))

    for arguments in (("list",), ("list", "--json"), ("why", "h"), ("why", "h", "--json"), ("forget", "h")):
        said = shown(here, *arguments, "--db", db)
        assert not {character for character in said if not character.isprintable() and character != "\n"}, said


def test_a_fact_that_cannot_be_read_is_one_line(db: str) -> None:
    on_file(db, change, "titles", {"id": 1}, body="{")

    done = tertulia("memory", "list", "--db", db)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("command", ["list", "why", "forget", "export"])
def test_help_has_an_example(here: Here, command: str) -> None:
    assert f"Example: tertulia memory {command}" in here("memory", command, "--help")[1]


def test_no_store_is_said_in_one_line(here: Here, tmp_path: Path) -> None:
    status, out, err = here("memory", "list", "--db", str(tmp_path / "none.db"))

    assert (status, out) == (2, "")
    assert err.endswith("it does not exist; `tertulia run` makes one, --db names another\n")

"""`tertulia tasks` shows what was promised for later, and calls it off."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cli.command import Here, tertulia, tertulia_process
from cli.stores import a_store, held, tasks_in
from engine.engines import engine_with
from engine.test_commands import told
from people import DIRECT, NOON
from store.builders import a_task
from stored_rows import change, on_file
from tertulia import Place
from tertulia.cli.tasks import WHY
from tertulia.models import Scripted
from tertulia.store import Store
from tertulia.tasks.task import LAST, Task, public_id
from tertulia.testing import RecordedPlatform

FIRST = a_task(id="aa1", run="r1", args={"text": "Привіт, 世界"})
SECOND = a_task(id="aa2", run="r1", after=("aa1",), due_at=NOON + timedelta(hours=1), args={"text": "and\n\tnow"})
REMINDER = a_task(id="b7", kind="remind", place=DIRECT, due_at=LAST, args={"text": "milk"})
DONE = a_task(id="c1", run="r0", kind="remember", status="done", attempts=1, args={"facts": ["likes tea", "is 40"]})
FAILED = a_task(id="c5", run="r0", status="failed", attempts=5, why="no such place", args={"text": "gone"})
ALL = (FIRST, SECOND, REMINDER, DONE, FAILED)
AA1, AA2, B7, C1, C5 = (public_id(task)[:8] for task in ALL)


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(a_store(tmp_path / "s.db", tasks=ALL))


def shown(*arguments: str, **environment: str) -> str:
    done = tertulia("tasks", *arguments, **{"TZ": "Europe/Kyiv", **environment})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def without_the_clock(table: str) -> list[list[str]]:
    """The cells, but for how long ago a task was due."""
    rows = [line.split("  ") for line in table.splitlines()]
    return [[cell.strip() for cell in row if cell.strip() and not cell.endswith(" ago")] for row in rows]


def test_what_is_not_finished_is_a_table(db: str) -> None:
    assert without_the_clock(shown("--db", db)) == [
        ["id", "kind", "place", "due", "status", "attempts", "what"],
        [AA1, "send", "Friends (telegram)", "2025-01-15 14:00", "pending", "0", "Привіт, 世界"],
        [AA2, "send", "Friends (telegram)", "2025-01-15 15:00", "pending", "0", "and now"],
        [B7, "remind", "7 (telegram)", "9999-12-31 23:59Z", in_days(shown("--db", db)), "pending", "0", "milk"],
    ]


def in_days(table: str) -> str:
    last = table.splitlines()[-1]
    return last[last.index("in ") : last.index(" d") + 2]


def test_where_there_are_several_agents_each_task_names_its_own(tmp_path: Path) -> None:
    db = str(a_store(tmp_path / "s.db", tasks=[a_task(id="t1", agent="Ada"), a_task(id="t2", agent="Bob")]))

    rows = without_the_clock(shown("--db", db))

    assert [row[3] for row in rows] == ["agent", "Ada", "Bob"]


def test_all_of_them_are_shown_when_asked_for(db: str) -> None:
    rows = without_the_clock(shown("--all", "--db", db))

    assert [row[0] for row in rows] == ["id", AA1, C1, C5, AA2, B7]
    assert rows[2][4:] == ["done", "1", "likes tea; is 40"]
    assert rows[3][4:] == ["failed", "5", "gone", "no such place"]


def test_machines_get_the_tasks_themselves(db: str) -> None:
    some, every = (
        msgspec.json.decode(shown("--json", "--db", db, *more), type=list[Task]) for more in ((), ("--all",))
    )

    assert some == [FIRST, SECOND, REMINDER]
    assert every == [FIRST, DONE, FAILED, SECOND, REMINDER]


@pytest.mark.parametrize(
    ("asked", "said"), [((), "no tasks are waiting\n"), (("--all",), "there are no tasks\n"), (("--json",), "[]\n")]
)
def test_there_may_be_none(here: Here, tmp_path: Path, asked: tuple[str, ...], said: str) -> None:
    empty = str(a_store(tmp_path / "s.db"))

    assert here("tasks", *asked, "--db", empty) == (0, said, "")


def test_a_task_is_called_off_by_the_beginning_of_its_id_beside_a_running_bot(db: str) -> None:
    with held(Path(db)):
        said = shown("--cancel", B7[:4], "--db", db)
        listed = shown("--db", db)

    assert said == f"cancelled {B7}: remind in 7 (telegram), milk\n"
    assert B7 not in listed
    assert tasks_in(Path(db))["b7"] == replace(REMINDER, status="cancelled", why=WHY)


def test_the_bot_and_the_command_line_call_a_task_by_the_same_id(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    async def talk(*lines: str) -> list[str]:
        platform = RecordedPlatform()
        async with Store.open(path) as store, engine_with(Scripted(), platform, store=store) as engine:
            for line in lines:
                await told(engine, platform, line, key=line)
        return platform.texts

    told_there = asyncio.run(talk("/remind tomorrow at 9:00 tea", "/remind tomorrow at 9:00 milk", "/tasks"))[-1]
    names = [line.split()[0] for line in told_there.splitlines()]

    assert [row[0] for row in without_the_clock(shown("--db", str(path)))[1:]] == names
    assert shown("--cancel", names[0], "--db", str(path)).startswith(f"cancelled {names[0]}: send in ")
    whole = json.loads(shown("--json", "--db", str(path)))[0]["id"]
    assert asyncio.run(talk(f"/tasks cancel {whole}"))[-1].startswith("Cancelled: ")


def test_what_comes_after_a_cancelled_task_is_told_too(db: str) -> None:
    said = shown("--cancel", "aa1", "--db", db)

    assert said == (
        f"cancelled {AA1}: send in Friends (telegram), Привіт, 世界\n"
        f"goes on without it: {AA2}: send in Friends (telegram), and now\n"
    )
    assert tasks_in(Path(db))["aa2"].status == "pending"


def test_machines_are_told_what_was_cancelled(db: str) -> None:
    said = json.loads(shown("--cancel", "b7", "--json", "--db", db))

    assert said == {"cancelled": [msgspec.to_builtins(replace(REMINDER, status="cancelled", why=WHY))]}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("c1", "task c1 is done; only what waits can be cancelled"),
        ("c5", "task c5 is failed; only what waits can be cancelled"),
        ("d0", "2 tasks have ids that begin with d0"),
        ("zz", "there is no task zz"),
        ("", "there is no task "),
        ("\x1b[2J", "there is no task \\u001b[2J"),
    ],
)
def test_what_cannot_be_called_off_is_one_line(here: Here, db: str, given: str, why: str) -> None:
    assert here("tasks", "--cancel", given, "--db", db) == (2, "", f"tertulia: {why}\n")
    assert tasks_in(Path(db)) == {task.id: task for task in ALL}


def test_what_people_wrote_does_not_steer_the_terminal(tmp_path: Path) -> None:
    place = Place(platform="x\x9b2J", id="1", kind="group", title="\x1b]0;owned\x07\r\nFriends\u202e")
    hostile = a_task(id="h\x1b[1m", kind="k\x08", place=place, args={"text": "\x1b[31mred\x00 \ud83d half"}, why="\x9b")
    db = str(a_store(tmp_path / "s.db", tasks=[hostile]))

    for arguments in (("--all",), ("--json",), ("--cancel", hostile.id)):
        said = shown("--db", db, *arguments)
        assert not {character for character in said if not character.isprintable() and character != "\n"}, said
        assert len(said.splitlines()) <= 2


def test_a_terminal_without_our_alphabet_gets_codes(db: str) -> None:
    done = tertulia_process("tasks", "--db", db, PYTHONIOENCODING="ascii")

    assert "\\u041f\\u0440\\u0438\\u0432\\u0456\\u0442" in done.stdout


def test_a_task_that_cannot_be_read_is_one_line(db: str) -> None:
    on_file(db, change, "tasks", {"task_id": "c1"}, body="{")

    done = tertulia("tasks", "--db", db)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"tertulia: the store {db}: it holds something that cannot be read: ")
    assert done.stderr.count("\n") == 1


def test_help_has_an_example(here: Here) -> None:
    assert "Example: tertulia tasks --cancel" in here("tasks", "--help")[1]

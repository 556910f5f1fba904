"""`tertulia db` looks after the store: checks it, copies it, writes it out, forgets people."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.command import TERTULIA, Here, tertulia
from cli.stores import a_store, held, with_file
from people import ALICE, GROUP, NOON, a_message, a_photo, a_talk
from platforms.terminal.pseudo import terminal
from store.builders import a_run, a_task, an_outgoing, files_hold, names_in
from stored_rows import add, change, on_file
from tertulia import Place, Store
from tertulia.cli.db import watch_copy
from tertulia.cli.options import default_db
from tertulia.messages import Reply
from tertulia.platforms.terminal.saved_files import SavedFiles, folder_of
from tertulia.turns import Prompt

ELSEWHERE = Place(platform="discord", id="5", kind="group")
COMMANDS = (
    ("db", "check"),
    ("db", "backup", "copy.db"),
    ("db", "export"),
    ("db", "forget", "u123", "--yes"),
    ("db", "prune"),
    ("tasks",),
    ("outbox",),
)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Three people in one group, a task and a reply."""
    return a_store(tmp_path / "s.db", messages=a_talk(6), tasks=[a_task()], replies=[an_outgoing()])


def done(*arguments: str, status: int = 0) -> str:
    """What a command says where it does what it should."""
    ran = tertulia(*arguments)
    assert (ran.returncode, ran.stderr) == (status, "")
    return ran.stdout


def refusal(*arguments: str) -> str:
    """The one line of a command that does nothing."""
    ran = tertulia(*arguments)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran
    return ran.stderr.removeprefix("tertulia: ").rstrip("\n")


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_is_well_with_a_store_that_a_bot_uses(db: Path) -> None:
    with held(db):
        said, machine = done("db", "check", "--db", str(db)), done("db", "check", "--json", "--db", str(db))

    assert said == "all is well: 1 place, 6 messages, 0 runs, 1 reply, 1 task, 0 files\n"
    counts = {"places": 1, "messages": 6, "runs": 0, "replies": 1, "tasks": 1, "files": 0}
    assert json.loads(machine) == {"faults": [], **counts}


def test_what_is_wrong_is_listed(db: Path) -> None:
    on_file(db, change, "messages", {"number": 2}, parts="{")
    on_file(db, change, "places", messages=7)

    lines = done("db", "check", "--db", str(db), status=1).splitlines()
    machine = json.loads(done("db", "check", "--json", "--db", str(db), status=1))

    assert lines[0] == "place 1 should have 7 messages numbered from 0, and has 6 up to number 5"
    assert lines[1].startswith("message 3: ")
    assert machine["faults"] == lines


def test_what_an_export_stumbles_over_is_a_fault(db: Path) -> None:
    run = {"run_id": "r1", "place": 1, "title": 1, "target": "m1", "message_ids": "{", "began_at": NOON.isoformat()}
    on_file(db, add, "runs", horizon=1, model="", profile="", status="done", why="", **run)

    assert "cannot be read" in done("db", "check", "--db", str(db), status=1)


def test_a_damaged_file_is_found_out(db: Path) -> None:
    content = bytearray(db.read_bytes())
    page = content.find(b"message number 3") // 4096 * 4096
    content[page : page + 64] = b"\xa5" * 64
    db.write_bytes(content)

    assert "malformed" in done("db", "check", "--db", str(db), status=1)


def test_a_backup_is_the_store_as_it_is_beside_a_running_bot(db: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with held(db):
        said = done("db", "backup", str(copy), "--db", str(db))

    assert said == f"{copy} is a copy of {db}\n"
    assert done("db", "export", "--db", str(copy)) == done("db", "export", "--db", str(db))
    assert copy.stat().st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == ["copy.db", "s.db"]


@pytest.mark.parametrize("command", [("db", "backup"), ("db", "export", "--out")])
def test_no_file_is_replaced(here: Here, db: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "link").symlink_to("nowhere")

    for name in ("mine", "link", "", "s.db"):
        file = tmp_path / name
        why = f"tertulia: {file} exists already; it is not replaced\n"
        assert here(*command, str(file), "--db", str(db)) == (2, "", why)
    assert (tmp_path / "mine").read_text() == "precious"
    assert names_in(tmp_path) == ["link", "mine", "s.db"]


@pytest.mark.parametrize("command", [("db", "backup"), ("db", "export", "--out")])
def test_a_folder_that_is_not_there_is_not_made(here: Here, db: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    for folder, why in (("no", "No such file or directory"), ("s.db", "Not a directory")):
        file = tmp_path / folder / "copy"
        said = f"tertulia: {file} could not be written: {why}\n"
        assert here(*command, str(file), "--db", str(db)) == (2, "", said)
    assert names_in(tmp_path) == ["s.db"]


def test_an_export_is_a_row_a_line(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    with held(db):
        printed = done("db", "export", "--db", str(db))
        said = done("db", "export", "--out", str(file), "--db", str(db))

    written = Counter(row["table"] for row in rows(printed))
    assert said == ""
    assert file.read_text(encoding="utf-8") == printed
    assert (written["messages"], written["tasks"], written["outbox"]) == (6, 1, 1)
    assert file.stat().st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == ["all.jsonl", "s.db"]


def test_an_export_that_fails_leaves_no_file(db: Path, tmp_path: Path) -> None:
    on_file(db, change, "tasks", body="{")

    said = refusal("db", "export", "--out", str(tmp_path / "all.jsonl"), "--db", str(db))

    assert said.startswith(f"the store {db}: it holds something that cannot be read (")
    assert names_in(tmp_path) == ["s.db"]


def test_an_export_is_left_quietly_when_nobody_reads_on(tmp_path: Path) -> None:
    db = a_store(tmp_path / "s.db", messages=[a_message("long " * 2000, id=str(number)) for number in range(40)])
    line = '"$@" db export --db "$0" | head -c 100 | wc -c; echo ${PIPESTATUS[0]}'

    ran = subprocess.run(
        ["bash", "-c", line, str(db), *TERTULIA], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ran.stdout.split(), ran.stderr) == (["100", "1"], "")


def test_without_an_output_nothing_begins(db: Path, tmp_path: Path) -> None:
    line = '"$@" >&-'
    arguments = [*TERTULIA, "db", "backup", "copy.db", "--db", str(db)]

    ran = subprocess.run(
        ["bash", "-c", line, "bash", *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )

    assert (ran.returncode, ran.stderr) == (
        2, "tertulia: standard output is closed; to throw the output away write >/dev/null\n"
    )  # fmt: skip
    assert names_in(tmp_path) == ["s.db"]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_store_is_one_line_and_left_alone(here: Here, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "text").write_text("hello, I am a text\n" * 500)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    before = (tmp_path / "text").read_bytes()

    said = {
        name: one_line_about(here, tmp_path / name, command)
        for name in ("text", "folder", "loop", "nothing", "empty", "pipe")
    }

    assert said["folder"] == "it is a folder"
    assert said["loop"] == "Too many levels of symbolic links"
    assert said["nothing"] == "it does not exist; `tertulia run` makes one, --db names another"
    assert said["empty"] == "it is empty; --db names another"
    assert said["pipe"] == "it is not a file"
    assert said["text"].startswith("the file is damaged, or no store at all")
    assert (tmp_path / "text").read_bytes() == before
    assert names_in(tmp_path) == ["empty", "folder", "loop", "pipe", "text"]


def one_line_about(here: Here, path: Path, command: tuple[str, ...]) -> str:
    """What a command says, here or there, of a store that it cannot open."""
    status, out, errors = here(*command, "--db", str(path))
    assert (status, (out + errors).count("\n")) in ((1, 1), (2, 1))
    return (out + errors).removeprefix("tertulia: ").removeprefix(f"the store {path}: ").rstrip("\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_of_a_newer_program_is_one_line_and_left_alone(here: Here, db: Path, command: tuple[str, ...]) -> None:
    on_file(db, add, "migrations", number=99, name="m099_later", at="2030-01-01", edition=1)
    before = db.read_bytes()

    assert one_line_about(here, db, command).startswith("a newer program has written it: its tables have version 99")
    assert db.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_may_not_be_read_is_one_line(here: Here, db: Path, command: tuple[str, ...]) -> None:
    db.chmod(0)

    assert one_line_about(here, db, command)


def test_what_is_kept_in_memory_is_nobody_elses() -> None:
    said = ":memory: has no file to open; name one with --db"
    assert refusal("tasks", "--db", ":memory:") == said


def test_the_store_lies_in_the_users_data_folder_unless_said_otherwise(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TERTULIA_DB", "")
    default = default_db()
    assert (
        tertulia("tasks").stderr
        == f"tertulia: the store {default}: it does not exist; `tertulia run` makes one, --db names another\n"
    )
    assert Path(default).parts[-2:] == ("tertulia", "tertulia.db")

    monkeypatch.setenv("TERTULIA_DB", str(db))
    assert default_db() == str(db)
    assert done("db", "check").startswith("all is well")


def test_the_help_says_which_store_is_used() -> None:
    for command in (("db", "check"), ("tasks",), ("chat",)):
        assert "that of the tertulia.toml here" in " ".join(tertulia(*command, "--help").stdout.split())


def test_a_person_is_forgotten_and_what_was_removed_is_told(db: Path, tmp_path: Path) -> None:
    said = done("db", "forget", ALICE.id, "--platform", "telegram", "--yes", "--db", str(db))

    assert said == "removed: 2 messages, 1 name\n"
    assert (
        done("db", "check", "--db", str(db)) == "all is well: 1 place, 4 messages, 0 runs, 1 reply, 1 task, 0 files\n"
    )
    assert not files_hold(tmp_path, "Alice")
    assert not files_hold(tmp_path, "message number 3")
    assert refusal("db", "forget", ALICE.id, "--yes", "--db", str(db)) == "nobody has the id u123"


def test_what_would_be_removed_is_told_and_stays(db: Path) -> None:
    dry = ("db", "forget", ALICE.id, "--dry-run", "--db", str(db))
    with held(db):
        assert done(*dry) == "would be removed: 2 messages, 1 name\n"
        plan = json.loads(done(*dry, "--json"))

    assert (plan["messages"], plan["rows"]["messages"], plan["rows"]["names"]) == (2, [[1], [4]], [[1]])
    assert done("db", "forget", ALICE.id, "--yes", "--db", str(db)) == "removed: 2 messages, 1 name\n"


def test_files_of_media_are_copied_checked_and_forgotten(here: Here, tmp_path: Path) -> None:
    db, copy = a_store(tmp_path / "s.db", messages=[a_message("", parts=(a_photo(data=None),))]), tmp_path / "copy.db"
    with_file(db, a_photo().unique_id, b"her own door")

    said = here("db", "backup", str(copy), "--db", str(db))[1]
    assert said == f"{copy} is a copy of {db}, with 1 file of media beside it\n"
    assert here("db", "check", "--db", str(copy))[1].endswith("0 tasks, 1 file\n")
    forgotten = here("db", "forget", ALICE.id, "--yes", "--db", str(db))[1]
    assert forgotten == (
        "removed: 1 message, 1 name, 1 file of media\n"
        "1 file at services: the bot deletes them there when it runs next\n"
    )
    assert not files_hold(tmp_path / "s.db-media", "her own door")
    next((tmp_path / "copy.db-media").glob("??/*")).unlink()
    assert "is missing or damaged" in here("db", "check", "--db", str(copy))[1]


def test_machines_are_told_every_count(db: Path) -> None:
    counts = json.loads(done("db", "forget", ALICE.id, "--yes", "--json", "--db", str(db)))

    assert {name: count for name, count in counts.items() if count} == {"messages": 2, "names": 1}
    assert counts["places"] == 0


def test_the_platform_must_be_said_where_more_than_one_knows_the_id(tmp_path: Path) -> None:
    messages = [a_message(id="1"), a_message(id="2", place=ELSEWHERE, author=replace(ALICE, name="Other"))]
    db = str(a_store(tmp_path / "s.db", messages=messages))
    forget = ("db", "forget", ALICE.id, "--yes", "--db", db)

    assert refusal(*forget) == "u123 is somebody on each of discord, telegram; say which with --platform"
    assert refusal(*forget, "--platform", "irc") == "nobody on irc has the id u123"
    assert done(*forget, "--platform", "discord") == "removed: 1 message, 1 name\n"
    assert done(*forget) == "removed: 1 message, 1 name\n"
    assert refusal("db", "forget", "", "--yes", "--db", db) == "nobody has the id "


def test_a_bot_must_be_stopped_before_somebody_is_forgotten(db: Path) -> None:
    with held(db) as bot:
        said = refusal("db", "forget", ALICE.id, "--yes", "--db", str(db))

    assert said == f"the store {db}: another process has it open (process {bot}); stop it first"


def test_nobody_is_forgotten_where_nobody_can_confirm_it(db: Path) -> None:
    said = refusal("db", "forget", ALICE.id, "--db", str(db))

    assert said == "standard input is not a terminal, so nobody can confirm; --yes forgets without asking"
    assert files_hold(db.parent, "Alice")


@pytest.mark.parametrize(
    ("typed", "status", "forgotten", "said"),
    [
        ("y\r", 0, True, "removed: 2 messages, 1 name"),
        ("n\r", 1, False, "tertulia: nothing was removed"),
        ("\r", 1, False, "tertulia: nothing was removed"),
    ],
)
def test_at_a_terminal_it_is_asked(tmp_path: Path, typed: str, status: int, forgotten: bool, said: str) -> None:
    db = a_store(tmp_path / "s.db", messages=a_talk(6))

    async def answer() -> int:
        command = ("db", "forget", ALICE.id, "--db", str(db))
        async with terminal("tertulia", *command, environment={**os.environ, "TERM": "xterm"}) as screen:
            await screen.see("Forget Alice (u123 on telegram) for good? [y/N]: ")
            screen.type(typed)
            await screen.see(said)
            return await screen.left()

    left = asyncio.run(answer())

    assert left == status
    assert files_hold(tmp_path, "Alice") is not forgotten


def test_files_that_were_saved_for_the_person_at_the_terminal_go_with_them(tmp_path: Path) -> None:
    db = a_store(tmp_path / "s.db", messages=[a_message(place=Place(platform="terminal", id="me", kind="direct"))])
    other = a_store(tmp_path / "o.db", messages=[a_message()])
    for path in (db, other):
        SavedFiles(folder_of(path)).save_media(Reply(place=GROUP, text="", media=(a_photo(),)))
    (folder_of(db) / "notes.txt").write_text("mine")

    done("db", "forget", ALICE.id, "--yes", "--db", str(db))
    done("db", "forget", ALICE.id, "--yes", "--db", str(other))

    assert os.listdir(folder_of(db)) == ["notes.txt"]
    assert len(os.listdir(folder_of(other))) == 1


def test_people_in_direct_chats_go_with_them(tmp_path: Path) -> None:
    direct = Place(platform="telegram", id=ALICE.id, kind="direct")
    db = a_store(tmp_path / "s.db", messages=[a_message(id="1", place=direct), a_message(id="2", place=GROUP)])

    said = done("db", "forget", ALICE.id, "--yes", "--db", str(db))

    assert said == "removed: 1 direct chat with everything there, 2 messages, 1 name\n"


@pytest.mark.parametrize("command", ["check", "backup", "export", "forget"])
def test_every_command_has_help_with_an_example(here: Here, command: str) -> None:
    assert f"Example: tertulia db {command}" in here("db", command, "--help")[1]


async def test_a_long_copy_has_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    screen = Screen(copying)
    monkeypatch.setattr(sys, "stderr", screen)
    (tmp_path / f".copy.{os.getpid()}.part").write_bytes(bytes(2 << 20))

    await watch_copy(copying, tmp_path / "copy", total=4 << 20, interval=0.001)

    assert screen.getvalue() == f"\r[{'█' * 15}{'·' * 15}] 2 of 4 MB\r[{'█' * 30}] 4 of 4 MB\n"


class Screen(StringIO):
    """A terminal; when something has been shown on it, the copy is whole."""

    def __init__(self, copying: "asyncio.Future[None]") -> None:
        super().__init__()
        self._copying = copying

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        if not self._copying.done():
            self._copying.set_result(None)


def a_store_with_prompts(path: Path) -> Path:
    """One run that ended in 2025, with a large prompt."""

    async def make() -> None:
        async with Store.open(path) as store:
            await store.runs.begin(a_run(), Prompt.of("word " * 100_000), at=NOON)
            await store.runs.end(replace(a_run(), status="done", ended_at=NOON))

    asyncio.run(make())
    return path


def test_a_file_that_was_just_pruned_cannot_be_smaller(here: Here, tmp_path: Path) -> None:
    here("db", "prune", "--db", path := a_store(tmp_path / "s.db"))  # it may pack the tables of a new file closer

    assert here("db", "prune", "--db", path) == (0, "removed: 0 prompts; the file is 0 KB smaller\n", "")


def test_old_prompts_are_pruned_and_the_file_is_smaller(here: Here, tmp_path: Path) -> None:
    path = str(a_store_with_prompts(tmp_path / "s.db"))

    kept = done("db", "prune", "--prompts", "36500", "--db", path)
    removed = done("db", "prune", "--db", path)
    again = json.loads(done("db", "prune", "--json", "--db", path))

    assert kept.startswith("removed: 0 prompts; ")
    assert re.fullmatch(r"removed: 1 prompt; the file is [4-9]\d\d KB smaller\n", removed)
    assert again == {"prompts": 0, "bytes": 0}
    (run,) = [row for row in rows(done("db", "export", "--db", path)) if row["table"] == "runs"]
    assert run["prompts_removed_at"]


def test_pruning_goes_by_the_config(here: Here, tmp_path: Path) -> None:
    path = str(a_store_with_prompts(tmp_path / "s.db"))
    (tmp_path / "tertulia.toml").write_text('[behavior]\nkeep_prompts = "36500 days"\n')

    assert done("db", "prune", "--db", path).startswith("removed: 0 prompts; ")


def test_nothing_is_pruned_beside_a_running_bot(db: Path) -> None:
    with held(db):
        assert refusal("db", "prune", "--db", str(db)).endswith("stop it first")


def test_what_is_known_of_a_person_is_one_object_also_beside_a_running_bot(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "alice.json"
    with held(db):
        printed = done("db", "export", "--person", "u123", "--db", str(db))
        said = done("db", "export", "--person", "u123", "--platform", "telegram", "--out", str(file), "--db", str(db))

    known = json.loads(printed)
    assert said == ""
    assert file.read_text(encoding="utf-8") == printed
    unblocked = {"blocked_at": None, "blocked_until": None}
    assert known["person"] == {"platform": "telegram", "id": "u123", "language": "", **unblocked}
    assert [row["parts"][0]["text"] for row in known["messages"]] == ["message number 0", "message number 3"]
    assert "prompts" in known["left_out"]


def test_a_person_who_is_exported_must_be_somebody(db: Path) -> None:
    assert refusal("db", "export", "--person", "u9", "--db", str(db)) == "nobody has the id u9"
    assert refusal("db", "export", "--platform", "telegram", "--db", str(db)) == "--platform goes with --person"

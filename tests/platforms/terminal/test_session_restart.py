"""A chat takes up where it left off, whatever ended it; and what comes by itself does not destroy a line."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from platforms.terminal.pseudo import ENTER, PROMPT, terminal
from platforms.terminal.test_main import FLASH, FORKED, beside, environment, half_an_answer, piped, piped_here, texts
from stored_rows import add, change, on_file
from tertulia import Store
from tertulia.sim import GeminiSim
from tertulia.sim.gemini import Echo, Script

NOBODY = "http://127.0.0.1:9"  # no service is there
REMIND = {"functionCall": {"name": "remind_me", "args": {"when": "in 2 seconds", "text": "Tea!\n\nIt is ready."}}}


async def test_an_answer_that_was_cut_by_a_kill_comes_exactly_once(tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "tertulia.db"))
    async with await asyncio.start_server(half_an_answer, "127.0.0.1", 0) as server:
        address = "http://{}:{}".format(*server.sockets[0].getsockname())
        env = environment(GEMINI_API_KEY="any")
        async with terminal(*FORKED, *FLASH, *db, "--base-url", address, environment=env) as tty:
            await tty.say("What now?", "Half an ans...")
            tty.kill()
            await tty.left()

    async with GeminiSim(behaviour=Echo()) as sim:
        async with terminal(*FORKED, *FLASH, *db, environment=environment(sim)) as tty:
            await tty.see("(1 message so far, just now; /clear begins anew)\n")
            await tty.see("(what was said last had no answer yet; here it is)\n")
            await tty.see("What now?\n")
            await tty.say("And then?", "And then?\n", "And then?\n")
            await tty.say("/quit")
            await tty.left()
        async with terminal(*FORKED, *FLASH, *db, environment=environment(sim)) as tty:
            before = await tty.see(PROMPT)
            tty.type("/quit" + ENTER)
            await tty.left()

    assert texts(sim.requests[-1]) == ["What now?", "What now?", "And then?"]
    assert [len(sim.requests), before.count("What now?"), before.count("4 messages so far")] == [2, 2, 1]


async def test_a_reminder_comes_while_a_line_is_typed_and_the_line_stays(tmp_path: Path) -> None:
    behaviour = Script([[REMIND], "I will.", "Thanks."])
    async with GeminiSim(behaviour=behaviour) as sim, terminal(*FORKED, *FLASH, environment=environment(sim)) as tty:
        await tty.say("Remind me of the tea.", "[remind_me gave ", "I will.\n")
        await tty.say("/tasks", "send: Tea! It is ready.")
        await tty.see(PROMPT)
        tty.type("half a li")
        await tty.see("half a li")
        await tty.see("(reminder) Tea!\n\nIt is ready.\n")
        await tty.see("> half a li")
        tty.type("ne" + ENTER)
        await tty.see("Thanks.\n")

        assert await tty.quit() == 0

    assert texts(sim.requests[-1])[-2:] == ["Tea!\n\nIt is ready.", "half a line"]
    assert tty.screen.count("It is ready.\n") == 2  # as it was planned, and when it came


async def test_a_reminder_of_an_earlier_process_comes_late_rather_than_never(tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "tertulia.db"))
    async with GeminiSim(behaviour=Script([[REMIND], "I will."])) as sim:
        status, out, _ = await piped(*FLASH, *db, given="Remind me of the tea.\n", env=environment(sim))
        assert (status, out) == (0, "I will.\n")

        async with terminal(*FORKED, *FLASH, *db, environment=environment(sim)) as tty:
            await tty.see("Tea!\n\nIt is ready.\n")

            assert await tty.quit() == 0


async def test_a_second_terminal_is_told_what_to_do(tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "tertulia.db"))
    async with GeminiSim() as sim, terminal(*FORKED, *FLASH, *db, environment=environment(sim)) as tty:
        await tty.see(PROMPT)

        status, out, errors = await piped(*FLASH, *db, given="hi\n", env=environment(sim))

        assert (status, out, errors.count("\n")) == (2, "", 1)
        assert "another process has it open" in errors
        assert errors.endswith("; --db ANOTHER names another store, --db :memory: does without\n")


async def test_a_file_that_is_damaged_in_the_middle_ends_the_chat_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "tertulia.db"
    async with (
        GeminiSim(behaviour=Echo()) as sim,
        terminal(*FORKED, *FLASH, "--db", str(file), environment=environment(sim)) as tty,
    ):
        await tty.say("Is it late?", "Is it late?\n", "Is it late?\n")
        await tty.see(PROMPT)
        on_file(file, change, "messages", parts="{", text="{")
        on_file(file, lambda database: database.define("DROP TABLE runs"))
        tty.type("And now?" + ENTER)
        status = await tty.left()

    said = tty.screen.splitlines()[-1]
    assert status == 2
    assert tty.screen.count("the store ") == 1
    assert said.startswith(f"tertulia: the store {file}: ")
    assert said.endswith(
        f" db check --db {file}` lists what is wrong, and a copy made by `db backup` can take its place"
    )


def newer(file: Path) -> None:
    async def made() -> None:
        await (await Store.open(file)).close()

    asyncio.run(made())
    on_file(file, add, "migrations", number=99, name="m099_later", at="2030-01-01", edition=1)


def broken(file: Path) -> None:
    file.write_bytes(b"no database" * 1000)


def a_folder(file: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize("spoiled", [newer, broken, a_folder])
def test_a_file_that_cannot_be_used_is_one_line_and_stays_as_it_is(
    spoiled: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / "tertulia.db"
    spoiled(file)
    before = file.read_bytes() if file.is_file() else None
    arguments, env = (*FLASH, "--db", str(file), "--base-url", NOBODY), environment(GEMINI_API_KEY="any")

    status, out, errors = piped_here(*arguments, given="hi\n", env=env)
    assert (status, out, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"tertulia: the store {file}")

    status, out, errors = piped_here(*arguments, "--json", given="hi\n", env=env)
    assert (status, errors, json.loads(out)["kind"]) == (2, "", "error")
    assert (file.read_bytes() if file.is_file() else None) == before


def test_the_folder_of_the_default_store_is_made(tmp_path: Path) -> None:
    file = tmp_path / "some" / "folder" / "tertulia.db"
    with beside(GeminiSim(behaviour=Echo())) as sim:
        piped_here(*FLASH, given="hi\n", env=environment(sim, TERTULIA_DB=str(file)))
        piped_here(*FLASH, given="and?\n", env=environment(sim, TERTULIA_DB=str(file)))

    assert texts(sim.requests[-1]) == ["hi", "hi", "and?"]

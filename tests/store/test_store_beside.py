"""A store looked at, and changed in one row, beside the process that has it open."""

import asyncio
import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from people import GROUP, NOON, a_message
from store.builders import a_task, an_outgoing, names_in
from store.forget.test_person import HER, everything_about
from store.processes import child
from stored_rows import remove
from tertulia import errors
from tertulia.store import Store, migrations
from tertulia.store.migrations.steps import MIGRATIONS
from tertulia.store.sqlite import connection


async def refusal(path: Path | str, kind: type[errors.TertuliaError]) -> str:
    with pytest.raises(kind) as caught:
        await Store.open(path, beside=True)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_it_is_read_and_changed_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with Store.open(path) as store:
        await store.outbox.put(an_outgoing(status="doubtful"))
        await store.tasks.add([a_task()])
    with child(path, "receive together") as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        async with Store.open(path, beside=True) as beside:
            counts = []
            for number in range(20):
                process.stdout.readline()
                counts.append(await beside.log.count(GROUP))
                decided = await beside.outbox.decide("o1", "dropped" if number % 2 == 0 else "waiting")
                assert decided is not None
            assert await beside.tasks.cancel("t1", why="enough") is not None
            assert await beside.check() == []
        more = [process.stdout.readline() for _ in range(200)]
        assert process.poll() is None
        process.kill()
    assert counts == sorted(counts)
    assert all(more)
    async with Store.open(path) as store:
        assert [reply.status for reply in await store.outbox.listed()] == ["waiting"]
        assert [task.status for task in await store.tasks.listed()] == ["cancelled"]
        assert await store.check() == []


async def test_what_one_changes_the_other_sees(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store, Store.open(tmp_path / "s.db", beside=True) as beside:
        await store.inbox.receive(a_message(), at=NOON)
        await store.outbox.put(an_outgoing())
        assert list(await beside.log.read(GROUP, 0, 9)) == [a_message()]

        await beside.outbox.decide("o1", "dropped", why="no")

        assert await store.outbox.listed() == [an_outgoing(status="dropped", why="no")]
        with pytest.raises(errors.InvalidValue, match="was dropped"):
            await store.outbox.put(an_outgoing(status="sending"))
        assert [row async for row in beside.export()] == [row async for row in store.export()]
        await beside.backup(tmp_path / "copy.db")
    async with Store.open(tmp_path / "copy.db", beside=True) as copy:
        assert await copy.outbox.listed() == [an_outgoing(status="dropped", why="no")]


async def test_writers_of_both_wait_for_each_other(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store, Store.open(tmp_path / "s.db", beside=True) as beside:
        tasks = [a_task(id=f"t{n}", due_at=NOON + timedelta(days=n)) for n in range(60)]
        await store.tasks.add(tasks)

        await asyncio.gather(
            *(store.inbox.receive(a_message(id=str(n)), at=NOON) for n in range(300)),
            *(beside.tasks.cancel(task.id, why="no") for task in tasks),
        )

        assert await store.log.count(GROUP) == 300
        assert {task.status for task in await store.tasks.listed()} == {"cancelled"}


async def test_it_makes_no_store(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    for path in (tmp_path / "s.db", tmp_path / "no" / "s.db", tmp_path / "empty.db", ":memory:"):
        assert await refusal(path, errors.StoreRefused) == f"there is no store at {path}"
    assert await refusal(tmp_path, errors.StoreRefused) == f"the store {tmp_path}: it is a folder"
    assert names_in(tmp_path) == ["empty.db"]
    assert (tmp_path / "empty.db").read_bytes() == b""


async def test_it_brings_no_store_up_to_date_and_opens_no_newer_one(tmp_path: Path) -> None:
    for name, steps in (("old.db", MIGRATIONS), ("new.db", [*MIGRATIONS, lambda _: None])):
        with closing(connection.connect(str(tmp_path / name))) as database:
            migrations.migrate(database, steps)
            if name == "old.db":
                remove(database, "migrations")
        before = (tmp_path / name).read_bytes()
        kind = errors.StoreRefused if name == "old.db" else errors.StoreTooNew

        said = await refusal(tmp_path / name, kind)

        assert said.startswith(f"the store {tmp_path / name}: a")
        assert ("start tertulia chat or the bot once" in said) == (name == "old.db")
        assert (tmp_path / name).read_bytes() == before
    assert names_in(tmp_path) == ["new.db", "old.db"]


async def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"hello, I am a text\n" * 500)
    with closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE messages (id INTEGER)")

    assert "the file is damaged, or no store at all" in await refusal(tmp_path / "s.db", errors.StoreBroken)
    assert "it is a database of another program" in await refusal(tmp_path / "other.db", errors.StoreBroken)


async def test_names_that_mean_something_in_an_address_mean_nothing_here(tmp_path: Path) -> None:
    path = tmp_path / "a store?mode=memory#1 %41é.db"
    async with Store.open(path) as store:
        await store.outbox.put(an_outgoing())
    async with Store.open(path, beside=True) as beside:
        assert await beside.outbox.unsent() == [an_outgoing()]
    assert names_in(tmp_path) == [path.name]


async def test_nobody_is_forgotten_beside_another_process(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store, Store.open(tmp_path / "s.db", beside=True) as beside:
        await everything_about(store)
        before = [row async for row in store.export()]

        with pytest.raises(errors.StoreBusy, match=r"nobody is forgotten while another process may use it; stop"):
            await beside.forget(platform="telegram", author_id=HER.id)

        assert [row async for row in store.export()] == before


async def test_what_cannot_be_written_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    async with Store.open(folder / "s.db") as store:
        await store.outbox.put(an_outgoing())
    (folder / "s.db").chmod(0o400)
    folder.chmod(0o500)
    try:
        async with Store.open(folder / "s.db", beside=True) as beside:
            assert await beside.outbox.unsent() == [an_outgoing()]
            assert len([row async for row in beside.export()]) > 0
            if os.geteuid() != 0:
                with pytest.raises(errors.StoreRefused, match="it may not be opened or written"):
                    await beside.outbox.decide("o1", "dropped")
    finally:
        folder.chmod(0o700)

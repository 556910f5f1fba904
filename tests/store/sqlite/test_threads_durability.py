"""What was told to be kept is there after any end of the process, and nothing is there in part."""

import asyncio
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from people import ALICE, GROUP, NOON, a_message, a_talk
from store.builders import files_hold, names_in
from store.processes import child
from tertulia.errors import StoreBusy, StoreFull
from tertulia.messages import Message
from tertulia.store import Store
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Operation


def killed_after(path: Path, what: str, lines: int) -> list[str]:
    """All that the child said before it was killed, right after it had said so many lines."""
    with child(path, what) as process:
        assert process.stdout
        said = [process.stdout.readline().strip() for _ in range(lines + 1)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read().split()
    assert said[0] == "open", said
    return said[1:]


@pytest.mark.parametrize("lines", [1, 2, 7, 40])
@pytest.mark.parametrize("what", ["receive", "receive together"])
async def test_what_was_kept_is_there_after_a_kill(tmp_path: Path, what: str, lines: int) -> None:
    told = killed_after(tmp_path / "s.db", what, lines)

    async with Store.open(tmp_path / "s.db") as store:
        kept = list(await store.log.read(GROUP, 0, 10_000))
        assert await store.check() == []
        assert [await store.inbox.receive(message, at=NOON) for message in kept] == [False] * len(kept)
    assert set(told) <= {message.id for message in kept}
    assert kept == [a_message(f"hello {message.id}", id=message.id) for message in kept]
    for writer in {message.id.split("-")[0] for message in kept}:
        mine = [message.id for message in kept if message.id.startswith(f"{writer}-")]
        assert mine == [f"{writer}-{number}" for number in range(len(mine))]


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_forget_that_was_killed_is_done_when_the_store_is_opened(tmp_path: Path, where: str) -> None:
    path = tmp_path / "s.db"
    with child(path, f"forget {where}") as process:
        assert process.wait() == 9
    assert files_hold(tmp_path, "zyzzyva")

    async with Store.open(path) as store:
        assert not files_hold(tmp_path, "zyzzyva")
        assert [message.deleted for message in await store.log.read(GROUP, 0, 9)] == [True]
        assert await store.names_by_platform(ALICE.id) == {}
        assert await store.check() == []


@pytest.mark.parametrize("lines", [1, 3, 11])
async def test_a_run_is_ended_with_all_it_made_or_not_at_all(tmp_path: Path, lines: int) -> None:
    told = killed_after(tmp_path / "s.db", "runs", lines)

    async with Store.open(tmp_path / "s.db") as store:
        replies = Counter(reply.run for reply in await store.outbox.listed())
        tasks = Counter(task.run for task in await store.tasks.listed())
        left_open = {run.id for run in await store.runs.open()}
        assert await store.check() == []
    assert set(told) <= set(replies)
    assert set(replies.values()) == {3}
    assert set(tasks.values()) == {2}
    assert set(tasks) == set(replies)
    assert not left_open & set(replies)
    assert len(left_open) <= 1


async def test_many_kills_lose_nothing_that_was_told(tmp_path: Path) -> None:
    """Each time the same messages come again, as a platform delivers what nobody took."""
    told: set[str] = set()
    for number in range(6):
        told |= set(killed_after(tmp_path / "s.db", "receive together", random.Random(number).randrange(1, 60)))  # noqa: S311

    async with Store.open(tmp_path / "s.db") as store:
        kept = [message.id for message in await store.log.read(GROUP, 0, 100_000)]
        assert await store.check() == []
    assert told <= set(kept)
    assert len(kept) == len(set(kept))


async def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with child(path, "hold") as first:
        assert first.stdout
        assert first.stdout.readline() == "open\n"

        with pytest.raises(
            StoreBusy, match=rf"^the store {path}: another process has it open \(process {first.pid}\); stop it first$"
        ):
            await Store.open(path)
        with child(path, "hold") as second:
            _, errors = second.communicate()
            assert errors.strip().splitlines()[-1].startswith("tertulia.errors.StoreBusy: the store")
        first.send_signal(signal.SIGKILL)

    async with Store.open(path) as store:
        assert await store.check() == []


async def test_the_same_process_is_refused_too_and_a_closed_store_is_free(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "s.db")
    async with Store.open(tmp_path / "s.db") as store:
        await store.inbox.receive(a_message(), at=NOON)
        for path in (tmp_path / "s.db", link, tmp_path / "." / "s.db"):
            with pytest.raises(StoreBusy):
                await Store.open(path)
        assert list(await store.log.read(GROUP, 0, 9)) == [a_message()]

    assert names_in(tmp_path) == ["link.db", "s.db"]
    async with Store.open(link) as store:
        assert await store.log.count(GROUP) == 1


async def test_a_full_disk_loses_nothing_that_was_told_and_is_survived(tmp_path: Path) -> None:
    with child(tmp_path / "s.db", "fill") as process:
        output, errors = process.communicate()

    said = output.split("\n")
    assert errors == ""
    full = next(line for line in said if line.startswith("full: "))
    assert f"the store {tmp_path / 's.db'}: " in full
    assert "full" in full
    assert "faults: []" in said
    told = {line for line in said if line.isdigit()}
    assert "1000000" in told
    async with Store.open(tmp_path / "s.db") as store:
        kept = [message.id for message in await store.log.read(GROUP, 0, 10_000)]
        assert await store.check() == []
    assert set(kept) == told


async def test_a_file_that_may_not_grow_takes_what_fits_and_refuses_the_rest(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        pages = await store.writer.run(lambda database: database.execute("PRAGMA page_count").fetchone()[0])
        await store.writer.run(_limit(pages + 20), autocommit=True)

        told = await _taken(store, a_talk(600))

        assert 0 < len(told) < 600
        assert list(await store.log.read(GROUP, 0, 999)) == [a_talk(600)[number] for number in sorted(told)]
        await store.writer.run(_limit(10_000), autocommit=True)
        assert await store.inbox.receive(a_message(id="now"), at=NOON) is True
        assert await store.check() == []


def _limit(pages: int) -> Operation[None]:
    def limit(database: Database) -> None:
        database.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    return limit


async def _taken(store: Store, talk: list[Message]) -> list[int]:
    """The numbers of those that were kept, all asked for at once."""

    async def one(message: Message) -> bool:
        try:
            return await store.inbox.receive(message, at=NOON)
        except StoreFull:
            return False

    told = await asyncio.gather(*map(one, talk))
    return [number for number, kept in enumerate(told) if kept]

"""One bot at a time."""

import asyncio
import logging
import os
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import postgres
from tertulia.errors import StoreBroken, StoreBusy
from tertulia.store import Store
from tertulia.store.database import Database
from tertulia.store.postgres import holder
from tertulia.store.postgres.holder import LEASE


def write(database: Database) -> None:
    database.insert("INSERT INTO owner_settings (name, value, replaced, at) VALUES ('a', '1', '2', 'now')")


def settings(database: Database) -> int:
    return len(database.all("SELECT id FROM owner_settings"))


async def test_a_second_bot_is_refused_in_one_line_and_readers_are_not(url: str, tmp_path: Path) -> None:
    async with Store.open(url, media_folder=tmp_path / "media") as first:
        with pytest.raises(
            StoreBusy,
            match=r"^the store postgresql://\S+: another bot has it: process \d+ on .*, since \d{4}-\d\d-\d\d \d\d:",
        ):
            await Store.open(url, media_folder=tmp_path / "media")
        async with Store.open(url, beside=True) as beside:
            assert await beside.reader.run(settings) == 0
            await first.writer.run(write)
            assert await beside.reader.run(settings) == 1
            state = await beside.state()
            assert (state.is_held, (state.size or 0) > 0) == (True, True)
            await first.close()
            assert (await beside.state()).is_held is False

    async with Store.open(url, media_folder=tmp_path / "media"):
        pass  # the first let go


async def test_a_killed_bot_is_followed_and_writes_nothing_any_more(url: str, tmp_path: Path) -> None:
    frozen = await Store.open(url, media_folder=tmp_path / "media")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("UPDATE tertulia_holder SET seen_at = seen_at - interval '1 hour'")

        async with asyncio.timeout(LEASE + 2):
            following = await Store.open(url, media_folder=tmp_path / "media")

    for _ in range(2):
        with pytest.raises(StoreBroken, match="another bot has taken the store over; nothing is written until the"):
            await frozen.writer.run(write)
    await following.writer.run(write)
    await following.close()
    await frozen.close()


@pytest.mark.skipif("TERTULIA_TEST_SERVER" in os.environ, reason="PgBouncer accepts connections during an outage")
async def test_an_outage_of_the_server_is_one_line_and_its_end_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, holder.log.name)
    connect, url = psycopg.connect, postgres.new_database()
    attempts, lines, is_long, is_over = count(1), list[str](), Event(), Event()

    def attempt(*args: Any, **named: Any) -> Any:
        if next(attempts) == 4:
            is_long.set()
        return connect(*args, **named)

    def note(record: logging.LogRecord) -> bool:
        lines.append(record.getMessage())
        if "answers again" in lines[-1]:
            is_over.set()
        return True

    monkeypatch.setattr(holder.log, "filters", [note])
    async with Store.open(url, media_folder=tmp_path):
        pass
    held = holder.Holder(url, "a bot", renewal=0.01)
    try:
        with psycopg.connect(postgres.server(), autocommit=True) as admin:
            name = str(conninfo_to_dict(url)["dbname"])
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
            monkeypatch.setattr(psycopg, "connect", attempt)
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            assert await asyncio.to_thread(is_long.wait, 30)
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())
            assert await asyncio.to_thread(is_over.wait, 30)
    finally:
        held.release()

    assert ["does not answer" in line for line in lines] == [True, False]

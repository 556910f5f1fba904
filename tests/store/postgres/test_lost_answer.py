"""The answer to a commit is lost: what was committed is not done again, and what was not is."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tertulia.store.database import Database
from tertulia.store.postgres.connection import PostgresDatabase
from tertulia.store.threads import WriterThread

_ADD = "INSERT INTO owner_settings (name, value, replaced, at) VALUES (:name, '1', '2', 'now')"


class Proxy:
    """Passes bytes on to the server. The first commit reaches it or not, and its answer reaches nobody."""

    def __init__(self, url: str, *, reaches: bool) -> None:
        found = urlsplit(url)
        self._server: Any = (found.hostname, found.port)
        if not found.hostname:
            options = parse_qs(found.query)
            self._server = f"{options['host'][0]}/.s.PGSQL.{options.get('port', ['5432'])[0]}"
        self._reaches = reaches
        self._is_cut = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://postgres@127.0.0.1:{self._listening.getsockname()[1]}{found.path}?sslmode=disable"
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX if isinstance(self._server, str) else socket.AF_INET)
                server.connect(self._server)
                Thread(target=self._pass_on, args=(client, server), daemon=True).start()
                Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client, server:
            while data := client.recv(1 << 16):
                if b"COMMIT" in data and not self._is_cut:
                    self._is_cut = True
                    client.shutdown(socket.SHUT_RDWR)  # the server is not told: its session stays
                    if self._reaches:
                        server.sendall(data)
                        server.recv(1 << 16)  # it is committed by now
                    return
                server.sendall(data)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)


@contextmanager
def proxy(url: str, *, reaches: bool) -> Iterator[Proxy]:
    opened = Proxy(url, reaches=reaches)
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize("reaches", [True, False])
async def test_a_unit_is_done_once(url: str, database: PostgresDatabase, reaches: bool) -> None:
    runs = []

    def unit(database: Database) -> int:
        runs.append(1)
        return database.insert(_ADD, name=f"n{len(runs)}")

    with proxy(url, reaches=reaches) as between:
        writer = WriterThread(await asyncio.to_thread(PostgresDatabase, between.url), "writer")
        assert await writer.run(unit) == (1 if reaches else 2)
        await writer.close()

    assert len(runs) == (1 if reaches else 2)
    assert database.all("SELECT name FROM owner_settings") == [(f"n{len(runs)}",)]

"""One bot at a time: a row names the bot that has the store, and a thread says every few seconds that it lives.

Only the clock of the database counts. A bot whose row was not renewed for `LEASE` seconds is dead or cut off: its row
is removed, which waits for its open transactions. Each transaction that writes locks the row of its bot first, so a bot
that was only frozen cannot write any more.
"""

import logging
import os
import socket
import time
from contextlib import suppress
from threading import Event, Thread

from psycopg import Error

from tertulia.errors import StoreBusy
from tertulia.store.postgres.connection import PostgresDatabase, application_name

log = logging.getLogger(__name__)

LEASE = 8.0  # seconds
RENEWAL = 2.0  # seconds
_POLL = 0.25  # seconds

# Who has the store, when that one was last seen, and for how many seconds it was silent.
_HOLDER = """SELECT token, name, CAST(since AS TEXT), CAST(seen_at AS TEXT),
    CAST(extract(epoch FROM clock_timestamp() - seen_at) AS DOUBLE PRECISION) FROM tertulia_holder"""
_TAKE = """INSERT INTO tertulia_holder (one, token, name, since, seen_at)
    VALUES (1, :token, :name, clock_timestamp(), clock_timestamp()) ON CONFLICT DO NOTHING"""
_RENEW = "UPDATE tertulia_holder SET seen_at = clock_timestamp() WHERE token = :token"
_REMOVE = "DELETE FROM tertulia_holder WHERE token = :token"
_UNIT = "INSERT INTO tertulia_units (token, unit) VALUES (:token, '')"  # the last unit of this bot
_REMOVE_UNITS = "DELETE FROM tertulia_units"  # of bots that had the store before
# The sessions of a bot that does not renew its row: one that is frozen within a transaction would keep the row locked.
_END_SESSIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = :application AND usename = current_user AND pid <> pg_backend_pid()"""


def is_held(database: PostgresDatabase) -> bool:
    """Return whether a bot has the store and lives."""
    row = database.one(_HOLDER)
    return row is not None and row[-1] <= LEASE


class Holder:
    """Has the store for one bot until `release`."""

    def __init__(self, url: str, token: str, *, new: bool = False, renewal: float = RENEWAL) -> None:
        self.token = token
        self._renewal = renewal
        self._ended = Event()
        self._database = PostgresDatabase(url, token=token)
        try:
            if new:
                self._database.create_holder()
            self._take()
        except BaseException:
            self._database.close()
            raise
        self._thread = Thread(target=self._renew, name="tertulia store, holding", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Let another bot have the store."""
        self._ended.set()
        self._thread.join()
        with suppress(Error):
            self._database.run(_REMOVE, token=self.token)
        self._database.close()

    def _take(self) -> None:
        first: str | None = None
        while True:
            name = f"process {os.getpid()} on {socket.gethostname()}"
            if self._database.run(_TAKE, token=self.token, name=name):
                self._database.run(_REMOVE_UNITS)
                self._database.run(_UNIT, token=self.token)
                return
            row = self._database.one(_HOLDER)
            if row is None:
                continue
            token, name, since, seen_at, silent = row
            if silent > LEASE:
                self._database.all(_END_SESSIONS, application=application_name(token))
                self._database.run(_REMOVE, token=token)
                continue
            if first not in (None, seen_at):
                raise StoreBusy(f"another bot has it: {name}, since {since[:19]}; stop it first")
            first = seen_at
            time.sleep(_POLL)

    def _renew(self) -> None:
        is_away = False
        while not self._ended.wait(self._renewal):
            try:
                if not self._database.run(_RENEW, token=self.token):
                    log.error("another bot has taken the store over; this one writes nothing any more")
                    return
                if is_away:
                    log.info("%s answers again", self._database.describe())
                is_away = False
            except Error as error:
                if not is_away:
                    log.warning("%s", self._database.translate(error))
                is_away = True

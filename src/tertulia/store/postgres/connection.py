"""One connection to PostgreSQL: statements in pipelines, repeated connecting, translated errors.

No setting outlasts a transaction, and statements are prepared only where no pooler stands between, so that PgBouncer
may give each transaction another server connection. `BEGIN` and the locks of places travel with the first statement of
a transaction, `ROLLBACK` with the statement after it: a unit costs one exchange for each statement with a result, and
one for its commit.
"""

import re
import select
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count, zip_longest
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import NumericBinaryLoader

from tertulia.errors import InvalidValue, StoreAway, StoreBroken, StoreFull, StoreRefused, TertuliaError
from tertulia.messages import Place
from tertulia.store.database import Connection, Failure, Fault, Row, RowCache, translate
from tertulia.store.identities import place_key
from tertulia.store.postgres.statements import Parameters, definition, form, parameters
from tertulia.store.transfer import copy_to_file
from tertulia.store_url import is_postgres, masked

BEGIN_READING = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_DEFAULTS: dict[str, str | int] = {  # what the URL does not say
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "client_encoding": "utf8",
}
_UNKNOWN = 30.0  # seconds to wait for a transaction whose commit was not answered
_WAITS = (0.1, 0.2, 0.5, 1.0)  # seconds before connecting once more
_RESULTS = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_SENT_AT_ONCE = 500  # statements in one exchange
_PREPARED_FROM = 3  # uses of a statement, from which on it is prepared
_MAX_PREPARED = 1000
# The transaction's id; the bot that has the store, if it is us: its row cannot go before we have ended; locked places.
# The mark of the unit goes with its commit. A server that crashed gives the id of what it lost to somebody else.
_OPENING = """WITH marked AS (UPDATE tertulia_units SET unit = :unit WHERE token = :token)
    SELECT pg_current_xact_id()::text,
    (SELECT token FROM (SELECT token FROM tertulia_holder WHERE token = :token FOR KEY SHARE) held)"""
# Whether the tables are ours and were made, and how many there are.
_TABLES = """SELECT to_regclass('tertulia_holder') IS NOT NULL, to_regclass('migrations') IS NOT NULL, count(*)
    FROM information_schema.tables WHERE table_schema = current_schema()"""
_COLUMNS = """SELECT CAST(column_name AS TEXT) FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = :table ORDER BY ordinal_position"""
_SEQUENCES = """SELECT substr(CAST(sequencename AS TEXT), 1, length(CAST(sequencename AS TEXT)) - 7), last_value
    FROM pg_sequences WHERE schemaname = current_schema() AND sequencename LIKE '%_id_seq' AND last_value IS NOT NULL"""
_IDENTITIES = """SELECT CAST(table_name AS TEXT) FROM information_schema.columns
    WHERE table_schema = current_schema() AND column_name = 'id' AND is_identity = 'YES'"""
# The session of a transaction that still waits for a client that is gone.
_END_TRANSACTION = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE backend_xid = CAST(CAST(:id AS xid8) AS xid) AND state LIKE 'idle%' AND usename = current_user"""
_MARK = "SELECT unit FROM tertulia_units WHERE token = :token"
# The bot that has the store; see `holder`. And its last unit, in a row of its own: those are updated side by side.
_HOLDER_TABLE = """CREATE TABLE tertulia_holder (
    one INTEGER NOT NULL UNIQUE CHECK (one = 1),
    token TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    since TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL
)"""
_UNITS_TABLE = "CREATE TABLE IF NOT EXISTS tertulia_units (token TEXT PRIMARY KEY, unit TEXT NOT NULL)"
_BUSY = StoreAway, "the database does not answer"
_REFUSED = StoreRefused, "it may not be opened or written"
_FAULTS = {  # by codes of errors and their first two characters
    state: fault
    for fault, states in (
        (Fault(Failure.AGAIN, *_BUSY), "lost 08 40 55P03 57P01 57P02 57P03"),
        (Fault(Failure.ANSWER, *_BUSY), "08007"),
        (Fault(Failure.TRANSACTION, *_BUSY), "57 53300"),
        (Fault(Failure.TAKEN, StoreBroken, "another bot has it"), "taken"),
        (Fault(Failure.TRANSACTION, StoreFull, "there is no room left at the database"), "53"),
        (Fault(Failure.TRANSACTION, *_REFUSED), "25006 42501 54 58"),
        (Fault(Failure.TRANSACTION, StoreBroken), "25 XX"),
        (Fault(Failure.STATEMENT, *_REFUSED), "28 3D000"),
        (Fault(Failure.STATEMENT, StoreRefused, "the server refuses the role or the database of the URL"), "refused"),
        (Fault(Failure.STATEMENT, InvalidValue, "it does not fit what is kept"), "22 23"),
    )
    for state in states.split()
}
_numbers = count()
_OPENING_AT = (
    _OPENING
    + """, (SELECT count(*) FROM (
    SELECT id FROM places
    WHERE place_key IN (:keys) OR id IN (SELECT place FROM place_aliases WHERE place_key IN (:keys))
    ORDER BY id FOR UPDATE) locked)"""
)


_Key = tuple[bytes, tuple[int, ...]]  # a statement, and the types of its values


class ConnectionLost(psycopg.OperationalError):
    """The connection ended, or none could be made; nothing of the transaction is kept."""

    sqlstate = "lost"


class ConnectionRefused(psycopg.OperationalError):
    """The server answered and will not change its mind soon."""

    sqlstate = "refused"


class TakenOver(psycopg.OperationalError):
    """Another bot has the store by now."""

    sqlstate = "taken"


class _Number(NumericBinaryLoader):
    """Sums of integers are `numeric`: they become what they are in SQLite."""

    def load(self, data: Any) -> Any:
        found = super().load(data)
        return int(found) if found == found.to_integral_value() else float(found)


def connection_text(url: str, **more: str) -> str:
    """Return a URL with what it does not say; raise `StoreRefused`, without its password, if it is no such URL."""
    try:
        given = conninfo_to_dict(url) if is_postgres(url) else None
    except psycopg.Error:
        given = None
    if given is None:
        raise StoreRefused(
            "it is no URL of PostgreSQL such as postgresql:///database or postgresql://host/database; in a password "
            "/ ? # @ % are written %2F %3F %23 %40 %25"
        )
    return make_conninfo("", **{**_DEFAULTS, **more, **cast("dict[str, Any]", given)})


def application_name(token: str | None) -> str:
    """Return what the sessions of a bot, and of others, are called at the server."""
    return f"tertulia {token[:12]}" if token else "tertulia"


class PostgresDatabase(Connection):
    """A connection that is made again when it was lost."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: str, *, caching: bool = False, token: str | None = None) -> None:
        self.cache = RowCache() if caching else RowCache(most=0)
        self.events: list[Any] = []
        self._url = url
        self.token = token  # of the bot that must have the store for this connection to write
        self._unsent: list[tuple[bytes, Parameters | None]] = []  # what goes with the next statement
        self._opening = False  # whether that begins a transaction
        self._writes = False  # whether that one writes
        self._transaction = ""  # the id of the one that writes
        self._unit = ""  # its mark
        self._begun = False
        self._ignored = 0  # exchanges whose results nobody needs
        self._prepares = False  # whether the session is ours alone
        self._uses: Counter[_Key] = Counter()
        self._prepared: dict[_Key, bytes] = {}  # the names of statements
        self._sent: list[tuple[_Key, bytes] | None] = []  # for each result to come, what it has prepared, if anything
        self._connection: psycopg.Connection[Any] | None = None
        self._connect()

    # what rooms call

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        return self._rows(self._execute(statement, values))

    def one(self, statement: str, /, **values: Any) -> Row | None:
        return next(iter(self._rows(self._execute(statement, values))), None)

    def run(self, statement: str, /, **values: Any) -> int:
        return self._execute(statement, values).command_tuples or 0

    def send(self, statement: str, /, **values: Any) -> None:
        self._add(statement, values)
        if self._opening or not self._begun or len(self._unsent) >= _SENT_AT_ONCE:
            self.flush()

    def many(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            self.send(statement, **row)

    def insert_all(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> list[int]:
        waiting = list(rows)
        found: list[pq.abc.PGresult] = []
        for start in range(0, len(waiting), _SENT_AT_ONCE):
            some = waiting[start : start + _SENT_AT_ONCE]
            for row in some:
                self._add(statement, row, " RETURNING id")
            found += self._exchange(self._send_unsent())[-len(some) :]
        return [self._rows(result)[0][0] for result in found]

    def insert(self, statement: str, /, **values: Any) -> int:
        return cast("int", self._rows(self._execute(statement, values, " RETURNING id"))[0][0])

    def insert_new(self, statement: str, /, **values: Any) -> int | None:
        rows = self._rows(self._execute(statement, values, " RETURNING id"))
        return rows[0][0] if rows else None

    # what the threads call besides

    @property
    def in_transaction(self) -> bool:
        return self._begun

    def begin(self, places: Sequence[Place] = ()) -> None:
        self._ready()
        self._begun = self._opening = self._writes = True
        self._unit = str(next(_numbers))
        values = {"token": self.token, "unit": self._unit, "keys": {place_key(place) for place in places}}
        text, names = form(_OPENING_AT if places else _OPENING)
        self._unsent += (b"BEGIN", None), (text, parameters(values[name] for name in names))

    def begin_reading(self) -> None:
        self._ready()
        self._begun = self._opening = True
        self._unsent.append((BEGIN_READING, None))

    def commit(self) -> None:
        try:
            if not self._opening:
                self._commit()
        finally:
            self._forget_transaction()

    def rollback(self) -> None:
        sent = self._begun and not self._opening
        self._forget_transaction()
        if sent and self._connection:
            libpq = self._connection.pgconn
            libpq.send_query_params(b"ROLLBACK", None)
            libpq.pipeline_sync()
            libpq.flush()
            self._ignored += 1

    def flush(self) -> None:
        if self._unsent:
            self._exchange(self._send_unsent())

    def fault(self, error: Exception) -> Fault | None:
        return _fault(error)

    def translate(self, error: Exception) -> TertuliaError:
        return translate_without_password(error, self._url)

    def is_new(self) -> bool:
        ours, made, tables = self.all(_TABLES)[0]
        if tables and not ours:
            raise StoreBroken("it is a database of another program; name one of its own")
        encoding = self.all("SHOW server_encoding")[0][0]
        if encoding != "UTF8":
            raise StoreRefused(f"its encoding is {encoding}, which cannot hold every text, not UTF8")
        return not made

    def create_holder(self) -> None:
        """Create the tables of the bot that has the store, if they are not there; another process may do the same."""
        while self.is_new() and not (self.columns("tertulia_holder") and self.columns("tertulia_units")):
            with suppress(errors.UniqueViolation, errors.DuplicateTable):
                self.run(_HOLDER_TABLE if not self.columns("tertulia_holder") else _UNITS_TABLE)

    def define(self, statement: str) -> None:
        self.run(definition(statement))

    def columns(self, table: str) -> list[str]:
        return [name for (name,) in self.all(_COLUMNS, table=table)]

    def sequences(self) -> dict[str, int]:
        return dict(self.all(_SEQUENCES))

    def set_sequences(self, last: dict[str, int]) -> None:
        known = {name for (name,) in self.all(_IDENTITIES)}
        for name, number in last.items():
            if name in known:
                self.all("SELECT setval(pg_get_serial_sequence(:name, 'id'), :number)", name=name, number=number)

    def copy_to(self, path: Path, name: Path) -> None:
        self.begin_reading()
        try:
            copy_to_file(self, path)
        finally:
            self.undo()

    def each(self, statement: str, /, **values: Any) -> Iterator[Row]:
        name = f"rows_{next(_numbers)}"
        self.run(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}", **values)
        while rows := self.all(f"FETCH 500 FROM {name}"):
            yield from rows
        self.run(f"CLOSE {name}")

    def describe(self) -> str:
        return f"the store {masked(self._url)}"

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None
        self._prepared.clear()
        self._sent.clear()

    # exchanges

    def _connect(self) -> None:
        try:
            self._connection = psycopg.connect(
                connection_text(self._url, application_name=application_name(self.token)), autocommit=True
            )
        except psycopg.OperationalError as error:
            if _refuses(error):
                raise ConnectionRefused(str(error)) from error
            raise ConnectionLost(str(error)) from error
        self._connection.adapters.register_loader("numeric", _Number)
        self._transformer = Transformer(self._connection)
        self._connection.pgconn.nonblocking = 0
        self._connection.pgconn.enter_pipeline_mode()
        self._poll = select.poll()
        self._poll.register(self._connection.pgconn.socket, select.POLLIN)
        self._ignored = 0
        self._prepares = False
        self._prepares = self.all("SELECT pg_backend_pid()")[0][0] == self._connection.pgconn.backend_pid

    def _forget_transaction(self) -> None:
        self._begun = self._opening = self._writes = False
        self._unsent.clear()

    def _ready(self) -> None:
        """Connect again if the connection was lost; give up after some seconds."""
        self._unsent.clear()
        for wait in _WAITS:
            if self._connection:
                return
            try:
                self._connect()
            except ConnectionLost:
                time.sleep(wait)
        if not self._connection:
            self._connect()

    def _lose(self, message: str) -> ConnectionLost:
        self._unsent.clear()
        self.close()
        return ConnectionLost(message)

    def _execute(self, statement: str, values: Mapping[str, Any], end: str = "") -> pq.abc.PGresult:
        self._add(statement, values, end)
        return self._exchange(self._send_unsent())[-1]

    def _add(self, statement: str, values: Mapping[str, Any], end: str = "") -> None:
        """Add a statement to what is sent next."""
        text, names = form(statement, end)
        given = parameters([values[name] for name in names])
        if not self._begun:
            self._ready()
        self._unsent.append((text, given))

    def _send(self, libpq: pq.abc.PGconn, text: bytes, values: Parameters) -> None:
        data, types, formats = values
        if name := self._prepare(libpq, text, tuple(types)):
            libpq.send_query_prepared(name, data, formats, 1)
        else:
            libpq.send_query_params(text, data, types, formats, 1)
        self._sent.append(None)

    def _prepare(self, libpq: pq.abc.PGconn, text: bytes, types: tuple[int, ...]) -> bytes | None:
        """Return the name of a statement that is used often, prepared."""
        key = text, types
        if not self._prepares or (name := self._prepared.get(key)):
            return name if self._prepares else None
        self._uses[key] += 1
        if self._uses[key] < _PREPARED_FROM or len(self._prepared) >= _MAX_PREPARED:
            return None
        name = b"s%d" % next(_numbers)
        libpq.send_prepare(name, text, types)
        self._sent.append((key, name))
        return name

    def _send_unsent(self) -> pq.abc.PGconn:
        """Send what goes before the next statement."""
        if not self._connection:
            raise ConnectionLost("the connection was lost")
        libpq = self._connection.pgconn
        try:
            for text, values in self._unsent:
                self._send(libpq, text, values or Parameters([], [], []))
        except psycopg.OperationalError as error:
            raise self._lose(str(error)) from error
        self._unsent.clear()
        return libpq

    def _exchange(self, libpq: pq.abc.PGconn) -> list[pq.abc.PGresult]:
        """Send all that waits, and return the results; raise the first error."""
        opening, self._opening = self._opening, False
        try:
            libpq.pipeline_sync()
            libpq.flush()
            while self._ignored:
                self._results(libpq)
                self._ignored -= 1
            found = self._without_prepared(self._results(libpq))
        except psycopg.OperationalError as error:
            raise self._lose(str(error)) from error
        for result in found:
            if result.status not in _RESULTS:
                failed = errors.error_from_result(result, "utf-8")
                if libpq.status != pq.ConnStatus.OK:
                    raise self._lose(str(failed)) from failed
                raise failed
        if opening and self._writes:
            self._transaction = (found[1].get_value(0, 0) or b"").decode()
            if self.token and not found[1].get_value(0, 1):
                raise TakenOver(self.describe())
        return found

    def _without_prepared(self, results: list[pq.abc.PGresult]) -> list[pq.abc.PGresult]:
        """Return the results of one exchange but those of preparing that succeeded."""
        sent, self._sent = self._sent, []
        found: list[pq.abc.PGresult] = []
        for result, prepared in zip_longest(results, sent):
            if result is None:
                break
            if not prepared or result.status != pq.ExecStatus.COMMAND_OK:
                found.append(result)
            else:
                self._prepared[prepared[0]] = prepared[1]
        return found

    def _results(self, libpq: pq.abc.PGconn) -> list[pq.abc.PGresult]:
        """Wait for the results of one exchange."""
        found: list[pq.abc.PGresult] = []
        while True:
            while libpq.is_busy():
                self._poll.poll()
                libpq.consume_input()
            result = libpq.get_result()
            if result is None:
                if libpq.status != pq.ConnStatus.OK:
                    raise ConnectionLost("the server closed the connection")
                continue
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                return found
            found.append(result)
            if libpq.status != pq.ConnStatus.OK:
                return found

    def _rows(self, result: pq.abc.PGresult) -> list[Row]:
        if not result.ntuples:
            return []
        self._transformer.set_pgresult(result)
        return cast("list[Row]", self._transformer.load_rows(0, result.ntuples, tuple))

    def _commit(self) -> None:
        """Commit; where no answer came, ask whether it was done."""
        try:
            done = self._execute("COMMIT", {})
        except ConnectionLost:
            self._forget_transaction()
            if self._was_committed(self._transaction, self._unit):
                return
            raise
        if done.command_status != b"COMMIT":
            raise errors.InFailedSqlTransaction("the transaction had failed")

    def _was_committed(self, transaction: str, unit: str) -> bool:
        end = time.monotonic() + _UNKNOWN
        while time.monotonic() < end:
            with suppress(ConnectionLost):  # asked again, until the server is there
                self._ready()
                status = self._status(transaction)
                if status != "in progress":
                    return self.one(_MARK, token=self.token) == (unit,) if self.token else status == "committed"
                self.all(_END_TRANSACTION, id=transaction)
            time.sleep(_WAITS[0])
        raise errors.TransactionResolutionUnknown("nobody knows whether the last change was stored")

    def _status(self, transaction: str) -> str | None:
        """Return what became of a transaction; None where the server that crashed does not know its id any more."""
        try:
            return cast("str | None", self.all("SELECT pg_xact_status(CAST(:id AS xid8))", id=transaction)[0][0])
        except errors.InvalidParameterValue:
            return None


def translate_without_password(error: Exception, url: str) -> TertuliaError:
    """Translate an error of PostgreSQL or of decoding into ours, in one line without the password."""
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    if secret := conninfo_to_dict(url).get("password"):
        said = said.replace(str(secret), "***")
    return translate(error, f"the store {masked(url)}", _fault(error), said)


def _fault(error: Exception) -> Fault | None:
    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    known = _FAULTS.get(state) or _FAULTS.get(state[:2])
    refused = isinstance(error, psycopg.OperationalError)
    return known or Fault(Failure.STATEMENT, *(_REFUSED if refused else (StoreBroken, "")))


def _refuses(error: psycopg.Error) -> bool:
    """Return whether the server answered and will not change its mind soon."""
    return re.search(r"password|authentication|does not exist|permission|pg_hba|SSL", str(error)) is not None

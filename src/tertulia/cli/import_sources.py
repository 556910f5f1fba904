"""Files that `tertulia import` reads into a store: what each is, by its content, and its messages with the progress."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertulia.errors import InvalidValue
from tertulia.formats.cw import read_dump
from tertulia.formats.gryag import TABLE, GryagMessages, is_gryag
from tertulia.formats.gryag_memory import MEMORY_TABLES, GryagMemory
from tertulia.formats.imported import Imported
from tertulia.formats.json_stream import JsonStream
from tertulia.formats.telegram_export import TelegramExport, is_export

if TYPE_CHECKING:
    from tertulia.store.foreign import ForeignDatabase

TELEGRAM, GRYAG, CW = "telegram", "gryag", "cw"
FORM_WORDS = {
    TELEGRAM: "an export of Telegram Desktop",
    GRYAG: "a database of gryag",
    CW: "a dump of cw-telegram-agent, which has its messages in Telegram: export those from there",
}

TableRow = tuple[str, Mapping[str, Any]]  # a row with the name of its table

_CHUNK = 1 << 20  # bytes
_START = 1 << 16  # bytes that say what a file is
_SQLITE = b"SQLite format 3\x00"
_POSTGRES = b"PostgreSQL database dump"
_COPY = re.compile(r'COPY (?:"?\w+"?\.)?"?(\w+)"? \(([^)]*)\) FROM stdin;\s*')
_MYSQL = re.compile(rb"-- (MySQL|MariaDB) dump")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NO_FILE = "an export has a file result.json; in Telegram Desktop choose “Machine-readable JSON”"


def find_form(path: Path) -> str | None:
    """Return the form of a file that goes into a store; None for a conversation. Refuse what is known to be neither."""
    with path.open("rb") as file:
        start = file.read(_START)
    if start.startswith(_SQLITE) or _POSTGRES in start[:200]:
        return GRYAG
    if start.lstrip()[:9].lower() == b"<!doctype":
        raise InvalidValue(f"{path} is HTML; {_NO_FILE}")
    if _MYSQL.search(start[:300]):
        return CW
    return TELEGRAM if is_export(start.decode(errors="replace")) else None


def export_file(path: Path) -> Path:
    """Return the file of an export; its folder may be given instead."""
    if not path.is_dir():
        return path
    if (file := path / "result.json").is_file():
        return file
    raise InvalidValue(f"there is no result.json in {path}: {_NO_FILE}")


class ImportSource:
    """The messages of a file, and the share of it that was read."""

    def __init__(self, path: Path, form: str, *, bot_id: str, agent: str, chats: tuple[str, ...]) -> None:
        self.share = 0.0
        self._path = path
        self._size = max(1, path.stat().st_size)
        self._form = form
        self._bot_id = bot_id
        self._agent = agent
        self._chats = chats

    def __iter__(self) -> Iterator[Imported]:
        if self._form == TELEGRAM:
            return self._read_export()
        if self._form == CW:
            return read_dump(self._lines())
        with self._path.open("rb") as file:
            is_sqlite = file.read(len(_SQLITE)) == _SQLITE
        return self._read_sqlite() if is_sqlite else self._read_gryag(read_copy(self._lines()))

    def _read_export(self) -> Iterator[Imported]:
        from tertulia.config import local_zone
        from tertulia.timezones import zone_named

        zone = zone_named(local_zone(os.environ))
        export = TelegramExport(bot_id=self._bot_id, agent=self._agent, chats=self._chats, zone=zone)
        return export.read(JsonStream(self._chunks()))

    def _chunks(self) -> Iterator[bytes]:
        done = 0
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                done += len(chunk)
                self.share = done / self._size
                yield chunk

    def _lines(self) -> Iterator[str]:
        done = 0
        with self._path.open("rb") as file:
            for line in file:
                done += len(line)
                self.share = done / self._size
                yield line.decode(errors="replace")

    def _read_gryag(self, rows: Iterator[TableRow]) -> Iterator[Imported]:
        memory = GryagMemory(bot_id=self._bot_id, chats=self._chats, now=datetime.now(UTC))
        messages = GryagMessages(bot_id=self._bot_id, agent=self._agent, chats=self._chats)
        for table, of_table in groupby(rows, key=lambda found: found[0]):
            if table == TABLE:
                yield from messages.read(row for _, row in of_table)
            else:
                yield from (memory.read(table, row) for _, row in of_table)

    def _read_sqlite(self) -> Iterator[Imported]:
        from tertulia.store.foreign import ForeignDatabase

        with ForeignDatabase(self._path) as database:
            if not is_gryag(database.columns(TABLE)):
                raise InvalidValue(f"{self._path} is a database, but not one of gryag: its messages look otherwise")
            yield from self._read_gryag(self._rows(database))

    def _rows(self, database: "ForeignDatabase") -> Iterator[TableRow]:
        for self.share, row in database.rows(TABLE, without="embedding"):
            yield TABLE, row
        for table in MEMORY_TABLES:
            if database.columns(table):
                yield from ((table, row) for _, row in database.rows(table, without="embedding"))


def read_copy(lines: Iterable[str]) -> Iterator[TableRow]:
    """Yield the rows of gryag's tables in a dump of PostgreSQL as text, each with the name of its table."""
    has_messages = False
    table, columns = "", list[str]()
    for line in lines:
        if not columns:
            if (found := _COPY.fullmatch(line)) and found[1] in (TABLE, *MEMORY_TABLES):
                table, columns = found[1], [name.strip().strip('"') for name in found[2].split(",")]
                has_messages = has_messages or table == TABLE
                if table == TABLE and not is_gryag(columns):
                    raise InvalidValue("the dump is not one of gryag: its messages look otherwise")
        elif line.rstrip("\n") == "\\.":
            columns = []
        else:
            yield table, dict(zip(columns, map(_copied, line.rstrip("\n").split("\t")), strict=False))
    if not has_messages:
        raise InvalidValue(f"the dump has no rows of {TABLE}; make it with pg_dump --data-only")


def _copied(field: str) -> str | None:
    if field == "\\N":
        return None
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), field) if "\\" in field else field

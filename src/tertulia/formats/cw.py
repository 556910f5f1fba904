"""What cw-telegram-agent has stored: a dump of its MySQL database, made with mysqldump. Pure.

It has no messages there; they are in Telegram. Its memories, plans and summaries name no message as their source. What
its models said about stickers, animations, videos and sounds is read: a bot that sees the same file need not ask again.
It knows a file by the number of the document in Telegram; a bot knows it by `file_unique_id`, which is made of that
number. For photos it is made of more, which the database does not have.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from struct import pack

from tertulia.characters import is_blank
from tertulia.errors import InvalidValue
from tertulia.formats.imported import Imported, ImportedDescription, Skipped

MEDIA = "media_metadata"
REMEMBERED = ("memories", "curated_memories", "intentions", "plans", "summaries", "notes", "events")
NO_SOURCE = "memories, plans and summaries, which name no message as their source"
NO_ID = "descriptions of photos and other files that bots know by another id"
NOT_DESCRIBED = "media without a description"

_DOCUMENT = 2  # the kind of a file in a `file_unique_id`
_TABLE = re.compile(r"CREATE TABLE `(\w+)` \(")
_COLUMN = re.compile(r"  `(\w+)` ")
_INSERT = re.compile(r"INSERT INTO `(\w+)`(?: \(([^)]*)\))? VALUES ")
_VALUE = re.compile(r"(?:_binary )?'((?:[^'\\]|\\.|'')*)'|(NULL)|([^,()']+)", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}

Row = dict[str, str | None]


def read_dump(lines: Iterable[str]) -> Iterator[Imported]:
    """Yield the descriptions of a dump; what else it holds is counted."""
    found = False
    for table, row in read_rows(lines):
        if table == MEDIA:
            found = True
            yield _description(row)
        elif table in REMEMBERED:
            found = True
            yield Skipped(reason=NO_SOURCE)
    if not found:
        raise InvalidValue(
            f"the dump is not one of cw-telegram-agent: it has no rows of {MEDIA}, nor of {REMEMBERED[0]}"
        )


def read_rows(lines: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a dump of MySQL, each with the name of its table."""
    columns: dict[str, list[str]] = {}
    table = ""
    for line in lines:
        if begun := _TABLE.match(line):
            table = begun[1]
            columns[table] = []
        elif column := _COLUMN.match(line):
            columns.setdefault(table, []).append(column[1])
        elif insert := _INSERT.match(line):
            named = re.findall(r"`(\w+)`", insert[2] or "") or columns.get(insert[1], [])
            for values in _tuples(line, insert.end()):
                yield insert[1], dict(zip(named, values, strict=False))


def bots_unique_id(document: int) -> str:
    """Return the `file_unique_id` of a document: its kind and number, runs of zeros shortened, in base64."""
    packed = pack("<iq", _DOCUMENT, document)
    shortened = re.sub(rb"\x00+", lambda zeros: bytes((0, len(zeros[0]))), packed)
    return urlsafe_b64encode(shortened).decode().rstrip("=")


def _tuples(line: str, at: int) -> Iterator[list[str | None]]:
    """Yield the tuples of an INSERT statement: `(1,'a'),(2,NULL);`."""
    while at < len(line) and line[at] == "(":
        values: list[str | None] = []
        while line[at] != ")":
            found = _VALUE.match(line, at + 1)
            if found is None or found.end() >= len(line):
                raise InvalidValue("the dump ends within a row")
            values.append(None if found[2] else _unescaped(found[1]) if found[1] is not None else found[3])
            at = found.end()
        yield values
        at += 2 if line[at + 1 : at + 2] == "," else len(line)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)|''", lambda one: _ESCAPES.get(one[1], one[1]) if one[1] else "'", text, flags=re.DOTALL)


def _description(row: Row) -> Imported:
    words, number = row.get("description"), row.get("unique_id") or ""
    if not words or is_blank(words):
        return Skipped(reason=NOT_DESCRIBED)
    if row.get("kind") == "photo" or not number.isdecimal() or int(number) >= 2**63:
        return Skipped(reason=NO_ID)
    return ImportedDescription(unique_id=bots_unique_id(int(number)), words=words)

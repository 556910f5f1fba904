"""Copies all rows of a store to another one, of the same driver or another: for backups and `tertulia db move`.

A move copies the files of media too.

Tables go in the order in which they are made, so that what rows refer to is there already. Rows go in the order of
their keys, a page in one transaction: what a copy that was killed has done is what the target holds.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice, zip_longest
from pathlib import Path

from tertulia.errors import InvalidValue, StoreBroken, StoreRefused
from tertulia.store.database import Connection, Row, insert_into
from tertulia.store.media_folder import copy_folder, discard_copied, find_folder
from tertulia.store.migrations import MOVE_MARK, refuse_incomplete
from tertulia.store.opening import driver_of, open_alone
from tertulia.store.sqlite.connection import connect
from tertulia.store.sqlite.migrating import Table, migrate_file, tables
from tertulia.store_url import is_url, masked

Progress = Callable[[int, int], None]  # rows done, and all

_PAGE = 500


def count(database: Connection) -> int:
    """Count the rows of a store."""
    return sum(row[0] for table in tables() for row in database.all(f"SELECT count(*) FROM {table.name}"))


def begin_move(target: Connection, source: str) -> None:
    """Mark a target as incomplete; refuse one with rows of anything else than the same move."""
    if target.columns(MOVE_MARK):
        begun = target.one(f"SELECT source FROM {MOVE_MARK}")
        if begun and begun[0] != source:
            raise StoreRefused(f"a move of another store to it has not ended: {begun[0]}")
        return
    if count(target):
        raise StoreRefused("there is something in it; a store moves to an empty one")
    target.begin()
    target.define(f"CREATE TABLE {MOVE_MARK} (id INTEGER PRIMARY KEY CHECK (id = 1), source TEXT NOT NULL)")
    target.run(f"INSERT INTO {MOVE_MARK} (id, source) VALUES (1, :source)", source=source)
    target.commit()


def end_move(target: Connection) -> None:
    """Take the mark away."""
    target.begin()
    target.define(f"DROP TABLE {MOVE_MARK}")
    target.commit()


def copy_rows(source: Connection, target: Connection, progress: Progress = lambda done, total: None) -> None:
    """Copy what the target lacks. The source is within a transaction that reads, or nobody writes to it."""
    done, total = count(target), count(source)
    for table in tables():
        for page in _pages(table, source, target):
            target.begin()
            target.many(
                insert_into(table.name, *table.columns), [dict(zip(table.columns, row, strict=True)) for row in page]
            )
            target.commit()
            done += len(page)
            progress(min(done, total), total)
    target.begin()
    target.set_sequences(source.sequences())
    target.commit()


def copy_to_file(source: Connection, path: Path) -> None:
    """Copy all rows of one state into an empty file."""
    with closing(connect(str(path))) as target:
        migrate_file(target)
        copy_rows(source, target)


def check_rows(source: Connection, target: Connection) -> None:
    """Compare all rows; raise `StoreBroken` at the first that is another one."""
    for table in tables():
        for number, pair in enumerate(zip_longest(source.each(table.select()), target.each(table.select())), 1):
            if pair[0] != pair[1]:
                raise StoreBroken(
                    f"row {number} of {table.name} is not the same on both sides; "
                    "if FROM was used meanwhile, empty TO and move again"
                )


def _pages(table: Table, source: Connection, target: Connection) -> Iterator[list[Row]]:
    """Yield the rows that the target lacks."""
    newest = ", ".join(f"{column} DESC" for column in table.key)
    last = target.one(f"SELECT {', '.join(table.key)} FROM {table.name} ORDER BY {newest} LIMIT 1")
    after = {f"k{number}": value for number, value in enumerate(last or ())}
    rows_left = iter(source.each(table.select(after=bool(last)), **after))
    while page := list(islice(rows_left, _PAGE)):
        yield page


def move_store(source: str, target: str, progress: Progress = lambda done, total: None) -> int:
    """Copy a store to an empty one, and compare all rows; return their number. No bot may have either open.

    The source is not changed. A move that was killed goes on when it is run again.
    """
    named = masked(source) if is_url(source) else os.path.realpath(source)
    if named == (masked(target) if is_url(target) else os.path.realpath(target)):
        raise InvalidValue(f"{masked(source)} is both the source and the target")
    from_, to = driver_of(source), driver_of(target)
    with open_alone(from_, new=False) as old, open_alone(to, new=True) as new:
        try:
            with from_.translating():
                refuse_incomplete(old)
            with to.translating():
                begin_move(new, named)
            old.begin_reading()
            copy_rows(old, new, progress)
            new.begin_reading()
            check_rows(old, new)
            moved = count(new)
            new.undo()
            with closing(find_folder(old, from_.files)) as folder:
                discard_copied(new, to.files)
                if folder.exists:
                    copy_folder(new, Path(to.files), folder)
            end_move(new)
            return moved
        except (*old.errors, *new.errors) as error:
            side = new if isinstance(error, new.errors) else old
            raise side.translate(error) from error
        finally:
            old.undo()
            new.undo()

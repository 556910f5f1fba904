"""What was said before a window of a place begins, in short: each is stored once, and stays as it is.

A row goes when something in it is taken back; then it is made anew.
"""

from palaver.memory.episodes import Mark, WindowPast
from palaver.messages import Place
from palaver.store.episodes import forgotten_before, has_changed
from palaver.store.hearing import with_blocked
from palaver.store.people import find_place
from palaver.store.sqlite import SEQUENCE, Database
from palaver.store.values import WORDS, clean, dumps
from palaver.store.writer import Owner

KEPT = 1_000  # messages after which the past of an older window is removed

TABLES = (
    f"""CREATE TABLE window_pasts (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        since INTEGER NOT NULL,  -- the number of the message with which the conversation began
        start INTEGER NOT NULL,  -- that of the first message in the window
        text TEXT NOT NULL,
        people TEXT NOT NULL,  -- JSON: the ids of those whose words it is made of
        UNIQUE (place, since, start)
    )""",
)


class WindowPasts:
    """`memory.episodes.WindowPasts` in SQL."""

    def __init__(self, writer: Owner, reader: Owner) -> None:
        self._writer = writer
        self._reader = reader

    async def find(self, place: Place, since: int, start: int) -> WindowPast | None:
        return await self._reader.run(lambda database: _find(database, place, since, start))

    async def add(self, place: Place, past: WindowPast, *, seen: Mark) -> WindowPast:
        return await self._writer.run(lambda database: _add(database, place, past, seen))


def remove_containing(database: Database, place: int, number: int) -> None:
    """Remove the pasts that tell of a message."""
    database.execute("DELETE FROM window_pasts WHERE place = ? AND start > ?", (place, number))


def _find(database: Database, place: Place, since: int, start: int) -> WindowPast | None:
    select = f"""SELECT w.text, w.people, {with_blocked("w.people")} FROM window_pasts w
        JOIN places p ON p.id = w.place WHERE w.place = ? AND w.since = ? AND w.start = ?"""  # noqa: S608
    row = database.execute(select, (find_place(database, place), since, start)).fetchone()
    if row is None:
        return None
    text, people, blocked = row
    return WindowPast(since=since, start=start, text="" if blocked else text, people=WORDS.loads(people))


def _add(database: Database, place: Place, past: WindowPast, seen: Mark) -> WindowPast:
    """Store the past of a window, unless there is one; nothing is told of what has changed since it was made."""
    empty = WindowPast(since=past.since, start=past.start)
    row = find_place(database, place)
    if row is None or row != seen.place or has_changed(database, seen, (0, seen.count)):  # forgotten, perhaps
        return empty
    stored = _find(database, place, past.since, past.start)
    if stored is not None:
        return stored
    forgotten = forgotten_before(database, row)
    if forgotten and seen.read <= forgotten:
        past = empty
    insert = "INSERT INTO window_pasts (place, since, start, text, people) VALUES (?, ?, ?, ?, ?)"
    database.execute(insert, (row, past.since, past.start, clean(past.text), dumps(past.people)))
    database.execute("DELETE FROM window_pasts WHERE place = ? AND start < ?", (row, past.start - KEPT))
    return past

"""Summaries of people for each place, and of what precedes a window of messages."""

from collections.abc import Sequence
from datetime import datetime

from palaver.memory.episodes import EpisodeCursor, WindowPast
from palaver.memory.facts import Subject, Summary
from palaver.messages import Place
from palaver.store.encoding import STRINGS, clean, dumps, validate
from palaver.store.episodes import earliest_visible
from palaver.store.identities import find_place, upsert_author, upsert_place
from palaver.store.message_rows import has_changed
from palaver.store.sqlite.connection import Database
from palaver.store.sqlite.writer import Repository
from palaver.store.visibility import ALL_SOURCES_BLOCKED, SOURCES, find_subject, has_blocked
from palaver.timezones import utc


def read_summary(database: Database, subject: Subject, place: Place, now: datetime) -> Summary | None:
    select = f"""SELECT text, facts, digest, made_at FROM summaries s WHERE about = ? AND place = ? AND direct = ?
        AND about NOT IN (SELECT author FROM blocked_authors) AND NOT EXISTS (
            SELECT 1 FROM facts f WHERE f.about = s.about AND f.superseded_by IS NULL
            AND f.valid_until > s.made_at AND f.valid_until <= ?  -- it has ceased to hold since
        ) AND NOT EXISTS (
            SELECT 1 FROM facts f JOIN {SOURCES} JOIN blocked_authors b ON b.author = n.author
            WHERE c.fact = f.id AND f.about = s.about AND b.at >= s.made_at
        )"""
    key = (find_subject(database, subject), find_place(database, place), int(place.kind == "direct"))
    row = database.execute(select, (*key, now.isoformat())).fetchone()
    if row is None:
        return None
    text, facts, digest, made_at = row
    made = datetime.fromisoformat(made_at)
    return validate(Summary(subject=subject, place=place, text=text, facts=facts, digest=digest, made_at=made))


def upsert_summary(database: Database, summary: Summary, made_of: Sequence[str]) -> None:
    """Store a summary, unless a fact it was made of is gone, superseded or no longer visible."""
    select = f"SELECT 1 FROM facts f WHERE fact_id = ? AND superseded_by IS NULL AND NOT {ALL_SOURCES_BLOCKED}"
    if any(database.execute(select, (clean(fact_id),)).fetchone() is None for fact_id in made_of):
        return
    upsert = """INSERT INTO summaries (about, place, direct, text, facts, digest, made_at) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (about, place, direct) DO UPDATE
        SET text = excluded.text, facts = excluded.facts, digest = excluded.digest, made_at = excluded.made_at"""
    author = upsert_author(database, summary.subject.platform, summary.subject.id)
    values = (clean(summary.text), summary.facts, clean(summary.digest), utc(summary.made_at).isoformat())
    direct = int(summary.place.kind == "direct")
    database.execute(upsert, (author, upsert_place(database, summary.place), direct, *values))


RETENTION = 1_000  # messages after which the summary of an older window is removed


class SqlWindowPasts(Repository):
    """Implements `memory.episodes.WindowPasts`."""

    async def find(self, place: Place, since: int, start: int) -> WindowPast | None:
        return await self._reader.run(lambda database: _find(database, place, since, start))

    async def add(self, place: Place, past: WindowPast, *, seen: EpisodeCursor) -> WindowPast:
        return await self._writer.run(lambda database: _add(database, place, past, seen))


def remove_containing(database: Database, place: int, number: int) -> None:
    """Remove the summaries of windows that contain a message."""
    database.execute("DELETE FROM window_pasts WHERE place = ? AND start > ?", (place, number))


def _find(database: Database, place: Place, since: int, start: int) -> WindowPast | None:
    select = f"""SELECT w.text, w.people, {has_blocked("w.people")} FROM window_pasts w
        JOIN places p ON p.id = w.place WHERE w.place = ? AND w.since = ? AND w.start = ?"""
    row = database.execute(select, (find_place(database, place), since, start)).fetchone()
    if row is None:
        return None
    text, people, blocked = row
    return WindowPast(since=since, start=start, text="" if blocked else text, people=STRINGS.loads(people))


def _add(database: Database, place: Place, past: WindowPast, seen: EpisodeCursor) -> WindowPast:
    """Store the summary before a window if there is none; an empty one if its messages have changed since."""
    empty = WindowPast(since=past.since, start=past.start)
    row = find_place(database, place)
    if (
        row is None or row != seen.place or has_changed(database, row, seen.changes, (0, seen.count))
    ):  # forgotten, perhaps
        return empty
    stored = _find(database, place, past.since, past.start)
    if stored is not None:
        return stored
    forgotten = earliest_visible(database, row)
    if forgotten and seen.read <= forgotten:
        past = empty
    insert = "INSERT INTO window_pasts (place, since, start, text, people) VALUES (?, ?, ?, ?, ?)"
    database.execute(insert, (row, past.since, past.start, clean(past.text), dumps(past.people)))
    database.execute("DELETE FROM window_pasts WHERE place = ? AND start < ?", (row, past.start - RETENTION))
    return past

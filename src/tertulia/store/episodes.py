"""Episodes of each place, and the summaries of what precedes a window of messages.

Forgotten history is an episode without messages: no earlier episode is created again.
"""

from collections.abc import Sequence
from typing import Any

from tertulia.memory.values import Episode, EpisodeCursor, WindowPast
from tertulia.messages import Message, Place
from tertulia.store.cursors import set_cursor
from tertulia.store.encoding import PLACE, STRINGS, clean, dumps, format_time, parse_time, validate
from tertulia.store.fact_rows import has_blocked
from tertulia.store.identities import (
    IdentityCache,
    conversation_start,
    find_place,
    place_key,
    upsert_title,
)
from tertulia.store.message_rows import has_changed
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Repository

PAST_RETENTION = 1_000  # messages after which the summary of an older window is removed
MAX_EPISODES = 1_000  # episodes of a place that are looked through, the newest

_COLUMNS = """e.title, e.episode_id, e.start, e.stop, e.began_at, e.ended_at, e.topic, e.summary, e.people, e.tags,
    e.importance"""
_BLOCKED = has_blocked("e.people")
_FROM = "FROM episodes e JOIN titles t ON t.id = e.title JOIN places p ON p.id = e.place"
_IS_DIRECT = "json_extract(t.body, '$.kind') = 'direct'"


class SqlEpisodes(Repository):
    """Implements `memory.values.Episodes`."""

    async def add(self, episode: Episode, *, seen: EpisodeCursor) -> bool:
        return await self._writer.run(lambda database: _add(database, episode, seen))

    async def cursor(self, place: Place) -> EpisodeCursor | None:
        return await self._reader.run(lambda database: _read_cursor(database, place))

    async def places(self) -> Sequence[Place]:
        return await self._reader.run(_places)

    async def missing_ranges(self, place: Place) -> Sequence[tuple[int, int]]:
        return await self._reader.run(lambda database: _missing_ranges(database, place))

    async def listed(self, place: Place) -> Sequence[Episode]:
        return await self._reader.run(lambda database: _list(database, place, "p.place_key = ?", place_key(place)))

    async def visible_to(self, target: Message) -> Sequence[Episode]:
        place = target.place
        if place.kind != "direct":
            return await self.listed(place)
        where, asked = "p.platform = ? AND p.place_id = ?", (clean(place.platform), place.id)  # in any thread
        return await self._reader.run(lambda database: _list(database, place, where, *asked))


def _add(database: Database, episode: Episode, seen: EpisodeCursor) -> bool:
    if not _is_current(database, episode, seen):
        return False
    insert_episode(database, seen.place, episode)
    if episode.stop > seen.read:
        set_cursor(database, episode.place, episode.stop, "episodes")
    return True


def _is_current(database: Database, episode: Episode, seen: EpisodeCursor) -> bool:
    """Return whether the cursor of the place is unchanged, and no message of the episode has changed since it
    was read.
    """
    now = _read_cursor(database, episode.place)
    if now is None or (now.place, now.read) != (seen.place, seen.read):
        return False
    if episode.start < earliest_visible(database, seen.place):
        return False
    return not has_changed(database, seen.place, seen.changes, (episode.start, episode.stop))


def forget_direct_chats(database: Database, author: int) -> None:
    """Remove the episodes of a person's direct chats, and mark all messages there as read."""
    select = f"""SELECT m.place, max(m.number) FROM messages m JOIN titles t ON t.id = m.title
        WHERE {_IS_DIRECT} AND m.place IN (
            SELECT o.place FROM messages o JOIN names n ON n.id = o.name WHERE n.author = ?
        ) GROUP BY m.place"""
    forgotten = """INSERT INTO episodes
        (episode_id, place, title, start, stop, topic, summary, importance, people, tags)
        SELECT 'forgotten ' || place, place, title, number + 1, number + 1, '', '', 0, '[]', '[]' FROM messages
        WHERE place = ? AND number = ?
        ON CONFLICT (episode_id) DO UPDATE SET start = excluded.start, stop = excluded.stop"""
    read = """INSERT INTO reading_cursors (place, facts, episodes) VALUES (?, ?, ?) ON CONFLICT (place)
        DO UPDATE SET facts = max(facts, excluded.facts), episodes = max(episodes, excluded.episodes)"""
    for place, last in database.execute(select, (author,)).fetchall():
        database.execute("DELETE FROM episodes WHERE place = ? AND start <= ?", (place, last))
        database.execute("DELETE FROM window_pasts WHERE place = ?", (place,))
        database.execute(forgotten, (place, last))
        database.execute(read, (place, last + 1, last + 1))
        database.execute("UPDATE messages SET stale = 0 WHERE place = ? AND number <= ? AND stale = 1", (place, last))


def remove_containing(database: Database, place: int, number: int) -> None:
    """Remove the episodes and window summaries that contain a message; they are created again."""
    remove_pasts = "DELETE FROM window_pasts WHERE place = ? AND start > ?"
    database.execute(remove_pasts, (place, number))
    delete = "DELETE FROM episodes WHERE place = ? AND start <= ? AND stop > ? RETURNING start"
    for (start,) in database.execute(delete, (place, number, number)).fetchall():
        database.execute(remove_pasts, (place, start))
        later = database.execute("SELECT 1 FROM episodes WHERE place = ? AND start > ?", (place, start)).fetchone()
        if not later:
            database.execute("UPDATE reading_cursors SET episodes = min(episodes, ?) WHERE place = ?", (start, place))


def remove_spanning(database: Database, place: int, first: int) -> None:
    """Remove the episode that contains number *first*, where the conversation now begins."""
    delete = "DELETE FROM episodes WHERE place = ? AND start < ? AND stop > ?"
    database.execute(delete, (place, first, first))


def remove_without(database: Database, author: int) -> None:
    """Remove episodes that an author took part in but is missing from, so that they are created again."""
    delete = """DELETE FROM {table} WHERE EXISTS (
            SELECT 1 FROM messages m JOIN names n ON n.id = m.name WHERE n.author = :author AND m.deleted = 0
            AND m.place = {table}.place AND {between}
        ) AND NOT EXISTS (
            SELECT 1 FROM authors a JOIN json_each({table}.people) j ON j.value = a.author_id WHERE a.id = :author
        )"""
    ranges = {"episodes": "m.number >= start AND m.number < stop", "window_pasts": "m.number < start"}
    for table, between in ranges.items():
        database.execute(delete.format(table=table, between=between), {"author": author})


def earliest_visible(database: Database, place: int) -> int:
    """Return the first number that episodes may begin with: earlier messages were forgotten or cleared."""
    select = """SELECT max(p.beginning, coalesce((
            SELECT max(e.start) FROM episodes e WHERE e.place = p.id AND e.start = e.stop
        ), 0)) FROM places p WHERE p.id = ?"""
    return database.execute(select, (place,)).fetchone()[0] or 0


def insert_episode(database: Database, place: int, episode: Episode) -> None:
    """Store an episode in the row of its place; one with its id is replaced."""
    values: dict[str, Any] = {
        "episode_id": clean(episode.id),
        "place": place,
        "title": upsert_title(database, episode.place, place),
        "start": episode.start,
        "stop": episode.stop,
        "began_at": format_time(episode.began_at),
        "ended_at": format_time(episode.ended_at),
        "topic": clean(episode.topic),
        "summary": clean(episode.summary),
        "importance": episode.importance,
        "people": dumps(episode.people),
        "tags": dumps(tuple(map(clean, episode.tags))),
    }
    again = ", ".join(f"{name} = excluded.{name}" for name in values if name != "episode_id")
    insert = f"""INSERT INTO episodes ({", ".join(values)}) VALUES ({", ".join("?" * len(values))})
        ON CONFLICT (episode_id) DO UPDATE SET {again}"""
    database.execute(insert, tuple(values.values()))


def _read_cursor(database: Database, place: Place) -> EpisodeCursor | None:
    select = """SELECT p.id, max(coalesce(l.episodes, 0), p.beginning), p.messages, p.changes
        FROM places p LEFT JOIN reading_cursors l ON l.place = p.id WHERE p.place_key = ?"""
    row = database.execute(select, (place_key(place),)).fetchone()
    return None if row is None else EpisodeCursor(place=row[0], read=row[1], count=row[2], changes=row[3])


def _places(database: Database) -> list[Place]:
    select = f"""SELECT t.body FROM places p LEFT JOIN reading_cursors l ON l.place = p.id
        JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
        WHERE p.messages > coalesce(l.episodes, 0) OR EXISTS (
            SELECT 1 FROM episodes e WHERE e.place = p.id AND {_BLOCKED}
        ) ORDER BY p.id"""
    return [PLACE.loads(body) for (body,) in database.execute(select)]


def _missing_ranges(database: Database, place: Place) -> list[tuple[int, int]]:
    found = _read_cursor(database, place)
    if found is None:
        return []
    select = f"""SELECT e.start, e.stop FROM episodes e JOIN places p ON p.id = e.place
        WHERE e.place = ? AND NOT {_BLOCKED} ORDER BY e.start"""
    episodes = database.execute(select, (found.place,)).fetchall()
    reached = earliest_visible(database, found.place)
    holes: list[tuple[int, int]] = []
    for start, stop in [*episodes, (found.read, found.read)]:
        if start > reached:
            holes.append((reached, min(start, found.read)))
        reached = max(reached, stop)
    return [hole for hole in holes if hole[0] < hole[1]]


def _list(database: Database, place: Place, where: str, *asked: str) -> list[Episode]:
    """Episodes that match *where* and are of the same kind of chat, direct or not, without blocked people."""
    select = f"""SELECT {_COLUMNS} {_FROM} WHERE {where} AND ({_IS_DIRECT}) = ? AND e.stop > e.start
        AND NOT {_BLOCKED} ORDER BY e.id DESC LIMIT ?"""
    identities = IdentityCache()
    rows = database.execute(select, (*asked, place.kind == "direct", MAX_EPISODES)).fetchall()
    episodes = [_episode(identities.place(database, title), *row) for title, *row in rows]
    firsts = {one: conversation_start(database, one) for one in {episode.place for episode in episodes}}
    found = [episode for episode in episodes if episode.start >= firsts[episode.place]]
    return sorted(found, key=lambda episode: (episode.place.thread or "", episode.start))


def _episode(place: Place, name: str, start: int, stop: int, *rest: Any) -> Episode:
    began_at, ended_at, topic, summary, people, tags, importance = rest
    return validate(
        Episode(
            id=name,
            place=place,
            start=start,
            stop=stop,
            began_at=parse_time(began_at),
            ended_at=parse_time(ended_at),
            topic=topic,
            summary=summary,
            people=STRINGS.loads(people),
            tags=STRINGS.loads(tags),
            importance=importance,
        )
    )


class SqlWindowPasts(Repository):
    """Implements `memory.values.WindowPasts`."""

    async def find(self, place: Place, since: int, start: int) -> WindowPast | None:
        return await self._reader.run(lambda database: _find_past(database, place, since, start))

    async def add(self, place: Place, past: WindowPast, *, seen: EpisodeCursor) -> WindowPast:
        return await self._writer.run(lambda database: _add_past(database, place, past, seen))


def _find_past(database: Database, place: Place, since: int, start: int) -> WindowPast | None:
    select = f"""SELECT w.text, w.people, {has_blocked("w.people")} FROM window_pasts w
        JOIN places p ON p.id = w.place WHERE w.place = ? AND w.since = ? AND w.start = ?"""
    row = database.execute(select, (find_place(database, place), since, start)).fetchone()
    if row is None:
        return None
    text, people, blocked = row
    return WindowPast(since=since, start=start, text="" if blocked else text, people=STRINGS.loads(people))


def _add_past(database: Database, place: Place, past: WindowPast, seen: EpisodeCursor) -> WindowPast:
    """Store the summary before a window if there is none; an empty one if its messages have changed since."""
    empty = WindowPast(since=past.since, start=past.start)
    row = find_place(database, place)
    if row is None or row != seen.place:  # forgotten, perhaps
        return empty
    if has_changed(database, row, seen.changes, (0, seen.count)):
        return empty
    stored = _find_past(database, place, past.since, past.start)
    if stored is not None:
        return stored
    forgotten = earliest_visible(database, row)
    if forgotten and seen.read <= forgotten:
        past = empty
    insert = "INSERT INTO window_pasts (place, since, start, text, people) VALUES (?, ?, ?, ?, ?)"
    database.execute(insert, (row, past.since, past.start, clean(past.text), dumps(past.people)))
    database.execute("DELETE FROM window_pasts WHERE place = ? AND start < ?", (row, past.start - PAST_RETENTION))
    return past

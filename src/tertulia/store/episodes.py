"""Episodes of each place, and the summaries of what precedes a window of messages.

Forgotten history is an episode without messages: no earlier episode is created again.
"""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from tertulia.memory.values import Episode, EpisodeCursor, WindowPast
from tertulia.messages import Message, Place
from tertulia.seen_by import SeenBy
from tertulia.store.cursors import set_cursor
from tertulia.store.database import Database
from tertulia.store.encoding import STRINGS, clean
from tertulia.store.identities import (
    conversation_start,
    find_place,
    read_counts,
    select_places,
    upsert_author,
    upsert_title,
)
from tertulia.store.message_rows import STAYED, has_changed
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing

PAST_RETENTION = 1_000  # messages after which the summary of an older window is removed
_PASTS = Rows(WindowPast, "window_pasts", "since start text people agent")
MAX_EPISODES = 1_000  # episodes of a place that are looked through, the newest

_EPISODES = Rows(
    Episode,
    "episodes e",
    "id=episode_id start stop began_at ended_at topic summary importance people tags",
    place="t.body",
)

# whether a blocked author took part in the episode *e*
_BLOCKED = """EXISTS (SELECT 1 FROM episode_people w JOIN blocked_authors b ON b.author = w.author
    WHERE w.episode = e.id)"""

# Episodes with messages and without blocked people; which of them follows.
_VISIBLE = f"""JOIN titles t ON t.id = e.title JOIN places p ON p.id = e.place
    WHERE e.stop > e.start AND NOT {_BLOCKED} AND """

# The places with messages that are in no episode, or with episodes of somebody who is blocked now.
_PLACES = f"""SELECT t.body FROM places p LEFT JOIN reading_cursors l ON l.place = p.id
    JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
    WHERE p.messages > coalesce(l.episodes, 0)
        OR EXISTS (SELECT 1 FROM episodes e WHERE e.place = p.id AND {_BLOCKED})
    ORDER BY p.id"""

# The last message of each direct chat of a person.
_DIRECT_CHATS = """SELECT m.place, max(m.number) FROM messages m JOIN titles t ON t.id = m.title
    WHERE t.direct = 1 AND m.place IN (
        SELECT o.place FROM messages o JOIN names n ON n.id = o.name WHERE n.author = :author
    ) GROUP BY m.place"""

# The episode without messages that stands for a forgotten history, up to its last message.
_INSERT_FORGOTTEN = """INSERT INTO episodes
    (episode_id, place, title, start, stop, topic, summary, importance, people, tags)
    SELECT :episode_id, place, title, number + 1, number + 1, '', '', 0, '[]', '[]' FROM messages
    WHERE place = :place AND number = :last
    ON CONFLICT (episode_id) DO UPDATE SET start = excluded.start, stop = excluded.stop"""

# A place that is read up to its last message, for facts and for episodes.
_MARK_ALL_READ = """INSERT INTO reading_cursors (place, facts, episodes) VALUES (:place, :last + 1, :last + 1)
    ON CONFLICT (place) DO UPDATE SET
        facts = CASE WHEN reading_cursors.facts > excluded.facts THEN reading_cursors.facts ELSE excluded.facts END,
        episodes = CASE WHEN reading_cursors.episodes > excluded.episodes THEN reading_cursors.episodes
            ELSE excluded.episodes END"""

# The first and the last of some messages in each of their places.
_RANGES = "SELECT place, min(number) FROM messages WHERE id IN (:messages) GROUP BY place"

# Episodes with one of some messages.
_REMOVE_CONTAINING = """DELETE FROM episodes WHERE id IN (
        SELECT e.id FROM messages m JOIN episodes e ON e.place = m.place AND e.start <= m.number AND e.stop > m.number
        WHERE m.id IN (:messages)
    ) RETURNING place, start"""

# The episodes of a place that are to be created again from a message on, unless there are later ones.
_READ_AGAIN = """UPDATE reading_cursors SET episodes = :start WHERE place = :place AND episodes > :start
    AND NOT EXISTS (SELECT 1 FROM episodes e WHERE e.place = :place AND e.start > :start)"""

# The episodes that an author took part in but is missing from.
_REMOVE_WITHOUT = """DELETE FROM episodes WHERE id IN (
        SELECT e.id FROM messages m JOIN names n ON n.id = m.name
        JOIN episodes e ON e.place = m.place AND e.start <= m.number AND e.stop > m.number
        WHERE n.author = :author AND m.deleted = 0
    ) AND id NOT IN (SELECT episode FROM episode_people WHERE author = :author)"""

# The summaries of the windows after messages of an author, with the id of the author.
_PASTS_OF = """SELECT w.id, w.people, a.author_id FROM window_pasts w JOIN authors a ON a.id = :author
    WHERE EXISTS (SELECT 1 FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = w.place AND m.number < w.start AND m.deleted = 0 AND n.author = :author)"""


class SqlEpisodes(Repository):
    """Implements `memory.values.Episodes`."""

    @writing
    def add(self, database: Database, episode: Episode, *, seen: EpisodeCursor) -> bool:
        if not _is_current(database, episode, seen):
            return False
        insert_episode(database, seen.place, episode)
        if episode.stop > seen.read:
            set_cursor(database, episode.place, episode.stop, "episodes")
        return True

    @reading
    def cursor(self, database: Database, place: Place) -> EpisodeCursor | None:
        return _read_cursor(database, place)

    @reading
    def places(self, database: Database) -> Sequence[Place]:
        return select_places(database, _PLACES)

    @reading
    def missing_ranges(self, database: Database, place: Place) -> Sequence[tuple[int, int]]:
        found = _read_cursor(database, place)
        if found is None:
            return []
        select = f"SELECT e.start, e.stop FROM episodes e WHERE e.place = :place AND NOT {_BLOCKED} ORDER BY e.start"
        episodes = database.all(select, place=found.place)
        reached = earliest_visible(database, found.place)
        holes: list[tuple[int, int]] = []
        for start, stop in [*episodes, (found.read, found.read)]:
            if start > reached:
                holes.append((reached, min(start, found.read)))
            reached = max(reached, stop)
        return [hole for hole in holes if hole[0] < hole[1]]

    @reading
    def listed(self, database: Database, place: Place, *, seen_by: SeenBy | None = None) -> Sequence[Episode]:
        return _list(database, place, "p.id = :row", seen_by, row=find_place(database, place))

    async def visible_to(self, target: Message, *, seen_by: SeenBy | None = None) -> Sequence[Episode]:
        place = target.place
        if place.kind != "direct":
            return await self.listed(place, seen_by=seen_by)
        where = "p.platform = :platform AND p.place_id = :place_id"  # in any thread
        named = {"platform": clean(place.platform), "place_id": place.id}
        return await self._reader.run(lambda database: _list(database, place, where, seen_by, **named))


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
    found = database.all(_DIRECT_CHATS, author=author)
    chats = [{"place": place, "last": last, "episode_id": f"forgotten {place}"} for place, last in found]
    for statement in (
        "DELETE FROM episodes WHERE place = :place AND start <= :last",
        "DELETE FROM window_pasts WHERE place = :place",
        _INSERT_FORGOTTEN,
        _MARK_ALL_READ,
        "UPDATE messages SET stale = 0 WHERE place = :place AND number <= :last AND stale = 1",
    ):
        database.many(statement, chats)


def remove_containing(database: Database, messages: Collection[int]) -> None:
    """Remove the episodes and window summaries that contain one of these messages; they are created again."""
    first = dict[int, int](database.all(_RANGES, messages=messages))
    removed = database.all(_REMOVE_CONTAINING, messages=messages)
    for place, start in removed:
        first[place] = min(start, first[place])
    remove_pasts = "DELETE FROM window_pasts WHERE place = :place AND start > :first"
    database.many(remove_pasts, [{"place": place, "first": number} for place, number in first.items()])
    database.many(_READ_AGAIN, [{"place": place, "start": start} for place, start in removed])


def remove_spanning(database: Database, place: int, first: int) -> None:
    """Remove the episode that contains number *first*, where the conversation now begins."""
    delete = "DELETE FROM episodes WHERE place = :place AND start < :first AND stop > :first"
    database.run(delete, place=place, first=first)


def remove_without(database: Database, author: int) -> None:
    """Remove episodes that an author took part in but is missing from, so that they are created again."""
    database.run(_REMOVE_WITHOUT, author=author)
    pasts = database.all(_PASTS_OF, author=author)
    gone = [row for row, people, author_id in pasts if author_id not in STRINGS.loads(people)]
    database.run("DELETE FROM window_pasts WHERE id IN (:gone)", gone=gone)


def hide(database: Database, episode_id: str) -> bool:
    """Hide an episode from all that models are shown, with the summaries it may be in; return whether there is one."""
    found = database.all(
        "UPDATE episodes SET hidden = 1 WHERE episode_id = :episode_id RETURNING place, start",
        episode_id=clean(episode_id),
    )
    for place, start in found:
        database.run("DELETE FROM window_pasts WHERE place = :place AND start > :start", place=place, start=start)
    return bool(found)


def earliest_visible(database: Database, place: int) -> int:
    """Return the first number that episodes may begin with: earlier messages were forgotten or cleared."""
    select = """SELECT p.beginning, coalesce(max(e.start), 0) FROM places p
        LEFT JOIN episodes e ON e.place = p.id AND e.start = e.stop WHERE p.id = :place GROUP BY p.beginning"""
    found = database.one(select, place=place)
    return max(found) if found else 0


def insert_episode(database: Database, place: int, episode: Episode) -> None:
    """Store an episode in the row of its place; one with its id is replaced."""
    title = upsert_title(database, episode.place, place)
    _EPISODES.upsert(
        database, "episode_id", replace(episode, tags=tuple(map(clean, episode.tags))), place=place, title=title
    )
    row = database.value("SELECT id FROM episodes WHERE episode_id = :name", name=clean(episode.id))
    service = episode.place.author_namespace
    people = {upsert_author(database, service, person) for person in episode.people}
    database.run("DELETE FROM episode_people WHERE episode = :row", row=row)
    insert = "INSERT INTO episode_people (episode, author) VALUES (:row, :author)"
    database.many(insert, [{"row": row, "author": author} for author in people])


def _read_cursor(database: Database, place: Place) -> EpisodeCursor | None:
    row = read_counts(database, place, "id, messages, changes, beginning")
    if row is None:
        return None
    place_row, count, changes, beginning = row
    read = database.value("SELECT episodes FROM reading_cursors WHERE place = :place", place=place_row) or 0
    return EpisodeCursor(place=place_row, read=max(read, beginning), count=count, changes=changes)


def _list(database: Database, place: Place, where: str, seen_by: SeenBy | None, **named: Any) -> list[Episode]:
    """Return the episodes that match *where*, without those of an earlier conversation, by thread and in order."""
    if seen_by and seen_by.is_limited_in(place):
        where += f" AND {STAYED.format('e.place', 'e.start', 'e.stop')}"
        named["agent"] = seen_by.agent
    same_kind = f"{where} AND e.hidden = 0 AND t.direct = :direct ORDER BY e.id DESC LIMIT :most"
    direct = int(place.kind == "direct")
    episodes = select_episodes(database, same_kind, direct=direct, most=MAX_EPISODES, **named)
    firsts = {one: conversation_start(database, one) for one in {episode.place for episode in episodes}}
    found = [episode for episode in episodes if episode.start >= firsts[episode.place]]
    return sorted(found, key=lambda episode: (episode.place.thread or "", episode.start))


def select_episodes(database: Database, which: str, **values: Any) -> list[Episode]:
    """Return the episodes that a condition selects; none with blocked people."""
    return _EPISODES.all(database, _VISIBLE + which, **values)


class SqlWindowPasts(Repository):
    """Implements `memory.values.WindowPasts`."""

    @reading
    def find(
        self, database: Database, place: Place, since: int, start: int, *, agent: str | None = None
    ) -> WindowPast | None:
        return _find_past(database, place, WindowPast(since=since, start=start, agent=agent))

    @writing
    def add(self, database: Database, place: Place, past: WindowPast, *, seen: EpisodeCursor) -> WindowPast:
        """Store the summary before a window if there is none; an empty one if its messages have changed since."""
        empty = WindowPast(since=past.since, start=past.start, agent=past.agent)
        row = find_place(database, place)
        if row is None or row != seen.place:  # forgotten, perhaps
            return empty
        if has_changed(database, row, seen.changes, (0, seen.count)):
            return empty
        stored = _find_past(database, place, past)
        if stored is not None:
            return stored
        forgotten = earliest_visible(database, row)
        if forgotten and seen.read <= forgotten:
            past = empty
        _PASTS.insert(database, past, place=row)
        old = "DELETE FROM window_pasts WHERE place = :place AND start < :oldest"
        database.run(old, place=row, oldest=past.start - PAST_RETENTION)
        return past


def _find_past(database: Database, place: Place, asked: WindowPast) -> WindowPast | None:
    """Return the stored past of a window."""
    row = find_place(database, place)
    which = "WHERE place = :place AND since = :since AND start = :start AND agent IS NOT DISTINCT FROM :agent"
    found = _PASTS.one(database, which, place=row, since=asked.since, start=asked.start, agent=asked.agent)
    blocked = """SELECT 1 FROM places p JOIN authors a ON a.platform = p.service
        JOIN blocked_authors b ON b.author = a.id WHERE p.id = :place AND a.author_id IN (:people)"""
    if found and database.one(blocked, place=row, people=found.people):
        return replace(found, text="")
    return found

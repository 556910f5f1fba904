"""The search index: messages are added in batches, changed ones indexed again, an inconsistent index built anew."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence

from tertulia.memory.retrieval.index import index_entry
from tertulia.memory.values import MAX_INDEXED_LENGTH, IndexBatch, IndexEntry, IndexProgress, MessageText
from tertulia.messages import Place
from tertulia.store.encoding import PLACE, clean, parse_time
from tertulia.store.identities import find_place
from tertulia.store.message_rows import description_of
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Repository

log = logging.getLogger(__name__)

_INCONSISTENT = """WITH astray (place) AS (
    SELECT m.place FROM messages m JOIN search_places p ON p.place = m.place AND m.number < p.indexed_to
        LEFT JOIN search_messages s ON s.place = m.place AND s.number = m.number
        WHERE (m.deleted OR m.hidden) = (s.number IS NOT NULL)
    UNION ALL SELECT s.place FROM search_messages s LEFT JOIN search_places p ON p.place = s.place
        LEFT JOIN messages m ON m.place = s.place AND m.number = s.number AND m.name = s.name
        WHERE m.id IS NULL OR s.number >= coalesce(p.indexed_to, 0)
    UNION ALL SELECT s.place FROM search_messages s WHERE s.length > 0 AND NOT EXISTS (
        SELECT 1 FROM search_terms w WHERE w.place = s.place AND w.number = s.number)
    UNION ALL SELECT w.place FROM search_terms w WHERE NOT EXISTS (
        SELECT 1 FROM search_messages s WHERE s.place = w.place AND s.number = w.number)
    UNION ALL SELECT s.place FROM search_progress e JOIN search_messages s
        ON s.place = e.place AND s.number < e.embedded_to WHERE NOT EXISTS (SELECT 1 FROM search_vectors v
            WHERE v.place = s.place AND v.embedder = e.embedder AND v.number = s.number)
    UNION ALL SELECT v.place FROM search_vectors v WHERE NOT EXISTS (
        SELECT 1 FROM search_messages s WHERE s.place = v.place AND s.number = v.number)
) SELECT place, count(*) FROM astray GROUP BY place ORDER BY place"""


def find_inconsistent(database: Database) -> dict[int, int]:
    """Return the places whose index has missing or extra rows, with their number."""
    return dict(database.execute(_INCONSISTENT).fetchall())


def clear_index(database: Database, places: Iterable[int]) -> None:
    """Remove the index of *places*, so that it is built again."""
    for place in places:
        for table in ("search_terms", "search_messages", "search_vectors", "search_progress"):
            database.execute(f"DELETE FROM {table} WHERE place = ?", (place,))
        database.execute("UPDATE search_places SET indexed_to = 0, edition = edition + 1 WHERE place = ?", (place,))


_SELECT_MESSAGES = f"""SELECT m.number, m.name, n.name, coalesce(m.sent_at, m.received_at),
    substr(m.text, 1, {MAX_INDEXED_LENGTH}), m.media, m.forwarded_from IS NOT NULL
    FROM messages m JOIN names n ON n.id = m.name"""
_UPSERT_PROGRESS = """INSERT INTO search_progress (place, embedder, embedded_to) VALUES (?, ?, ?)
    ON CONFLICT (place, embedder) DO UPDATE SET embedded_to = excluded.embedded_to"""


class SqlIndexWriter(Repository):
    """Implements `memory.values.IndexWriter`."""

    async def embedder(self) -> str:
        return await self._reader.run(chosen_embedder)

    async def choose(self, embedder: str) -> None:
        upsert = """INSERT INTO search_embedder (id, embedder) VALUES (1, ?)
            ON CONFLICT (id) DO UPDATE SET embedder = excluded.embedder"""
        await self._writer.run(lambda database: database.execute(upsert, (clean(embedder),)) and None)

    async def unread(self, embedder: str | None) -> Sequence[Place]:
        return await self._reader.run(lambda database: _unread(database, embedder))

    async def unindexed(self, place: Place, *, most: int) -> IndexBatch | None:
        return await self._reader.run(lambda database: _unindexed(database, place, most))

    async def add(self, stretch: IndexBatch, entries: Sequence[IndexEntry]) -> bool:
        return await self._writer.run(lambda database: _add(database, stretch, entries))

    async def unembedded(self, place: Place, embedder: str, *, most: int) -> IndexBatch | None:
        return await self._reader.run(lambda database: _unembedded(database, place, embedder, most))

    async def embed(self, stretch: IndexBatch, embedder: str, vectors: Mapping[int, bytes]) -> None:
        await self._writer.run(lambda database: _embed(database, stretch, embedder, vectors))

    async def drop(self, place: Place, *, but: str | None) -> None:
        await self._writer.run(lambda database: _drop(database, place, but))

    async def reset_gaps(self, embedder: str) -> None:
        if await self._reader.run(lambda database: database.execute(_GAPS, (embedder,)).fetchone()):
            await self._writer.run(lambda database: _reset_gaps(database, embedder))

    async def rebuild_broken(self) -> None:
        if places := await self._reader.run(find_inconsistent):
            await self._writer.run(lambda database: clear_index(database, places))

    async def progress(self, embedder: str | None) -> IndexProgress:
        return await self._reader.run(lambda database: _progress(database, embedder))


def reindex(database: Database, messages: Sequence[int]) -> None:
    """Update the index of changed messages that were indexed before."""
    for message in messages:
        _reindex(database, message)


def _reindex(database: Database, message: int) -> None:
    select = """SELECT m.place, m.number, m.deleted OR m.hidden FROM messages m
        JOIN search_places s ON s.place = m.place WHERE m.id = ? AND m.number < s.indexed_to"""
    row = database.execute(select, (message,)).fetchone()
    if row is None:
        return
    place, number, gone = row
    for table in ("search_terms", "search_messages", "search_vectors"):
        database.execute(f"DELETE FROM {table} WHERE place = ? AND number = ?", (place, number))
    database.execute("UPDATE search_places SET edition = edition + 1 WHERE place = ?", (place,))
    database.execute("UPDATE search_progress SET embedded_to = min(embedded_to, ?) WHERE place = ?", (number, place))
    if not gone:
        messages = _read_texts(database, f"{_SELECT_MESSAGES} WHERE m.id = ?", (message,))
        _insert(database, place, map(index_entry, messages))


def chosen_embedder(database: Database) -> str:
    """Return the name of the chosen embedder; empty for the default."""
    row = database.execute("SELECT embedder FROM search_embedder WHERE id = 1").fetchone()
    return row[0] if row else ""


def _unread(database: Database, embedder: str | None) -> list[Place]:
    lacking = "OR p.messages > coalesce(e.embedded_to, 0)" if embedder else ""
    select = f"""SELECT t.body FROM places p LEFT JOIN search_places s ON s.place = p.id
        LEFT JOIN search_progress e ON e.place = p.id AND e.embedder = ?
        JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
        WHERE p.messages > coalesce(s.indexed_to, 0) {lacking} OR EXISTS (
            SELECT 1 FROM search_progress o WHERE o.place = p.id AND o.embedder <> ?
        ) ORDER BY m.id DESC"""
    return [PLACE.loads(body) for (body,) in database.execute(select, (embedder, embedder or ""))]


def _unindexed(database: Database, place: Place, most: int) -> IndexBatch | None:
    select = """SELECT p.messages, coalesce(s.indexed_to, 0), coalesce(s.edition, 0) FROM places p
        LEFT JOIN search_places s ON s.place = p.id WHERE p.id = ?"""
    row = find_place(database, place)
    found = database.execute(select, (row,)).fetchone()
    if row is None or found is None or found[1] >= found[0]:
        return None
    count, start, edition = found
    stop = min(count, start + most)
    return IndexBatch(row=row, start=start, stop=stop, edition=edition, said=_texts_between(database, row, start, stop))


def _add(database: Database, stretch: IndexBatch, entries: Sequence[IndexEntry]) -> bool:
    known = "SELECT coalesce(s.indexed_to, 0) FROM places p LEFT JOIN search_places s ON s.place = p.id WHERE p.id = ?"
    stands = database.execute(known, (stretch.row,)).fetchone() == (stretch.start,)  # it may be forgotten meanwhile
    if not stands or _texts_between(database, stretch.row, stretch.start, stretch.stop) != stretch.said:
        return False
    _insert(database, stretch.row, entries)
    upsert = """INSERT INTO search_places (place, indexed_to) VALUES (?, ?)
        ON CONFLICT (place) DO UPDATE SET indexed_to = excluded.indexed_to"""
    database.execute(upsert, (stretch.row, stretch.stop))
    return True


def _insert(database: Database, place: int, entries: Iterable[IndexEntry]) -> None:
    messages: list[tuple[int, ...]] = []
    words: list[tuple[int, str, int, int]] = []
    for one in entries:
        messages.append((place, one.number, one.name, one.at, one.length, one.traits, one.first, one.last))
        words.extend((place, term, one.number, packed) for term, packed in one.words.items())
    words.sort()
    upsert = """INSERT INTO search_messages (place, number, name, at, length, traits, first, last)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
    database.executemany(upsert, messages)
    database.executemany("INSERT INTO search_terms (place, term, number, packed) VALUES (?, ?, ?, ?)", words)


def _unembedded(database: Database, place: Place, embedder: str, most: int) -> IndexBatch | None:
    row = find_place(database, place)
    select = """SELECT s.indexed_to, coalesce(e.embedded_to, 0), s.edition FROM search_places s
        LEFT JOIN search_progress e ON e.place = s.place AND e.embedder = ? WHERE s.place = ?"""
    found = database.execute(select, (embedder, row)).fetchone()
    if row is None or found is None or found[1] >= found[0]:
        return None
    stop, start, edition = found
    lacking = f"""{_SELECT_MESSAGES} JOIN search_messages s ON s.place = m.place AND s.number = m.number
        WHERE s.place = ? AND s.number >= ? AND s.number < ? AND NOT EXISTS (
            SELECT 1 FROM search_vectors v WHERE v.place = s.place AND v.embedder = ? AND v.number = s.number
        ) ORDER BY s.number LIMIT ?"""
    messages = _read_texts(database, lacking, (row, start, stop, embedder, most))
    return IndexBatch(
        row=row,
        start=start,
        stop=stop if len(messages) < most else messages[-1].number + 1,
        edition=edition,
        said=messages,
    )


def _embed(database: Database, stretch: IndexBatch, embedder: str, vectors: Mapping[int, bytes]) -> None:
    place = stretch.row
    _reset_on_new_length(database, place, embedder, vectors)
    edition = database.execute("SELECT edition FROM search_places WHERE place = ?", (place,)).fetchone()
    if edition is None:
        return  # forgotten meanwhile
    unchanged = edition == (stretch.edition,)
    said = stretch.said if unchanged else [one for one in stretch.said if _text(database, place, one.number) == one]
    upsert = """INSERT INTO search_vectors (place, embedder, number, vector)
        SELECT place, ?, number, ? FROM search_messages WHERE place = ? AND number = ?
        ON CONFLICT (place, embedder, number) DO UPDATE SET vector = excluded.vector"""
    database.executemany(upsert, [(embedder, vectors[one.number], place, one.number) for one in said])
    select = "SELECT embedded_to FROM search_progress WHERE place = ? AND embedder = ?"
    done = (database.execute(select, (place, embedder)).fetchone() or (0,))[0]
    if done == stretch.start:  # else something before it has changed, and is read again
        lacking = None if unchanged else _first_without_vector(database, place, embedder, stretch.stop)
        database.execute(_UPSERT_PROGRESS, (place, embedder, stretch.stop if lacking is None else lacking))


def _reset_on_new_length(database: Database, place: int, embedder: str, vectors: Mapping[int, bytes]) -> None:
    """Remove the vectors of a place if the embedder now makes vectors of another length."""
    vector_length = "SELECT length(vector) FROM search_vectors WHERE place = ? AND embedder = ? LIMIT 1"
    row = database.execute(vector_length, (place, embedder)).fetchone()
    if row is None or all(len(vector) == row[0] for vector in vectors.values()):
        return
    database.execute("DELETE FROM search_vectors WHERE place = ? AND embedder = ?", (place, embedder))
    database.execute(_UPSERT_PROGRESS, (place, embedder, 0))
    database.execute("UPDATE search_places SET edition = edition + 1 WHERE place = ?", (place,))


def _first_without_vector(database: Database, place: int, embedder: str, stop: int) -> int | None:
    select = """SELECT min(s.number) FROM search_messages s WHERE s.place = ? AND s.number < ? AND NOT EXISTS (
        SELECT 1 FROM search_vectors v WHERE v.place = s.place AND v.embedder = ? AND v.number = s.number)"""
    number: int | None = database.execute(select, (place, stop, embedder)).fetchone()[0]
    return number


_GAPS = """SELECT e.place, e.embedded_to FROM search_progress e WHERE e.embedder = ? AND (
    SELECT count(*) FROM search_messages s WHERE s.place = e.place AND s.number < e.embedded_to
) > (SELECT count(*) FROM search_vectors v WHERE v.place = e.place AND v.embedder = e.embedder
    AND v.number < e.embedded_to)"""  # counting takes a third of the time of looking for each


def _reset_gaps(database: Database, embedder: str) -> None:
    """Set back how far places are embedded if vectors are missing before that."""
    for place, stop in database.execute(_GAPS, (embedder,)).fetchall():
        missing = _first_without_vector(database, place, embedder, stop)
        if missing is not None:
            log.warning("place %d lacks vectors from message %d on; they are made again", place, missing)
            database.execute(_UPSERT_PROGRESS, (place, embedder, missing))
            database.execute("UPDATE search_places SET edition = edition + 1 WHERE place = ?", (place,))


def _drop(database: Database, place: Place, but: str | None) -> None:
    row = find_place(database, place)
    for table in ("search_vectors", "search_progress"):
        database.execute(f"DELETE FROM {table} WHERE place = ? AND embedder <> ?", (row, but or ""))


def _progress(database: Database, embedder: str | None) -> IndexProgress:
    def total(select: str, *values: str | None) -> int:
        return int(database.execute(select, values).fetchone()[0] or 0)

    indexed = total("SELECT count(*) FROM search_messages")
    deleted = total("SELECT sum(indexed_to) FROM search_places") - indexed  # so far as that is known
    embedded = """SELECT count(*) FROM search_progress e JOIN search_messages s
        ON s.place = e.place AND s.number < e.embedded_to WHERE e.embedder = ?"""
    return IndexProgress(
        messages=total("SELECT sum(messages) FROM places") - deleted,
        indexed=indexed,
        embedded=total(embedded, embedder) if embedder else 0,
    )


def _texts_between(database: Database, place: int, start: int, stop: int) -> tuple[MessageText, ...]:
    select = f"""{_SELECT_MESSAGES} WHERE m.place = ? AND m.number >= ? AND m.number < ?
        AND m.deleted = 0 AND m.hidden = 0 ORDER BY m.number"""
    return _read_texts(database, select, (place, start, stop))


def _text(database: Database, place: int, number: int) -> MessageText | None:
    return next(iter(_texts_between(database, place, number, number + 1)), None)


def _read_texts(database: Database, select: str, values: tuple[object, ...]) -> tuple[MessageText, ...]:
    return tuple(
        MessageText(
            number=number,
            name=name,
            author=author,
            at=parse_time(at),
            text=text,
            shown=_media_text(database, media),
            forwarded=bool(forwarded),
        )
        for number, name, author, at, text, media, forwarded in database.execute(select, values).fetchall()
    )


def _media_text(database: Database, media: str | None) -> str:
    """Return the text of media: their labels, and what they show as received, or as described."""
    if media is None:
        return ""
    words: list[str] = []
    for one in json.loads(media):
        text = one.get("rendered_text") or description_of(database, one.get("unique_id", ""))
        words += [clean(one.get("label") or ""), clean(text)]
    return " ".join(filter(None, words))

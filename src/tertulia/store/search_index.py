"""The search index: messages are added in batches, changed ones indexed again, an inconsistent index built anew.

What a message is found by is made above the store. So the entry of a message that changes is removed with the change,
and the number of the message is stored in `search_stale`: the next batch to be indexed holds it.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tertulia.memory.values import MAX_INDEXED_LENGTH, IndexBatch, IndexEntry, IndexProgress, MessageText
from tertulia.messages import Place
from tertulia.store.database import Database, Row, insert_into, upsert_into, upsert_row
from tertulia.store.encoding import Columns, clean
from tertulia.store.identities import find_place, select_places
from tertulia.store.message_rows import descriptions_of
from tertulia.store.threads import Repository, reading, writing

log = logging.getLogger(__name__)

# The places whose index has missing or extra rows, with their number.
_INCONSISTENT = """WITH astray (place) AS (
    SELECT m.place FROM messages m JOIN search_places p ON p.place = m.place AND m.number < p.indexed_to
        LEFT JOIN search_messages s ON s.place = m.place AND s.number = m.number
        LEFT JOIN search_stale c ON c.place = m.place AND c.number = m.number
        WHERE (s.number IS NULL AND c.number IS NULL AND m.deleted = 0 AND m.hidden = 0)
            OR (s.number IS NOT NULL AND (m.deleted = 1 OR m.hidden = 1))
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

# Those of some messages that were indexed, and whether people still see them.
_INDEXED = """SELECT m.place, m.number, CASE WHEN m.deleted = 0 AND m.hidden = 0 THEN 1 ELSE 0 END
    FROM messages m JOIN search_places s ON s.place = m.place WHERE m.id IN (:messages) AND m.number < s.indexed_to"""

# The texts of messages that people see, to be indexed or embedded.
_TEXT = Columns(MessageText, "number name author at text forwarded")
_TEXTS = f"""SELECT m.media, m.number, m.name, n.name, coalesce(m.sent_at, m.received_at),
    substr(m.text, 1, {MAX_INDEXED_LENGTH}), CASE WHEN m.forwarded_from IS NULL THEN 0 ELSE 1 END
    FROM messages m JOIN names n ON n.id = m.name {{}} m.place = :place AND m.number >= :start AND m.number < :stop
    AND m.deleted = 0 AND m.hidden = 0 ORDER BY m.number"""
_NEW_TEXTS = _TEXTS.format("WHERE")
_SOME_TEXTS = _TEXTS.format("WHERE m.number IN (:numbers) AND")
_STALE_TEXTS = _TEXTS.format("JOIN search_stale c ON c.place = m.place AND c.number = m.number WHERE")

# The texts of indexed messages without a vector.
_WITHOUT_VECTOR = """JOIN search_messages s ON s.place = m.place AND s.number = m.number
    LEFT JOIN search_vectors v ON v.place = m.place AND v.embedder = :embedder AND v.number = m.number
    WHERE v.number IS NULL AND"""
_TEXTS_TO_EMBED = _TEXTS.format(_WITHOUT_VECTOR) + " LIMIT :most"

# The places with messages that are not indexed, or not embedded by one embedder alone; those with the newest first.
_UNREAD = """SELECT t.body FROM places p LEFT JOIN search_places s ON s.place = p.id
    LEFT JOIN search_progress e ON e.place = p.id AND e.embedder = :embedder
    JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
    WHERE p.messages > coalesce(s.indexed_to, 0) OR (:embeds = 1 AND p.messages > coalesce(e.embedded_to, 0))
        OR EXISTS (SELECT 1 FROM search_stale c WHERE c.place = p.id)
        OR EXISTS (SELECT 1 FROM search_progress o WHERE o.place = p.id AND o.embedder <> :embedder)
    ORDER BY m.id DESC"""

_SET_PROGRESS = upsert_into("search_progress", "place, embedder", "place", "embedder", "embedded_to")

# Lets a place be embedded again from a message on, by every embedder.
_EMBED_FROM = "UPDATE search_progress SET embedded_to = :start WHERE place = :place AND embedded_to > :start"

# Lets whoever has read the index of a place read it again.
_NEXT_EDITION = "UPDATE search_places SET edition = edition + 1 WHERE place = :place"

# The places that have fewer vectors than messages before the number up to which they count as embedded.
_GAPS = """SELECT e.place FROM search_progress e WHERE e.embedder = :embedder AND (
    SELECT count(*) FROM search_messages s WHERE s.place = e.place AND s.number < e.embedded_to
) > (SELECT count(*) FROM search_vectors v WHERE v.place = e.place AND v.embedder = e.embedder
    AND v.number < e.embedded_to)"""  # counting takes a third of the time of looking for each

# How many messages there are, are indexed, wait to be indexed again, count as indexed, and as embedded.
_PROGRESS = """SELECT (SELECT coalesce(sum(messages), 0) FROM places), (SELECT count(*) FROM search_messages),
    (SELECT count(*) FROM search_stale c WHERE NOT EXISTS (
        SELECT 1 FROM search_messages s WHERE s.place = c.place AND s.number = c.number)),
    (SELECT coalesce(sum(indexed_to), 0) FROM search_places),
    (SELECT count(*) FROM search_progress e JOIN search_messages s
        ON s.place = e.place AND s.number < e.embedded_to WHERE e.embedder = :embedder)"""

_ENTRIES = ("search_terms", "search_messages", "search_vectors")  # tables with a place and the number of a message


class SqlIndexWriter(Repository):
    """Implements `memory.values.IndexWriter`."""

    @reading
    def embedder(self, database: Database) -> str:
        return chosen_embedder(database)

    @writing
    def choose(self, database: Database, embedder: str) -> None:
        upsert_row(database, "search_embedder", "id", id=1, embedder=clean(embedder))

    @reading
    def unread(self, database: Database, embedder: str | None) -> Sequence[Place]:
        return select_places(database, _UNREAD, embedder=embedder or "", embeds=int(embedder is not None))

    @reading
    def unindexed(self, database: Database, place: Place, *, most: int) -> IndexBatch | None:
        row = find_place(database, place)
        found = _indexed(database, row)
        if row is None or found is None:
            return None
        count, start, edition = found
        select = "SELECT number FROM search_stale WHERE place = :place ORDER BY number LIMIT :most"
        if stale := database.column(select, place=row, most=most):
            between = {"start": stale[0], "stop": stale[-1] + 1}
            said = _read_texts(database, _STALE_TEXTS, place=row, **between)
            return IndexBatch(row=row, edition=edition, said=said, again=True, **between)
        if start >= count:
            return None
        between = {"start": start, "stop": min(count, start + most)}
        said = _read_texts(database, _NEW_TEXTS, place=row, **between)
        return IndexBatch(row=row, edition=edition, said=said, **between)

    @writing
    def add(self, database: Database, stretch: IndexBatch, entries: Sequence[IndexEntry]) -> bool:
        between = {"place": stretch.row, "start": stretch.start, "stop": stretch.stop}
        select = _STALE_TEXTS if stretch.again else _NEW_TEXTS
        if not _is_current(database, stretch) or _read_texts(database, select, **between) != stretch.said:
            return False
        if stretch.again:
            _remove(database, stretch.row, [one.number for one in entries], _ENTRIES)
            database.run(
                "DELETE FROM search_stale WHERE place = :place AND number >= :start AND number < :stop", **between
            )
            database.run(_EMBED_FROM, place=stretch.row, start=stretch.start)
            database.run(_NEXT_EDITION, place=stretch.row)
        else:
            upsert_row(database, "search_places", "place", place=stretch.row, indexed_to=stretch.stop)
        fields = "number name at length traits first last".split()
        messages = [{"place": stretch.row} | {field: getattr(one, field) for field in fields} for one in entries]
        database.many(insert_into("search_messages", "place", *fields), messages)
        terms = sorted((term, one.number, packed) for one in entries for term, packed in one.words.items())
        database.many(
            insert_into("search_terms", "place", "term", "number", "packed"),
            [
                {"place": stretch.row, "term": term, "number": number, "packed": packed}
                for term, number, packed in terms
            ],
        )
        return True

    @reading
    def unembedded(self, database: Database, place: Place, embedder: str, *, most: int) -> IndexBatch | None:
        row = find_place(database, place)
        found = database.one(
            """SELECT s.indexed_to, coalesce(e.embedded_to, 0), s.edition FROM search_places s
                LEFT JOIN search_progress e ON e.place = s.place AND e.embedder = :embedder WHERE s.place = :place""",
            embedder=embedder,
            place=row,
        )
        if row is None or found is None or found[1] >= found[0]:
            return None
        stop, start, edition = found
        messages = _read_texts(
            database, _TEXTS_TO_EMBED, place=row, start=start, stop=stop, embedder=embedder, most=most
        )
        return IndexBatch(
            row=row,
            start=start,
            stop=stop if len(messages) < most else messages[-1].number + 1,
            edition=edition,
            said=messages,
        )

    @writing
    def embed(self, database: Database, stretch: IndexBatch, embedder: str, vectors: Mapping[int, bytes]) -> None:
        place = stretch.row
        _reset_on_new_length(database, place, embedder, vectors)
        edition = database.value("SELECT edition FROM search_places WHERE place = :place", place=place)
        if edition is None:
            return  # forgotten meanwhile
        unchanged = edition == stretch.edition
        numbers = [one.number for one in stretch.said]
        select = "SELECT number FROM search_messages WHERE place = :place AND number IN (:numbers)"
        indexed = set(database.column(select, place=place, numbers=numbers))
        if not unchanged:
            between = {"start": 0, "stop": stretch.stop}
            now = _read_texts(database, _SOME_TEXTS, place=place, numbers=numbers, **between)
            indexed &= {one.number for one in set(now) & set(stretch.said)}
        vector = {"place": place, "embedder": embedder}
        database.many(
            upsert_into("search_vectors", "place, embedder, number", *vector, "number", "vector"),
            [vector | {"number": number, "vector": vectors[number]} for number in numbers if number in indexed],
        )
        select = "SELECT embedded_to FROM search_progress WHERE place = :place AND embedder = :embedder"
        if (
            unchanged and (database.value(select, **vector) or 0) == stretch.start
        ):  # else what has changed is read again
            database.run(_SET_PROGRESS, **vector, embedded_to=stretch.stop)

    @writing
    def drop(self, database: Database, place: Place, *, but: str | None) -> None:
        row = find_place(database, place)
        for table in ("search_vectors", "search_progress"):
            database.run(f"DELETE FROM {table} WHERE place = :place AND embedder <> :but", place=row, but=but or "")

    async def reset_gaps(self, embedder: str) -> None:
        if gaps := await self._reader.run(lambda database: database.column(_GAPS, embedder=embedder)):
            log.warning("%d places lack vectors; they are made again", len(gaps))
            await self._embed_again([{"place": place, "start": 0} for place in gaps])

    @writing
    def _embed_again(self, database: Database, places: Sequence[dict[str, int]]) -> None:
        database.many(_EMBED_FROM, places)
        database.many(_NEXT_EDITION, places)

    async def rebuild_broken(self) -> None:
        if places := await self._reader.run(find_inconsistent):
            await self._writer.run(lambda database: clear_index(database, places))

    @reading
    def progress(self, database: Database, embedder: str | None) -> IndexProgress:
        ((messages, indexed, waiting, known, embedded),) = database.all(_PROGRESS, embedder=embedder or "")
        deleted = known - indexed - waiting  # so far as that is known
        return IndexProgress(messages=messages - deleted, indexed=indexed, embedded=embedded)


def find_inconsistent(database: Database) -> dict[int, int]:
    """Return the places whose index has missing or extra rows, with their number."""
    return dict(database.all(_INCONSISTENT))


def clear_index(database: Database, places: Collection[int]) -> None:
    """Remove the index of *places*, so that it is built again."""
    for table in (*_ENTRIES, "search_stale", "search_progress"):
        database.run(f"DELETE FROM {table} WHERE place IN (:places)", places=places)
    reset = "UPDATE search_places SET indexed_to = 0, edition = edition + 1 WHERE place IN (:places)"
    database.run(reset, places=places)


def unindex(database: Database, messages: Collection[int]) -> None:
    """Remove changed messages from the index; those that people still see are indexed again soon."""
    _set_stale(database, messages, remove=True)


def index_again(database: Database, messages: Collection[int]) -> None:
    """Let changed messages be indexed again soon; until then they are found by what they said."""
    _set_stale(database, messages, remove=False)


def _set_stale(database: Database, messages: Collection[int], *, remove: bool) -> None:
    places: dict[int, dict[int, bool]] = {}
    for place, number, is_seen in database.all(_INDEXED, messages=messages):
        places.setdefault(place, {})[number] = is_seen == 1
    for place, numbers in places.items():
        gone = [number for number, is_seen in numbers.items() if remove or not is_seen]
        _remove(database, place, gone, ("search_stale", *_ENTRIES))
        database.many(
            "INSERT INTO search_stale (place, number) VALUES (:place, :number) ON CONFLICT DO NOTHING",
            [{"place": place, "number": number} for number, is_seen in numbers.items() if is_seen],
        )


def _remove(database: Database, place: int, numbers: Collection[int], tables: Iterable[str]) -> None:
    if numbers:
        for table in tables:
            database.run(
                f"DELETE FROM {table} WHERE place = :place AND number IN (:numbers)", place=place, numbers=numbers
            )
        database.run(_NEXT_EDITION, place=place)


def chosen_embedder(database: Database) -> str:
    """Return the name of the chosen embedder; empty for the default."""
    return database.value("SELECT embedder FROM search_embedder WHERE id = 1") or ""


def _indexed(database: Database, place: int | None) -> Row | None:
    """Return how many messages a place has and how many are indexed, and the edition of that."""
    select = """SELECT p.messages, coalesce(s.indexed_to, 0), coalesce(s.edition, 0) FROM places p
        LEFT JOIN search_places s ON s.place = p.id WHERE p.id = :place"""
    return database.one(select, place=place)


def _is_current(database: Database, stretch: IndexBatch) -> bool:
    """Return whether a batch is still to be indexed: its place may be forgotten meanwhile."""
    row = _indexed(database, stretch.row)
    return row is not None and (row[1] >= stretch.stop if stretch.again else row[1] == stretch.start)


def _reset_on_new_length(database: Database, place: int, embedder: str, vectors: Mapping[int, bytes]) -> None:
    """Remove the vectors of a place if the embedder now makes vectors of another length."""
    of_embedder = {"place": place, "embedder": embedder}
    vector_length = "SELECT length(vector) FROM search_vectors WHERE place = :place AND embedder = :embedder LIMIT 1"
    length = database.value(vector_length, **of_embedder)
    if length is None or all(len(vector) == length for vector in vectors.values()):
        return
    database.run("DELETE FROM search_vectors WHERE place = :place AND embedder = :embedder", **of_embedder)
    database.run(_SET_PROGRESS, embedded_to=0, **of_embedder)
    database.run(_NEXT_EDITION, place=place)


def _read_texts(database: Database, select: str, **values: Any) -> tuple[MessageText, ...]:
    rows = [(json.loads(media or "[]"), row) for media, *row in database.all(select, **values)]
    described = descriptions_of(database, {one.get("unique_id", "") for media, _ in rows for one in media})
    return tuple(_TEXT.decode(row, shown=_media_text(media, described)) for media, row in rows)


def _media_text(media: Iterable[Mapping[str, str]], described: Mapping[str, str]) -> str:
    """Return the text of media: their labels, and what they show as received, or as described."""
    words: list[str] = []
    for one in media:
        text = one.get("rendered_text") or described.get(clean(one.get("unique_id", "")), "")
        words += [clean(one.get("label") or ""), clean(text)]
    return " ".join(filter(None, words))

"""Where the index does not agree with what was said, and making it anew there."""

from collections.abc import Iterable

from palaver.store.sqlite import Database

_ASTRAY = """WITH astray (place) AS (
    SELECT m.place FROM messages m JOIN search_places p ON p.place = m.place AND m.number < p.words
        LEFT JOIN search_said s ON s.place = m.place AND s.number = m.number
        WHERE (m.deleted OR m.hidden) = (s.number IS NOT NULL)
    UNION ALL SELECT s.place FROM search_said s LEFT JOIN search_places p ON p.place = s.place
        LEFT JOIN messages m ON m.place = s.place AND m.number = s.number AND m.name = s.name
        WHERE m.id IS NULL OR s.number >= coalesce(p.words, 0)
    UNION ALL SELECT s.place FROM search_said s WHERE s.length > 0 AND NOT EXISTS (
        SELECT 1 FROM search_words w WHERE w.place = s.place AND w.number = s.number)
    UNION ALL SELECT w.place FROM search_words w WHERE NOT EXISTS (
        SELECT 1 FROM search_said s WHERE s.place = w.place AND s.number = w.number)
    UNION ALL SELECT s.place FROM search_embedded e JOIN search_said s ON s.place = e.place AND s.number < e.done
        WHERE NOT EXISTS (SELECT 1 FROM search_vectors v
            WHERE v.place = s.place AND v.embedder = e.embedder AND v.number = s.number)
    UNION ALL SELECT v.place FROM search_vectors v WHERE NOT EXISTS (
        SELECT 1 FROM search_said s WHERE s.place = v.place AND s.number = v.number)
) SELECT place, count(*) FROM astray GROUP BY place ORDER BY place"""


def astray(database: Database) -> dict[int, int]:
    """The places whose index lacks rows or has some of no message, with how many."""
    return dict(database.execute(_ASTRAY).fetchall())


def clear(database: Database, places: Iterable[int]) -> None:
    """Remove the index of *places*: then it is made from the beginning."""
    for place in places:
        for table in ("search_words", "search_said", "search_vectors", "search_embedded"):
            database.execute(f"DELETE FROM {table} WHERE place = ?", (place,))  # noqa: S608
        database.execute("UPDATE search_places SET words = 0, edition = edition + 1 WHERE place = ?", (place,))

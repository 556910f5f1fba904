"""Messages that are hidden: they stay in the file, and no prompt, search, episode or quote holds them any more."""

from collections.abc import Iterable
from datetime import datetime

from palaver.messages import Quote
from palaver.store import indexing, retracting
from palaver.store.messages import keep_event
from palaver.store.sqlite import Database
from palaver.store.values import QUOTE, dumps


def bare_quotes(database: Database, found: Iterable[tuple[int, str]], at: datetime | None) -> None:
    """Leave of the quotes in these messages, given by row and quote, only which message was meant, and whose."""
    for row, reply in found:
        keep_event(database, row, "removed", at, None)
        quote = QUOTE.loads(reply)
        bare = dumps(Quote(message_id=quote.message_id, author=quote.author))
        database.execute("UPDATE messages SET reply = ? WHERE id = ?", (bare, row))


def hide(database: Database, row: int, at: datetime | None) -> None:
    """Hide a message, and what quotes have of it."""
    update = "UPDATE messages SET hidden = 1 WHERE id = ? AND hidden = 0 RETURNING place, number, message_id"
    found = database.execute(update, (row,)).fetchone()
    if found is None:
        return
    place, number, message_id = found
    keep_event(database, row, "removed", at, None)
    indexing.reindex(database, row)
    retracting.remove_episodes(database, place, number)
    quoting = """SELECT id, reply FROM messages WHERE place = ?
        AND reply_to IN (SELECT ? UNION SELECT message_id FROM message_parts WHERE message = ?)"""
    bare_quotes(database, database.execute(quoting, (place, message_id, row)).fetchall(), at)

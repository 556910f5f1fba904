"""Hidden messages: stored, but in no prompt, search result, episode or quote."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from palaver.memory.verify.statements import Statement, is_repetition, sentences_about
from palaver.messages import Quote
from palaver.store import search_index
from palaver.store.encoding import QUOTE, dumps
from palaver.store.forget import retraction
from palaver.store.message_rows import insert_change
from palaver.store.sqlite.connection import Database


def strip_quotes(database: Database, found: Iterable[tuple[int, str]], at: datetime | None) -> None:
    """Reduce the quotes in these messages, given by row and quote, to the id and author of the quoted message."""
    for row, reply in found:
        insert_change(database, row, "removed", at, None)
        quote = QUOTE.loads(reply)
        bare = dumps(Quote(message_id=quote.message_id, author=quote.author))
        database.execute("UPDATE messages SET reply = ? WHERE id = ?", (bare, row))


def hide(database: Database, row: int, at: datetime | None, *, facts: Sequence[Statement] = ()) -> None:
    """Hide a message and the quotes of it, because of the *facts* that it states.

    The sentences that state them are stored: an edit that removes all of them makes the message visible again. If no
    single sentence states a fact, the whole text is stored.
    """
    (text,) = database.execute("SELECT text FROM messages WHERE id = ?", (row,)).fetchone()
    sentences = sentences_about(text, facts) or [text]
    note = "INSERT INTO hidden_sentences (message, text) VALUES (?, ?) ON CONFLICT DO NOTHING"
    database.executemany(note, [(row, sentence) for sentence in sentences])
    update = "UPDATE messages SET hidden = 1 WHERE id = ? AND hidden = 0 RETURNING place, number, message_id"
    found = database.execute(update, (row,)).fetchone()
    if found is None:
        return
    place, number, message_id = found
    insert_change(database, row, "removed", at, None)
    search_index.reindex(database, row)
    retraction.remove_episodes(database, place, number)
    quoting = """SELECT id, reply FROM messages WHERE place = ?
        AND reply_to IN (SELECT ? UNION SELECT message_id FROM message_parts WHERE message = ?)"""
    strip_quotes(database, database.execute(quoting, (place, message_id, row)).fetchall(), at)


def unhide_edited(database: Database, row: int, text: str, at: datetime) -> None:
    """Make a hidden message visible again if its new *text* has none of the sentences for which it was hidden."""
    if not database.execute("SELECT hidden FROM messages WHERE id = ?", (row,)).fetchone()[0]:
        return
    select = "SELECT text FROM hidden_sentences WHERE message = ?"
    if any(is_repetition(text, sentence) for (sentence,) in database.execute(select, (row,)).fetchall()):
        return
    database.execute("UPDATE messages SET hidden = 0 WHERE id = ?", (row,))
    database.execute("DELETE FROM hidden_sentences WHERE message = ?", (row,))
    insert_change(database, row, "removed", at, None)
    search_index.reindex(database, row)

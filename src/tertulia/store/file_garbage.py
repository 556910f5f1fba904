"""Files of media that nothing refers to any more, and their removal from the tables.

A file is referred to by a message that has or quotes its media and by the turns in which the agent wrote a message,
unless the message is deleted or hidden; by the prompt, a record or a tool run of an open run, by a reply that is not
sent and by a task that is not done. A form of a file goes with its source. Messages and quotes name media by
`unique_id`, all others by the hash of the file.

The rows of a file go before the file itself: where the process ends between the two, the next one finds a file without
a row, and removes it.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from tertulia.media.values import file_key
from tertulia.parts import Media
from tertulia.store.encoding import QUOTE, clean, dumps
from tertulia.store.prompts import layer_content
from tertulia.store.sqlite.connection import Database
from tertulia.timezones import utc

GRACE = timedelta(hours=1)  # from the use of a file until it may go because nothing refers to it
PAGE = 5_000  # messages whose quotes and turns are read at once

_SHA256 = re.compile(r'"sha256":"([0-9a-f]{64})"')
_UNIQUE_ID = re.compile(r'"unique_id":("(?:[^"\\]|\\.)*")')
_SENT = """SELECT 1 FROM media a JOIN messages m ON m.id = a.message
    WHERE a.unique_id = w.unique_id AND m.deleted = 0 AND m.hidden = 0"""  # a message that people see has the media
_OPEN_TEXTS = (
    "SELECT c.turn FROM records c JOIN runs r ON r.run_id = c.run_id WHERE r.status = 'open'",
    "SELECT c.result FROM tool_runs c JOIN runs r ON r.run_id = c.run_id WHERE r.status = 'open'",
    "SELECT reply FROM outbox WHERE status IN ('waiting', 'sending', 'doubtful')",
    "SELECT turns FROM outbox WHERE status IN ('waiting', 'sending', 'doubtful')",
    "SELECT body FROM tasks WHERE status IN ('pending', 'running')",
)
_OPEN_LAYERS = """SELECT DISTINCT l.layer FROM runs r JOIN prompts p ON p.run_id = r.run_id
    JOIN prompt_layers l ON l.prompt = p.id WHERE r.status = 'open'"""


def time_text(at: datetime) -> str:
    """Return a moment as the tables of files have it: in UTC, so that texts compare like moments."""
    return utc(at).isoformat()


def find_unreferenced(
    database: Database, before: datetime | None = None, *, among: Collection[str] | None = None
) -> set[str]:
    """Return the files that no message has and that are no form of another; used last before *before*, if given.

    What `find_repeated` and `named_hashes` return is to be subtracted.
    """
    some = "f.sha256 IN (SELECT value FROM json_each(:among))" if among is not None else "TRUE"
    select = f"""SELECT f.sha256 FROM files f WHERE {some} AND (:before IS NULL OR f.used_at < :before)
        AND NOT EXISTS (SELECT 1 FROM media_files w WHERE w.sha256 = f.sha256 AND EXISTS ({_SENT}))
        AND NOT EXISTS (SELECT 1 FROM file_forms o WHERE o.sha256 = f.sha256 AND o.source <> f.sha256)"""
    values = {"before": before and time_text(before), "among": json.dumps([*(among or ())])}
    return {sha256 for (sha256,) in database.execute(select, values)}


def find_repeated(database: Database, sha256s: Collection[str], page: tuple[int, int] | None = None) -> set[str]:
    """Return those of the files that quotes in messages have, or the turns in which the agent wrote them.

    Only a *page* of messages is read, or all.
    """
    select = "SELECT unique_id, sha256 FROM media_files WHERE sha256 IN (SELECT value FROM json_each(?))"
    wanted = {dumps(unique_id): sha256 for unique_id, sha256 in database.execute(select, (json.dumps([*sha256s]),))}
    first, last = page or (0, last_message(database))
    quotes = """SELECT reply FROM messages WHERE id > ? AND id <= ? AND deleted = 0 AND hidden = 0
        AND reply IS NOT NULL AND instr(reply, '"unique_id"')"""
    texts = (text for (text,) in database.execute(quotes, (first, last))) if wanted else ()
    found = {wanted[name] for text in texts for name in _UNIQUE_ID.findall(text) if name in wanted}
    turns = """SELECT t.turns FROM turns t JOIN messages m ON m.id = t.message WHERE t.message > ? AND t.message <= ?
        AND m.deleted = 0 AND m.hidden = 0 AND instr(t.turns, '"sha256"')"""
    texts = (text for (text,) in database.execute(turns, (first, last)))
    return found | {name for text in texts for name in _SHA256.findall(text) if name in sha256s}


def last_message(database: Database) -> int:
    """Return the row of the last message."""
    found: int = database.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()[0]
    return found


def named_hashes(database: Database) -> set[str]:
    """Return the hashes that open runs, unsent replies and open tasks name."""
    layers = [layer_content(database, row) or b"" for (row,) in database.execute(_OPEN_LAYERS).fetchall()]
    texts: Iterator[str | None] = (text for select in _OPEN_TEXTS for (text,) in database.execute(select))
    found = {name for content in layers for name in _SHA256.findall(content.decode())}
    return found | {name for text in texts if text for name in _SHA256.findall(text)}


def find_unused(database: Database, since: datetime) -> set[str]:
    """Return the files that were not used since."""
    select = "SELECT sha256 FROM files WHERE used_at < ?"
    return {sha256 for (sha256,) in database.execute(select, (time_text(since),))}


def remove_files(database: Database, sha256s: Iterable[str], *, keep: Collection[str] = ()) -> set[str]:
    """Remove the rows of files, and of the forms that only they have but those to *keep*; return all that went.

    The services still have their handles: these become unwanted.
    """
    gone: set[str] = set()
    left = set(sha256s)
    while left:
        which = (json.dumps([*left]),)
        select = "SELECT DISTINCT sha256 FROM file_forms WHERE source IN (SELECT value FROM json_each(?))"
        forms = {sha256 for (sha256,) in database.execute(select, which) if sha256}
        database.execute("UPDATE handles SET unwanted = 1 WHERE sha256 IN (SELECT value FROM json_each(?))", which)
        database.execute("DELETE FROM files WHERE sha256 IN (SELECT value FROM json_each(?))", which)
        gone |= left
        left = {sha256 for sha256 in forms - gone - set(keep) if not _has_use(database, sha256)}
    return gone


def _has_use(database: Database, sha256: str) -> bool:
    """Return whether a file is that of some media, or a form of another."""
    select = """SELECT 1 FROM media_files WHERE sha256 = ? UNION ALL
        SELECT 1 FROM file_forms WHERE sha256 = ? AND source <> sha256"""
    return database.execute(select, (sha256, sha256)).fetchone() is not None


def shown_ids(database: Database) -> set[str]:
    """Return the ids of all media that messages and their quotes have."""
    found = {unique_id for (unique_id,) in database.execute("SELECT DISTINCT unique_id FROM media")}
    for (reply,) in database.execute("""SELECT reply FROM messages WHERE instr(reply, '"unique_id"')"""):
        media = [part for part in QUOTE.loads(reply).parts if isinstance(part, Media)]
        found.update(clean(one) for part in media for one in (part.unique_id, file_key(part)))
    return found


def correct_uses(database: Database, at: datetime) -> None:
    """Let files that were used in the future, by a clock that was wrong, count as used now: else they stay for long."""
    update = "UPDATE files SET used_at = ? WHERE used_at > ?"
    database.execute(update, (time_text(at), time_text(at + GRACE)))


def remove_old_rows(database: Database, *, since: datetime, at: datetime) -> None:
    """Remove handles that have expired, old failures, and failures of media that no message has."""
    database.execute("DELETE FROM handles WHERE expires_at <= ?", (time_text(at),))
    database.execute("DELETE FROM description_failures WHERE datetime(retry_at) < datetime(?)", (time_text(since),))
    delete = f"""DELETE FROM media_files AS w WHERE sha256 IS NULL
        AND (at < ? OR (at < ? AND NOT EXISTS ({_SENT})))"""
    database.execute(delete, (time_text(since), time_text(at - GRACE)))

"""Files of media that nothing refers to any more, and their removal from the tables.

A file is referred to by a message that has or quotes its media and by the turns in which the agent wrote a message,
unless the message is deleted or hidden; by the prompt, a record or a tool run of an open run, by a reply that is not
sent and by a task that is not done. A form of a file goes with its source. Messages and quotes name media by
`unique_id`, all others by the hash of the file.

The rows of a file go before the file itself: where the process ends between the two, the next one finds a file without
a row, and removes it.
"""

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from tertulia.media.values import file_key
from tertulia.parts import Media
from tertulia.store.database import Database
from tertulia.store.encoding import QUOTE, clean, dumps
from tertulia.store.prompts import layer_contents
from tertulia.timezones import utc

GRACE = timedelta(hours=1)  # from the use of a file until it may go because nothing refers to it
PAGE = 5_000  # messages whose quotes and turns are read at once

_SHA256 = re.compile(r'"sha256":"([0-9a-f]{64})"')
_UNIQUE_ID = re.compile(r'"unique_id":("(?:[^"\\]|\\.)*")')
_HAS_SHA256, _HAS_UNIQUE_ID = '%"sha256"%', '%"unique_id"%'

# A message that people see has the media; an expression with the table `media_files` as w.
_SENT = """SELECT 1 FROM media a JOIN messages m ON m.id = a.message
    WHERE a.unique_id = w.unique_id AND m.deleted = 0 AND m.hidden = 0"""

# The files that no message has and that are no form of another, used last before a moment.
_UNREFERENCED = f"""SELECT f.sha256 FROM files f WHERE f.used_at < :before AND (:any = 1 OR f.sha256 IN (:among))
    AND NOT EXISTS (SELECT 1 FROM media_files w WHERE w.sha256 = f.sha256 AND EXISTS ({_SENT}))
    AND NOT EXISTS (SELECT 1 FROM file_forms o WHERE o.sha256 = f.sha256 AND o.source <> f.sha256)"""

# The quotes of messages of one page that may have media.
_QUOTES = """SELECT reply FROM messages WHERE id > :first AND id <= :last AND deleted = 0 AND hidden = 0
    AND reply LIKE :mark"""

# The turns of messages of one page that may name files.
_TURNS = """SELECT t.turns FROM turns t JOIN messages m ON m.id = t.message WHERE t.message > :first
    AND t.message <= :last AND m.deleted = 0 AND m.hidden = 0 AND t.turns LIKE :mark"""

# What open runs, unsent replies and open tasks say.
_OPEN_TEXTS = (
    "SELECT c.turn FROM records c JOIN runs r ON r.run_id = c.run_id WHERE r.status = 'open'",
    "SELECT c.result FROM tool_runs c JOIN runs r ON r.run_id = c.run_id WHERE r.status = 'open'",
    "SELECT reply FROM outbox WHERE status IN ('waiting', 'sending', 'doubtful')",
    "SELECT turns FROM outbox WHERE status IN ('waiting', 'sending', 'doubtful')",
    "SELECT body FROM tasks WHERE status IN ('pending', 'running')",
)
_OPEN_LAYERS = """SELECT DISTINCT l.layer FROM runs r JOIN prompts p ON p.run_id = r.run_id
    JOIN prompt_layers l ON l.prompt = p.id WHERE r.status = 'open'"""

# The forms of some files, and those of them that are the file of other media, or a form of another file.
_FORMS = "SELECT DISTINCT sha256 FROM file_forms WHERE sha256 IS NOT NULL AND source IN (:files)"
_USED = """SELECT sha256 FROM media_files WHERE sha256 IN (:forms) AND unique_id NOT IN (:media)
    UNION SELECT sha256 FROM file_forms WHERE sha256 IN (:forms) AND source NOT IN (:files) AND source <> sha256"""

# Failures to fetch media that are old, or whose media no message has any more.
_REMOVE_FAILURES = f"""DELETE FROM media_files AS w WHERE sha256 IS NULL
    AND (at < :since OR (at < :grace AND NOT EXISTS ({_SENT})))"""


def time_text(at: datetime) -> str:
    """Return a moment as the tables of files have it: in UTC, so that texts compare like moments."""
    return utc(at).isoformat()


def find_unreferenced(database: Database, before: datetime, among: Collection[str] | None = None) -> set[str]:
    """Return the files, of all or *among* some, that no message has and that are no form of another; not used since.

    What `find_repeated` and `named_hashes` return is to be subtracted.
    """
    values = {"before": time_text(before), "any": int(among is None), "among": among or ()}
    return set(database.column(_UNREFERENCED, **values))


def find_repeated(database: Database, sha256s: Collection[str], page: tuple[int, int]) -> set[str]:
    """Return those of the files that quotes in a *page* of messages have, or the turns in which they were written."""
    select = "SELECT unique_id, sha256 FROM media_files WHERE sha256 IN (:files)"
    wanted = {dumps(unique_id): sha256 for unique_id, sha256 in database.all(select, files=[*sha256s])}
    first, last = page
    quotes = database.column(_QUOTES, first=first, last=last, mark=_HAS_UNIQUE_ID) if wanted else ()
    found = {wanted[name] for text in quotes for name in _UNIQUE_ID.findall(text) if name in wanted}
    turns = database.column(_TURNS, first=first, last=last, mark=_HAS_SHA256)
    return found | {name for text in turns for name in _SHA256.findall(text) if name in sha256s}


def last_message(database: Database) -> int:
    """Return the row of the last message."""
    return database.value("SELECT max(id) FROM messages") or 0


def named_hashes(database: Database) -> set[str]:
    """Return the hashes that open runs, unsent replies and open tasks name."""
    layers = layer_contents(database, database.column(_OPEN_LAYERS)).values()
    found = {name for content in layers for name in _SHA256.findall(content.decode())}
    texts = (text for select in _OPEN_TEXTS for text in database.column(select) if text)
    return found | {name for text in texts for name in _SHA256.findall(text)}


def find_unused(database: Database, since: datetime) -> set[str]:
    """Return the files that were not used since."""
    return set(database.column("SELECT sha256 FROM files WHERE used_at < :since", since=time_text(since)))


def remove_files(database: Database, sha256s: Iterable[str], *, keep: Collection[str] = ()) -> set[str]:
    """Remove the rows of files, and of the forms that only they have but those to *keep*; return all that went.

    The services still have their handles: these become unwanted.
    """
    gone = with_forms(database, sha256s, keep=keep)
    database.run("UPDATE handles SET unwanted = 1 WHERE sha256 IN (:gone)", gone=gone)
    database.run("DELETE FROM files WHERE sha256 IN (:gone)", gone=gone)
    return gone


def with_forms(
    database: Database, sha256s: Iterable[str], *, media: Collection[str] = (), keep: Collection[str] = ()
) -> set[str]:
    """Return files, and the forms that only they and these *media* have, but those to *keep*."""
    found, new = set[str](), set(sha256s)
    while new:
        found |= new
        forms = set(database.column(_FORMS, files=new)) - found - set(keep)
        new = forms - set(database.column(_USED, forms=forms, files=found, media=media))
    return found


def files_of(database: Database, media: Collection[str]) -> set[str]:
    """Return the files that only these media have, with the forms that only these files have."""
    select = "SELECT DISTINCT sha256 FROM media_files WHERE unique_id IN (:media) AND sha256 IS NOT NULL"
    files = set(database.column(select, media=media))
    used = set(database.column(_USED, forms=files, files=files, media=media))
    return with_forms(database, files - used, media=media)


def shown_ids(database: Database) -> set[str]:
    """Return the ids of all media that messages and their quotes have."""
    found = set[str](database.column("SELECT DISTINCT unique_id FROM media"))
    for reply in database.column("SELECT reply FROM messages WHERE reply LIKE :mark", mark=_HAS_UNIQUE_ID):
        media = [part for part in QUOTE.loads(reply).parts if isinstance(part, Media)]
        found.update(clean(one) for part in media for one in (part.unique_id, file_key(part)))
    return found


def correct_uses(database: Database, at: datetime) -> None:
    """Let files that were used in the future, by a clock that was wrong, count as used now: else they stay for long."""
    update = "UPDATE files SET used_at = :now WHERE used_at > :latest"
    database.run(update, now=time_text(at), latest=time_text(at + GRACE))


def remove_old_rows(database: Database, *, since: datetime, at: datetime) -> None:
    """Remove handles that have expired, old failures, and failures of media that no message has."""
    database.run("DELETE FROM handles WHERE expires_at <= :now", now=time_text(at))
    database.run("DELETE FROM description_failures WHERE retry_at < :since", since=time_text(since))
    database.run(_REMOVE_FAILURES, since=time_text(since), grace=time_text(at - GRACE))

"""Removes what is stored of media that only one person sent: files, their forms, descriptions, failures.

Media belong to the messages that have them. When the messages of a person were emptied, all that is stored of media
that no message has any more was theirs, or made for them. A file that somebody else sent too stays.
"""

import json
from collections.abc import Collection

from tertulia.store import file_garbage
from tertulia.store.encoding import clean
from tertulia.store.sqlite.connection import Database

_STORED = ("media_files", "descriptions", "description_failures")  # by `unique_id`
_SOME = "(SELECT value FROM json_each(?))"


def read_media(database: Database) -> set[str]:
    """Return the media of messages that something is stored of."""
    sent = "EXISTS (SELECT 1 FROM media a WHERE a.unique_id = s.unique_id)"
    selects = [f"SELECT s.unique_id FROM {table} s WHERE {sent}" for table in _STORED]
    return {unique_id for (unique_id,) in database.execute(" UNION ".join(selects))}


def remove_lost_media(database: Database, before: set[str], theirs: Collection[str]) -> tuple[int, int]:
    """Remove what is stored of media that no message has now: those *before*, and *theirs* also in quotes.

    Of media that others have too, it is no longer stored when a place without them got to know their description.
    Return the number of files and of descriptions.
    """
    left = read_media(database)
    cleaned = set(map(clean, theirs))
    lost = (before | cleaned) - left
    delete = f"DELETE FROM descriptions WHERE unique_id IN {_SOME}"
    descriptions = database.execute(delete, (json.dumps([*lost]),)).rowcount
    delete = f"""DELETE FROM description_positions AS p WHERE unique_id IN {_SOME} AND NOT EXISTS (SELECT 1 FROM media a
        JOIN messages m ON m.id = a.message WHERE a.unique_id = p.unique_id AND m.place = p.place)"""
    database.execute(delete, (json.dumps([*cleaned]),))
    return len(file_garbage.remove_media(database, lost)), descriptions

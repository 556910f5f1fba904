"""New and changed tables since version 9: statements, step by step, and the names before and after `m030_plain_names`.

SQLite renames a table or a column in place: rows, foreign keys and the conditions of partial indexes go along. It has
no statement to rename an index, so an index is dropped and created under its new name.
"""

from typing import NamedTuple

from tertulia.store.sqlite.connection import BY_KEY, BYTES, SEQUENCE, Database

DRAFTS = (
    "ALTER TABLE outbox ADD COLUMN edits TEXT",  # the id of our own message that it replaces
    "CREATE INDEX outbox_drafts ON outbox (run_id) WHERE kind = 'draft'",
    "CREATE INDEX outbox_edits ON outbox (place, edits) WHERE edits IS NOT NULL",
)

TRIED = (
    "ALTER TABLE prompts ADD COLUMN fallback TEXT",  # the fallback, if the step before failed
    "ALTER TABLE prompts ADD COLUMN why TEXT NOT NULL DEFAULT ''",  # why it was needed
    "ALTER TABLE prompts ADD COLUMN model TEXT NOT NULL DEFAULT ''",  # the model of that request
    "ALTER TABLE runs DROP COLUMN rungs",
)

LEFT_OUT = (
    "ALTER TABLE prompts ADD COLUMN left_out TEXT",  # of the context, and why: JSON; none: as in the step before
)

USAGE = (
    """CREATE TABLE usage (  -- of model calls, summed up
        day TEXT NOT NULL,  -- in UTC
        place INTEGER REFERENCES places (id),  -- none: forgotten since
        author INTEGER REFERENCES authors (id),  -- who was answered; none: forgotten since
        model TEXT NOT NULL,
        calls INTEGER NOT NULL,
        input INTEGER NOT NULL,  -- tokens, the cached among them
        cached INTEGER NOT NULL,
        output INTEGER NOT NULL,
        thought INTEGER NOT NULL,
        money REAL NOT NULL,  -- dollars, where the price was known
        UNIQUE (day, place, author, model)
    )""",
)

CHATS = (
    """CREATE TABLE chats (
        name TEXT PRIMARY KEY,
        exchange TEXT  -- the one under way, as JSON
    )""",
    """CREATE TABLE chat_entries (
        chat TEXT NOT NULL REFERENCES chats (name),
        number INTEGER NOT NULL,
        entry TEXT NOT NULL,  -- Entry as JSON
        PRIMARY KEY (chat, number)
    )""",
)

CHAT_EDITIONS = (
    "ALTER TABLE chats ADD COLUMN edition INTEGER NOT NULL DEFAULT 0",  # changes when something in it is forgotten
)

CAP_NOTICES = (
    """CREATE TABLE cap_notices (  -- whom we told that a cap on what may be spent is reached
        day TEXT NOT NULL,  -- in UTC
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        author INTEGER NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
        PRIMARY KEY (day, place, author)
    )""",
)

UNKNOWN_ATTEMPTS = (
    "ALTER TABLE outbox ADD COLUMN unknown_attempts INTEGER NOT NULL DEFAULT 0",  # of which nobody knows the outcome
    "UPDATE outbox SET unknown_attempts = attempts WHERE status IN ('sending', 'doubtful')",
)

SECONDS = ("ALTER TABLE runs ADD COLUMN seconds REAL NOT NULL DEFAULT 0",)  # that processes have worked on it


ALBUMS = ("ALTER TABLE messages ADD COLUMN album TEXT",)  # the id that messages sent as one album share

UPDATES = (
    f"""CREATE TABLE updates (
        id {SEQUENCE},
        platform TEXT NOT NULL,
        update_key TEXT NOT NULL,  -- the service's
        at TEXT NOT NULL,  -- UTC
        is_read INTEGER NOT NULL,  -- whether its changes were applied; 0: it could not be read
        raw {BYTES},  -- as it came; removed after a while
        UNIQUE (platform, update_key)
    )""",
    "CREATE INDEX updates_by_time ON updates (at)",
    "CREATE INDEX updates_raw ON updates (at) WHERE raw IS NOT NULL",
    "CREATE INDEX updates_unread ON updates (platform, id) WHERE is_read = 0",
    f"""CREATE TABLE update_places (
        update_row INTEGER NOT NULL REFERENCES updates (id) ON DELETE CASCADE,
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        PRIMARY KEY (update_row, place)
    ) {BY_KEY}""",
    "CREATE INDEX update_places_by_place ON update_places (place)",
    f"""CREATE TABLE reactions (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        message_id TEXT NOT NULL,
        name INTEGER NOT NULL REFERENCES names (id),
        emojis TEXT NOT NULL,  -- JSON: all that they show
        at TEXT
    )""",
    "CREATE INDEX reactions_by_message ON reactions (place, message_id)",
    "CREATE INDEX reactions_by_name ON reactions (name)",
    f"""CREATE TABLE commands (  -- to be carried out
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        name INTEGER NOT NULL REFERENCES names (id),
        message TEXT NOT NULL,
        command TEXT NOT NULL,
        argument TEXT NOT NULL,
        horizon INTEGER NOT NULL  -- messages of the place when it was given
    )""",
    "CREATE INDEX commands_by_name ON commands (name)",
    "CREATE INDEX commands_by_place ON commands (place)",
    "ALTER TABLE places ADD COLUMN left_at TEXT",  # since when we cannot write there
    """CREATE TABLE place_aliases (
        place_key TEXT PRIMARY KEY,  -- of a place that goes on as another one
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE
    )""",
    "CREATE INDEX place_aliases_by_place ON place_aliases (place)",
)

SERVICES = (
    "ALTER TABLE places ADD COLUMN service TEXT NOT NULL DEFAULT ''",  # where the ids of its people are unique
    "UPDATE places SET service = platform",
)

DELIVERIES = (
    "ALTER TABLE outbox ADD COLUMN kind TEXT NOT NULL DEFAULT 'answer'",  # answer, error, notice, task
    "UPDATE outbox SET kind = 'task' WHERE task_id IS NOT NULL",
)

KINDS = (
    "ALTER TABLE places ADD COLUMN direct_until INTEGER NOT NULL DEFAULT 0",  # after its last message as a direct chat
    "ALTER TABLE places ADD COLUMN open_until INTEGER NOT NULL DEFAULT 0",  # after its last message as a group
    *(
        f"""UPDATE places SET {column} = coalesce((
            SELECT max(m.number) + 1 FROM messages m JOIN titles t ON t.id = m.title
            WHERE m.place = places.id AND (json_extract(t.body, '$.kind') = 'direct') = {direct}
        ), 0)"""
        for column, direct in (("direct_until", 1), ("open_until", 0))
    ),
)

EVENTS = (
    "ALTER TABLE places ADD COLUMN events INTEGER NOT NULL DEFAULT 0",  # how many there were
    f"""CREATE TABLE place_events (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,  -- in its place, from 1
        run_id TEXT,
        at TEXT,
        body TEXT NOT NULL,  -- its kind and ids as JSON
        UNIQUE (place, number)
    )""",
    "CREATE INDEX place_events_by_run ON place_events (run_id) WHERE run_id IS NOT NULL",
)

EVENTS_BY_SEQUENCE = (
    "ALTER TABLE place_events RENAME TO indexed_events",
    f"""CREATE TABLE place_events (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,  -- in its place, from 1
        run_id TEXT,
        at TEXT,
        body TEXT NOT NULL  -- its kind and ids as JSON
    )""",
    """INSERT INTO place_events (id, place, number, run_id, at, body)
        SELECT id, place, number, run_id, at, body FROM indexed_events ORDER BY id""",
)

ALBUM_INDEX = ("CREATE INDEX messages_by_album ON messages (place, album) WHERE album IS NOT NULL",)

MESSAGE_PARTS = (
    "ALTER TABLE outbox ADD COLUMN reply_id TEXT",  # shared by the parts of a reply that was split
    "ALTER TABLE outbox ADD COLUMN part INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE outbox ADD COLUMN separator TEXT NOT NULL DEFAULT ''",  # between it and the part before it
    "CREATE INDEX outbox_by_reply ON outbox (reply_id, part) WHERE reply_id IS NOT NULL",
    f"""CREATE TABLE message_parts (  -- the messages of a service that one message of ours was sent as
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        message_id TEXT NOT NULL,  -- the platform's
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        part INTEGER NOT NULL,
        separator TEXT NOT NULL,
        content TEXT NOT NULL,  -- its parts as JSON; [] once it is deleted
        PRIMARY KEY (place, message_id)
    ) {BY_KEY}""",
    "CREATE INDEX message_parts_by_message ON message_parts (message, part)",
)

WINDOW_PASTS = (
    f"""CREATE TABLE window_pasts (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        since INTEGER NOT NULL,  -- the number of the message with which the conversation began
        start INTEGER NOT NULL,  -- that of the first message in the window
        text TEXT NOT NULL,
        people TEXT NOT NULL,  -- JSON: the ids of those whose words it is made of
        UNIQUE (place, since, start)
    )""",
)

REACTIONS = (
    "ALTER TABLE reactions ADD COLUMN message INTEGER REFERENCES messages (id) ON DELETE CASCADE",  # none: not known
    "ALTER TABLE reactions ADD COLUMN position INTEGER",  # messages of the place then; none: no prompt tells of it
    "ALTER TABLE reactions ADD COLUMN current INTEGER NOT NULL DEFAULT 1",  # 0: they show others now
    "CREATE INDEX reactions_by_row ON reactions (message) WHERE message IS NOT NULL",
    "CREATE INDEX reactions_by_position ON reactions (place, position) WHERE position IS NOT NULL",
)

HIDDEN_SENTENCES = (
    """CREATE TABLE hidden_sentences (  -- for which a message is hidden: once it holds none of them, it is seen again
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        text TEXT NOT NULL,
        PRIMARY KEY (message, text)
    )""",
    "INSERT INTO hidden_sentences (message, text) SELECT id, text FROM messages WHERE hidden = 1",
)

LANGUAGES = (
    "ALTER TABLE authors ADD COLUMN language TEXT NOT NULL DEFAULT ''",  # of their client, as the service says
)

RETENTION = ("ALTER TABLE runs ADD COLUMN prompts_removed_at TEXT",)  # when they had become too old
FORWARDS = (
    "ALTER TABLE messages ADD COLUMN forwarded_from TEXT",  # whose words a message is, as JSON
    "ALTER TABLE messages ADD COLUMN forward_author INTEGER REFERENCES authors (id)",  # NULL: the account is unknown
    "CREATE INDEX messages_by_forward_author ON messages (forward_author) WHERE forward_author IS NOT NULL",
)
MEDIA_FILES = (
    """CREATE TABLE files (  -- in the folder of media, by their hash
        sha256 TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        mime TEXT NOT NULL,
        width INTEGER,
        height INTEGER,
        seconds REAL,
        pages INTEGER,
        frames INTEGER,  -- of an image
        has_metadata INTEGER NOT NULL,
        at TEXT NOT NULL,
        used_at TEXT NOT NULL  -- UTC, like all moments of these tables: they are compared
    )""",
    "CREATE INDEX files_by_use ON files (used_at)",
    """CREATE TABLE media_files (  -- which file media are, or why they have none
        unique_id TEXT PRIMARY KEY,
        sha256 TEXT REFERENCES files (sha256) ON DELETE CASCADE,
        failure TEXT NOT NULL DEFAULT '',
        failures INTEGER NOT NULL DEFAULT 0,
        retry_at TEXT,  -- NULL: never
        at TEXT NOT NULL
    )""",
    "CREATE INDEX media_files_by_file ON media_files (sha256)",
    """CREATE TABLE file_forms (  -- what a file becomes for models: a still, a smaller picture, a text
        source TEXT NOT NULL REFERENCES files (sha256) ON DELETE CASCADE,
        form TEXT NOT NULL,
        sha256 TEXT REFERENCES files (sha256) ON DELETE CASCADE,  -- NULL: words, or a failure
        text TEXT NOT NULL DEFAULT '',
        failure TEXT NOT NULL DEFAULT '',
        at TEXT NOT NULL,
        PRIMARY KEY (source, form)
    )""",
    "CREATE INDEX file_forms_by_file ON file_forms (sha256)",
    """CREATE TABLE handles (  -- files that a service has
        sha256 TEXT NOT NULL,
        account TEXT NOT NULL,  -- the service and a digest of the key
        name TEXT NOT NULL,
        uri TEXT,  -- NULL: it is not known whether the service has it, since its upload did not end
        mime TEXT NOT NULL,
        at TEXT NOT NULL,
        expires_at TEXT,
        unwanted INTEGER NOT NULL DEFAULT 0,  -- to be deleted at the service
        PRIMARY KEY (account, name)
    )""",
    "CREATE INDEX handles_by_file ON handles (sha256)",
    """CREATE TABLE media_folder (  -- where the files are; written when the store is opened first
        id INTEGER PRIMARY KEY CHECK (id = 1),
        owner TEXT NOT NULL,  -- the id of this store, which its folder names
        path TEXT,  -- NULL: beside the store
        other TEXT  -- a folder that may have files too, while they are moved
    )""",
    "ALTER TABLE descriptions RENAME TO descriptions_before",
    """CREATE TABLE descriptions (  -- of media with several, the newest has the highest rowid
        unique_id TEXT NOT NULL,
        text TEXT NOT NULL,
        body TEXT NOT NULL,  -- the text as JSON
        made_by TEXT NOT NULL,
        at TEXT NOT NULL,
        PRIMARY KEY (unique_id, made_by)
    )""",
    "INSERT INTO descriptions SELECT unique_id, text, body, made_by, at FROM descriptions_before ORDER BY rowid",
    "DROP TABLE descriptions_before",
    """CREATE TABLE description_positions (  -- when a description became known in a place
        unique_id TEXT NOT NULL,
        made_by TEXT NOT NULL,
        place INTEGER NOT NULL REFERENCES places (id),
        position INTEGER NOT NULL,  -- how many messages the place had then
        PRIMARY KEY (unique_id, made_by, place),
        FOREIGN KEY (unique_id, made_by) REFERENCES descriptions (unique_id, made_by) ON DELETE CASCADE
    )""",
    "CREATE INDEX description_positions_by_place ON description_positions (place)",
    """CREATE TABLE description_failures (
        unique_id TEXT NOT NULL,
        made_by TEXT NOT NULL,
        failures INTEGER NOT NULL,
        retry_at TEXT NOT NULL,
        why TEXT NOT NULL,
        PRIMARY KEY (unique_id, made_by)
    )""",
)


class Renames(NamedTuple):
    """Old and new names; columns are given with the new name of their table."""

    tables: dict[str, str]
    columns: tuple[tuple[str, str, str], ...]
    indexes: dict[str, tuple[str, str]]  # by the old name: the new name, and what is indexed under new names


SEARCH_RENAMES = Renames(
    tables={
        "search_said": "search_messages",
        "search_words": "search_terms",
        "search_embedded": "search_progress",
    },
    columns=(
        ("search_places", "words", "indexed_to"),
        ("search_progress", "done", "embedded_to"),
    ),
    indexes={
        "search_words_by_message": ("search_terms_by_message", "search_terms (place, number)"),
        "search_said_by_name": ("search_messages_by_name", "search_messages (name)"),
    },
)

ALL_RENAMES = Renames(
    tables={
        **SEARCH_RENAMES.tables,
        "events": "message_changes",
        "learned": "reading_cursors",
        "forgotten": "fact_exclusions",
        "blocked": "blocked_authors",
    },
    columns=(
        *SEARCH_RENAMES.columns,
        ("messages", "again", "stale"),
        ("descriptions", "words", "text"),
        ("runs", "taken", "message_ids"),
        ("runs", "resumed", "resumes"),
        ("records", "named", "record_run_id"),
        ("layers", "shared", "prefix_length"),
        ("layers", "rest", "suffix"),
        ("facts", "held_from", "valid_from"),
        ("facts", "held_until", "valid_until"),
        ("fact_exclusions", "what", "digest"),
        ("fact_exclusions", "last", "last_message"),
    ),
    indexes={
        **SEARCH_RENAMES.indexes,
        "events_by_message": ("message_changes_by_message", "message_changes (message)"),
        "events_seen": ("message_changes_seen", "message_changes (place, number) WHERE seen = 1"),
        "messages_again": ("messages_stale", "messages (place, number) WHERE stale = 1"),
    },
)


def rename_all(database: Database, renames: Renames) -> None:
    """Give everything its new name."""
    for old, new in renames.tables.items():
        database.execute(f"ALTER TABLE {old} RENAME TO {new}")
    for table, old, new in renames.columns:
        database.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    for old, (new, content) in renames.indexes.items():
        database.execute(f"DROP INDEX {old}")
        database.execute(f"CREATE INDEX {new} ON {content}")


def revert_all(database: Database, renames: Renames) -> None:
    """Give everything its old name again."""
    select = "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?"
    for table, old, new in renames.columns:
        database.execute(f"ALTER TABLE {table} RENAME COLUMN {new} TO {old}")
    for old, new in renames.tables.items():
        database.execute(f"ALTER TABLE {new} RENAME TO {old}")
    for old, (new, _) in renames.indexes.items():
        (statement,) = database.execute(select, (new,)).fetchone()
        database.execute(f"DROP INDEX {new}")
        database.execute(statement.replace(new, old, 1))

"""What was added to the tables for updates of services, places and events, step by step. Pure."""

from palaver.store.sqlite import BY_KEY, BYTES, SEQUENCE

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
    "ALTER TABLE places ADD COLUMN direct_until INTEGER NOT NULL DEFAULT 0",  # after the last message said in private
    "ALTER TABLE places ADD COLUMN open_until INTEGER NOT NULL DEFAULT 0",  # and after the last that others could hear
    *(
        f"""UPDATE places SET {column} = coalesce((
            SELECT max(m.number) + 1 FROM messages m JOIN titles t ON t.id = m.title
            WHERE m.place = places.id AND (json_extract(t.body, '$.kind') = 'direct') = {direct}
        ), 0)"""  # noqa: S608
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

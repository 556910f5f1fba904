"""The tables of versions 1 to 8, in SQL that more than one database understands; `table_changes` has newer ones. Pure.

`id` is always a local sequence; the ids that platforms and the engine give are text, under names of their own. JSON is
exact and for the program; the columns beside it are for people, and for finding things.
"""

from tertulia.store.sqlite.connection import BY_KEY, BYTES, SEQUENCE

FIRST = (
    f"""CREATE TABLE places (
        id {SEQUENCE},
        place_key TEXT NOT NULL UNIQUE,  -- platform, place and thread as JSON
        platform TEXT NOT NULL,
        place_id TEXT NOT NULL,
        thread TEXT,
        messages INTEGER NOT NULL DEFAULT 0,  -- how many were ever kept, the number of the next one
        changes INTEGER NOT NULL DEFAULT 0  -- how many events there were
    )""",
    f"""CREATE TABLE titles (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id),
        title TEXT NOT NULL,
        body TEXT NOT NULL UNIQUE  -- Place as JSON
    )""",
    f"""CREATE TABLE authors (
        id {SEQUENCE},
        platform TEXT NOT NULL,
        author_id TEXT NOT NULL,
        UNIQUE (platform, author_id)
    )""",
    f"""CREATE TABLE names (
        id {SEQUENCE},
        author INTEGER NOT NULL REFERENCES authors (id),
        name TEXT NOT NULL,
        username TEXT,
        seen_at TEXT,  -- when the author first went by it
        body TEXT NOT NULL,  -- Author as JSON
        UNIQUE (author, body)
    )""",
    f"""CREATE TABLE messages (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id),
        number INTEGER NOT NULL,  -- in its place, from 0; it never changes
        message_id TEXT NOT NULL,  -- the platform's
        role TEXT NOT NULL CHECK (role IN ('user', 'model')),
        text TEXT NOT NULL,
        media TEXT,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'taken', 'passed', 'own')),
        run_id TEXT,  -- the run that took it
        name INTEGER NOT NULL REFERENCES names (id),
        title INTEGER NOT NULL REFERENCES titles (id),
        sent_at TEXT,
        received_at TEXT,  -- none of the agent's own are
        edited_at TEXT,
        deleted INTEGER NOT NULL DEFAULT 0,
        reply_to TEXT,
        reply_author INTEGER REFERENCES authors (id),
        reply TEXT,
        parts TEXT NOT NULL,
        UNIQUE (place, message_id),
        UNIQUE (place, number)
    )""",
    "CREATE INDEX messages_waiting ON messages (place, number) WHERE state = 'waiting'",
    "CREATE INDEX messages_by_name ON messages (name)",
    "CREATE INDEX messages_by_reply ON messages (place, reply_to) WHERE reply_to IS NOT NULL",
    "CREATE INDEX messages_by_reply_author ON messages (reply_author) WHERE reply_author IS NOT NULL",
    f"""CREATE TABLE events (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id),
        change INTEGER NOT NULL,  -- counted in the place, from 1
        message INTEGER NOT NULL REFERENCES messages (id),
        number INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('edited', 'deleted', 'said', 'removed')),
        at TEXT,
        before TEXT,  -- Message as JSON, as it was until then
        UNIQUE (place, change)
    )""",
    "CREATE INDEX events_by_message ON events (message)",
    """CREATE TABLE turns (
        message INTEGER PRIMARY KEY REFERENCES messages (id),
        turns TEXT NOT NULL  -- what the model did and said to write it
    )""",
    """CREATE TABLE media (
        message INTEGER NOT NULL REFERENCES messages (id),
        unique_id TEXT NOT NULL,
        media_kind TEXT NOT NULL,
        PRIMARY KEY (unique_id, message)
    )""",
    "CREATE INDEX media_by_message ON media (message)",
    """CREATE TABLE descriptions (
        unique_id TEXT PRIMARY KEY,
        words TEXT NOT NULL,
        body TEXT NOT NULL,  -- the words as JSON
        made_by TEXT NOT NULL,
        at TEXT NOT NULL
    )""",
    f"""CREATE TABLE runs (
        id {SEQUENCE},
        run_id TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL REFERENCES places (id),
        title INTEGER NOT NULL REFERENCES titles (id),
        target TEXT NOT NULL,
        taken TEXT NOT NULL,
        began_at TEXT NOT NULL,
        horizon INTEGER NOT NULL,
        model TEXT NOT NULL,
        profile TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('open', 'done', 'failed')),
        ended_at TEXT,
        why TEXT NOT NULL,
        rungs TEXT NOT NULL
    )""",
    "CREATE INDEX runs_open ON runs (id) WHERE status = 'open'",
    "CREATE INDEX runs_by_place ON runs (place)",
    f"""CREATE TABLE records (
        id {SEQUENCE},
        run_id TEXT NOT NULL REFERENCES runs (run_id),
        step INTEGER NOT NULL,
        valid INTEGER NOT NULL,
        at TEXT NOT NULL,
        named TEXT,  -- the run that the record itself names
        turn TEXT NOT NULL,
        raw TEXT,
        removed INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX records_by_run ON records (run_id)",
    f"""CREATE TABLE tool_runs (
        id {SEQUENCE},
        run_id TEXT NOT NULL REFERENCES runs (run_id),
        step INTEGER NOT NULL,
        number INTEGER NOT NULL,
        call TEXT NOT NULL,
        began_at TEXT NOT NULL,
        result TEXT,
        ended_at TEXT,
        removed INTEGER NOT NULL DEFAULT 0,
        UNIQUE (run_id, step, number)
    )""",
    f"""CREATE TABLE layers (
        id {SEQUENCE},
        hash TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        base INTEGER REFERENCES layers (id),  -- the layer it begins like
        shared INTEGER NOT NULL DEFAULT 0,  -- how many bytes of that one it begins with
        depth INTEGER NOT NULL DEFAULT 0,  -- how many layers must be read to rebuild it, besides itself
        rest TEXT NOT NULL,  -- Layer as JSON, from there on
        removed INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX layers_by_base ON layers (base) WHERE base IS NOT NULL",
    f"""CREATE TABLE toolsets (
        id {SEQUENCE},
        hash TEXT NOT NULL UNIQUE,
        tools TEXT NOT NULL
    )""",
    f"""CREATE TABLE prompts (
        id {SEQUENCE},
        run_id TEXT NOT NULL REFERENCES runs (run_id),
        step INTEGER NOT NULL,
        at TEXT NOT NULL,
        toolset INTEGER NOT NULL REFERENCES toolsets (id),
        settings TEXT NOT NULL,
        cached TEXT
    )""",
    "CREATE INDEX prompts_by_run ON prompts (run_id, step)",
    """CREATE TABLE prompt_layers (
        prompt INTEGER NOT NULL REFERENCES prompts (id),
        position INTEGER NOT NULL,
        layer INTEGER NOT NULL REFERENCES layers (id),
        PRIMARY KEY (prompt, position)
    )""",
    "CREATE INDEX prompt_layers_by_layer ON prompt_layers (layer)",
    f"""CREATE TABLE outbox (
        id {SEQUENCE},
        outgoing_id TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL REFERENCES places (id),
        run_id TEXT,
        task_id TEXT,
        status TEXT NOT NULL CHECK (status IN ('waiting', 'sending', 'sent', 'doubtful', 'dropped')),
        attempts INTEGER NOT NULL,
        text TEXT NOT NULL,
        made_at TEXT NOT NULL,
        sent_at TEXT,
        message_id TEXT,
        why TEXT NOT NULL,
        author TEXT,
        turns TEXT NOT NULL,
        reply TEXT NOT NULL,
        position INTEGER  -- how many messages the place had when it was sent
    )""",
    "CREATE INDEX outbox_by_status ON outbox (status, id)",
    f"""CREATE TABLE tasks (
        id {SEQUENCE},
        task_id TEXT NOT NULL UNIQUE,
        place INTEGER REFERENCES places (id),
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        due_at TEXT,  -- UTC
        body TEXT NOT NULL
    )""",
    "CREATE INDEX tasks_by_status ON tasks (status)",
    "CREATE INDEX tasks_by_place ON tasks (place)",
)

ENGINE = (
    "ALTER TABLE runs ADD COLUMN resumed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE places ADD COLUMN delimiter TEXT",
    "ALTER TABLE places ADD COLUMN beginning INTEGER NOT NULL DEFAULT 0",  # of the conversation: a message's number
    "ALTER TABLE events ADD COLUMN position INTEGER NOT NULL DEFAULT 0",  # messages of the place when it happened
    "ALTER TABLE events ADD COLUMN seen INTEGER NOT NULL DEFAULT 0",  # whether a run had shown the message by then
    "CREATE INDEX events_seen ON events (place, number) WHERE seen = 1",
    "ALTER TABLE tasks ADD COLUMN run_id TEXT",  # whose plan it belongs to
    "ALTER TABLE tasks ADD COLUMN free INTEGER NOT NULL DEFAULT 0",  # whether it waits for nothing but its time
    "DROP INDEX tasks_by_status",  # it would be preferred to the next two
    "CREATE INDEX tasks_running ON tasks (id) WHERE status = 'running'",
    "CREATE INDEX tasks_due ON tasks (due_at) WHERE status = 'pending' AND free = 1",
    "CREATE INDEX tasks_by_run ON tasks (run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX tasks_to_call_off ON tasks (place) WHERE status = 'pending' AND run_id IS NOT NULL",
    """CREATE TABLE blocked (
        author INTEGER PRIMARY KEY REFERENCES authors (id),
        at TEXT NOT NULL
    )""",
    f"""CREATE TABLE facts (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id),
        about INTEGER NOT NULL REFERENCES authors (id),
        text TEXT NOT NULL,
        source TEXT NOT NULL,  -- the id of the message it was learned from
        run_id TEXT,
        learned_at TEXT NOT NULL,
        UNIQUE (place, about, text)
    )""",
    "CREATE INDEX facts_by_about ON facts (about)",
)

MEMORY = (
    f"""CREATE TABLE facts (
        id {SEQUENCE},
        fact_id TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL REFERENCES places (id),  -- where it was said
        title INTEGER NOT NULL REFERENCES titles (id),
        direct INTEGER NOT NULL,  -- whether that is a direct chat
        about INTEGER NOT NULL REFERENCES authors (id),
        name TEXT NOT NULL,  -- what they went by
        text TEXT NOT NULL,
        key TEXT NOT NULL,
        scope TEXT NOT NULL CHECK (scope IN ('chat', 'direct', 'everywhere')),
        confidence REAL NOT NULL,
        learned_at TEXT NOT NULL,  -- UTC, like all moments of facts: they are compared
        held_from TEXT,
        held_until TEXT,
        superseded_by TEXT,  -- the id of the newer fact
        CHECK (direct = 0 OR scope <> 'everywhere')
    )""",
    "CREATE INDEX facts_by_about ON facts (about)",
    "CREATE INDEX facts_by_place ON facts (place)",
    "CREATE INDEX facts_superseded ON facts (superseded_by) WHERE superseded_by IS NOT NULL",
    f"""CREATE TABLE fact_sources (
        id {SEQUENCE},
        fact INTEGER NOT NULL REFERENCES facts (id),
        place INTEGER NOT NULL REFERENCES places (id),
        message_id TEXT NOT NULL,
        UNIQUE (fact, message_id)
    )""",
    "CREATE INDEX fact_sources_by_message ON fact_sources (place, message_id)",
    f"""CREATE TABLE summaries (
        id {SEQUENCE},
        about INTEGER NOT NULL REFERENCES authors (id),
        place INTEGER NOT NULL REFERENCES places (id),  -- where it may be told: it was made of what may be heard there
        direct INTEGER NOT NULL,
        text TEXT NOT NULL,
        facts INTEGER NOT NULL,  -- how many it was made of
        digest TEXT NOT NULL,  -- of those
        made_at TEXT NOT NULL,
        UNIQUE (about, place, direct)
    )""",
    "CREATE INDEX summaries_by_place ON summaries (place)",
    f"""CREATE TABLE episodes (
        id {SEQUENCE},
        episode_id TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL REFERENCES places (id),
        title INTEGER NOT NULL REFERENCES titles (id),
        start INTEGER NOT NULL,  -- the number of its first message
        stop INTEGER NOT NULL,  -- the number after its last one
        began_at TEXT,
        ended_at TEXT,
        topic TEXT NOT NULL,
        summary TEXT NOT NULL,
        importance REAL NOT NULL,
        people TEXT NOT NULL,  -- JSON: the ids of those who spoke
        tags TEXT NOT NULL  -- JSON
    )""",
    "CREATE INDEX episodes_by_place ON episodes (place, start)",
    """CREATE TABLE learned (
        place INTEGER PRIMARY KEY REFERENCES places (id),
        facts INTEGER NOT NULL DEFAULT 0,  -- the number up to which its messages were read for facts
        episodes INTEGER NOT NULL DEFAULT 0  -- and for episodes
    )""",
)

SEARCH = (
    """CREATE TABLE search_places (
        place INTEGER PRIMARY KEY REFERENCES places (id),
        words INTEGER NOT NULL DEFAULT 0,  -- the number up to which its messages are indexed
        edition INTEGER NOT NULL DEFAULT 0  -- how often something was changed that had been indexed
    )""",
    f"""CREATE TABLE search_words (
        place INTEGER NOT NULL,
        term TEXT NOT NULL,
        number INTEGER NOT NULL,  -- of the message in its place
        packed INTEGER NOT NULL,  -- the weight of the term there, and where it stands
        PRIMARY KEY (place, term, number)
    ) {BY_KEY}""",
    "CREATE INDEX search_words_by_message ON search_words (place, number)",
    f"""CREATE TABLE search_said (
        place INTEGER NOT NULL REFERENCES places (id),
        number INTEGER NOT NULL,
        name INTEGER NOT NULL REFERENCES names (id),
        at INTEGER NOT NULL,  -- seconds
        length INTEGER NOT NULL,
        traits INTEGER NOT NULL,
        first INTEGER NOT NULL,  -- the days it speaks of
        last INTEGER NOT NULL,
        PRIMARY KEY (place, number)
    ) {BY_KEY}""",
    "CREATE INDEX search_said_by_name ON search_said (name)",
    f"""CREATE TABLE search_vectors (
        place INTEGER NOT NULL,
        embedder TEXT NOT NULL,
        number INTEGER NOT NULL,
        vector {BYTES} NOT NULL,  -- 8 bits a number, of length 127
        PRIMARY KEY (place, embedder, number)
    ) {BY_KEY}""",
    """CREATE TABLE search_embedded (
        place INTEGER NOT NULL REFERENCES places (id),
        embedder TEXT NOT NULL,
        done INTEGER NOT NULL,  -- the number up to which all that is indexed has vectors
        PRIMARY KEY (place, embedder)
    )""",
    """CREATE TABLE search_embedder (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        embedder TEXT NOT NULL  -- the one that was chosen
    )""",
)

AGAIN = (
    "ALTER TABLE messages ADD COLUMN again INTEGER NOT NULL DEFAULT 0",  # changed since it was read for facts
    "CREATE INDEX messages_again ON messages (place, number) WHERE again = 1",
    "CREATE INDEX titles_place ON titles (place)",
    """CREATE TABLE forgotten (
        about INTEGER NOT NULL REFERENCES authors (id),
        what TEXT NOT NULL,  -- the digest of a fact; nothing: all that could be learned of them
        last INTEGER NOT NULL,  -- the id of the last message it is not learned from again
        PRIMARY KEY (about, what)
    )""",
)

HIDDEN = ("ALTER TABLE messages ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0",)  # from all that models are shown

PROPOSALS = (
    f"""CREATE TABLE proposals (  -- what a model would forget
        id {SEQUENCE},
        run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
        fact INTEGER NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
        until TEXT NOT NULL,  -- UTC
        UNIQUE (run_id, fact)
    )""",
    "CREATE INDEX proposals_by_fact ON proposals (fact)",
)

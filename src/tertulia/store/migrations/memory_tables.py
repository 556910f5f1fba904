"""The tables of memory, of the search index and of files, in SQL that more than one database understands. Pure."""

from tertulia.store.database import BY_KEY, BYTES, SEQUENCE

MEMORY = (
    f"""CREATE TABLE facts (
        id {SEQUENCE},
        fact_id TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL REFERENCES places (id),  -- where it was said
        title INTEGER NOT NULL,
        direct INTEGER NOT NULL,  -- whether that is a direct chat
        about INTEGER NOT NULL REFERENCES authors (id),
        name TEXT NOT NULL,  -- what they went by
        text TEXT NOT NULL,
        digest TEXT NOT NULL,  -- of what it says, not readable: the same for facts that say the same
        key TEXT NOT NULL,
        scope TEXT NOT NULL CHECK (scope IN ('chat', 'direct', 'everywhere')),
        confidence REAL NOT NULL,
        learned_at TEXT NOT NULL,  -- UTC, like all moments of facts: they are compared
        valid_from TEXT,
        valid_until TEXT,
        superseded_by TEXT,  -- the id of the newer fact
        imported_from TEXT NOT NULL DEFAULT '',  -- the program that learned it; then it may have no sources
        forgotten_at TEXT,  -- since then nobody sees it; the row is removed once all that states it is
        agent TEXT,  -- whose own it is; NULL: all agents share it
        CHECK (direct = 0 OR scope <> 'everywhere')
    )""",
    "CREATE INDEX facts_by_about ON facts (about)",
    "CREATE INDEX facts_by_place ON facts (place)",
    "CREATE INDEX facts_forgotten ON facts (id) WHERE forgotten_at IS NOT NULL",
    "CREATE INDEX facts_superseded ON facts (superseded_by) WHERE superseded_by IS NOT NULL",
    f"""CREATE TABLE fact_sources (
        id {SEQUENCE},
        fact INTEGER NOT NULL REFERENCES facts (id),
        place INTEGER NOT NULL REFERENCES places (id),
        message_id TEXT NOT NULL,
        UNIQUE (fact, message_id)
    )""",
    "CREATE INDEX fact_sources_by_message ON fact_sources (place, message_id)",
    """CREATE TABLE fact_exclusions (
        about INTEGER NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
        digest TEXT NOT NULL,  -- the digest of a fact; nothing: all that could be learned of them
        last_message INTEGER NOT NULL,  -- the id of the last message it is not learned from again
        PRIMARY KEY (about, digest)
    )""",
    f"""CREATE TABLE proposals (  -- what a model would forget
        id {SEQUENCE},
        run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
        fact INTEGER NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
        until TEXT NOT NULL,  -- UTC
        UNIQUE (run_id, fact)
    )""",
    "CREATE INDEX proposals_by_fact ON proposals (fact)",
    f"""CREATE TABLE summaries (
        id {SEQUENCE},
        about INTEGER NOT NULL REFERENCES authors (id),
        place INTEGER NOT NULL REFERENCES places (id),  -- where it may be told: it was made of what may be heard there
        direct INTEGER NOT NULL,
        text TEXT NOT NULL,
        facts INTEGER NOT NULL,  -- how many it was made of
        digest TEXT NOT NULL,  -- of those
        made_at TEXT NOT NULL,
        agent TEXT,  -- for which it was made, where that is limited; NULL: for all others
        UNIQUE (about, place, direct, agent)
    )""",
    "CREATE INDEX summaries_by_place ON summaries (place)",
    f"""CREATE TABLE episodes (
        id {SEQUENCE},
        episode_id TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL REFERENCES places (id),
        title INTEGER NOT NULL,
        start INTEGER NOT NULL,  -- the number of its first message
        stop INTEGER NOT NULL,  -- the number after its last one
        began_at TEXT,
        ended_at TEXT,
        topic TEXT NOT NULL,
        summary TEXT NOT NULL,
        importance REAL NOT NULL,
        people TEXT NOT NULL,  -- JSON: the ids of those who spoke
        tags TEXT NOT NULL,  -- JSON
        hidden INTEGER NOT NULL DEFAULT 0  -- from all that models are shown
    )""",
    "CREATE INDEX episodes_by_place ON episodes (place, start)",
    f"""CREATE TABLE episode_people (  -- those who spoke in an episode
        episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
        author INTEGER NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
        PRIMARY KEY (episode, author)
    ) {BY_KEY}""",
    "CREATE INDEX episode_people_by_author ON episode_people (author)",
    f"""CREATE TABLE recalled (  -- what the first prompt of a run shows from memory
        id {SEQUENCE},
        run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
        fact INTEGER REFERENCES facts (id) ON DELETE CASCADE,
        message INTEGER REFERENCES messages (id) ON DELETE CASCADE,
        episode INTEGER REFERENCES episodes (id) ON DELETE CASCADE,
        score REAL,
        why TEXT NOT NULL  -- it is shown
    )""",
    "CREATE INDEX recalled_by_run ON recalled (run_id)",
    "CREATE INDEX recalled_by_fact ON recalled (fact) WHERE fact IS NOT NULL",
    "CREATE INDEX recalled_by_message ON recalled (message) WHERE message IS NOT NULL",
    "CREATE INDEX recalled_by_episode ON recalled (episode) WHERE episode IS NOT NULL",
    f"""CREATE TABLE window_pasts (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        since INTEGER NOT NULL,  -- the number of the message with which the conversation began
        start INTEGER NOT NULL,  -- that of the first message in the window
        text TEXT NOT NULL,
        people TEXT NOT NULL,  -- JSON: the ids of those whose words it is made of
        agent TEXT,  -- for which it was made, where that is limited; NULL: for all others
        UNIQUE (place, since, start, agent)
    )""",
    """CREATE TABLE reading_cursors (
        place INTEGER PRIMARY KEY REFERENCES places (id),
        facts INTEGER NOT NULL DEFAULT 0,  -- the number up to which its messages were read for facts
        episodes INTEGER NOT NULL DEFAULT 0  -- and for episodes
    )""",
    f"""CREATE TABLE agent_cursors (  -- up to which run of an agent its messages were read for facts of its own
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        agent TEXT NOT NULL,
        run INTEGER NOT NULL,  -- its row
        PRIMARY KEY (place, agent)
    ) {BY_KEY}""",
    """CREATE TABLE hidden_sentences (  -- for which a message is hidden: once it holds none of them, it is seen again
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        text TEXT NOT NULL,
        PRIMARY KEY (message, text)
    )""",
)

SEARCH = (
    """CREATE TABLE search_places (
        place INTEGER PRIMARY KEY REFERENCES places (id),
        indexed_to INTEGER NOT NULL DEFAULT 0,  -- the number up to which its messages are indexed
        edition INTEGER NOT NULL DEFAULT 0  -- how often something was changed that had been indexed
    )""",
    f"""CREATE TABLE search_terms (
        place INTEGER NOT NULL,
        term TEXT NOT NULL,
        number INTEGER NOT NULL,  -- of the message in its place
        packed INTEGER NOT NULL,  -- the weight of the term there, and where it stands
        PRIMARY KEY (place, term, number)
    ) {BY_KEY}""",
    "CREATE INDEX search_terms_by_message ON search_terms (place, number)",
    f"""CREATE TABLE search_messages (
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
    "CREATE INDEX search_messages_by_name ON search_messages (name)",
    f"""CREATE TABLE search_stale (  -- messages that were indexed and are not as they are now
        place INTEGER NOT NULL REFERENCES places (id),
        number INTEGER NOT NULL,
        PRIMARY KEY (place, number)
    ) {BY_KEY}""",
    f"""CREATE TABLE search_vectors (
        place INTEGER NOT NULL,
        embedder TEXT NOT NULL,
        number INTEGER NOT NULL,
        vector {BYTES} NOT NULL,  -- 8 bits a number, of length 127
        PRIMARY KEY (place, embedder, number)
    ) {BY_KEY}""",
    """CREATE TABLE search_progress (
        place INTEGER NOT NULL REFERENCES places (id),
        embedder TEXT NOT NULL,
        embedded_to INTEGER NOT NULL,  -- the number up to which all that is indexed has vectors
        PRIMARY KEY (place, embedder)
    )""",
    """CREATE TABLE search_embedder (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        embedder TEXT NOT NULL  -- the one that was chosen
    )""",
)

FILES = (
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
    f"""CREATE TABLE model_caches (  -- explicit caches of prompts that a service has
        id {SEQUENCE},
        label TEXT NOT NULL UNIQUE,  -- our name of it, which the service shows
        owner TEXT NOT NULL,  -- the id of the store that made it
        account TEXT NOT NULL,  -- the service and a digest of the key
        model TEXT NOT NULL,
        fingerprint TEXT NOT NULL,  -- digests of its content
        expires_at TEXT NOT NULL,
        name TEXT,  -- at the service; NULL: it is not known, since making it did not end
        replaces TEXT NOT NULL,  -- the labels of those that it has grown out of
        unwanted INTEGER NOT NULL DEFAULT 0  -- to be deleted at the service
    )""",
    """CREATE TABLE media_folder (  -- where the files are; written when the store is opened first
        id INTEGER PRIMARY KEY CHECK (id = 1),
        owner TEXT NOT NULL,  -- the id of this store, which its folder names
        path TEXT,  -- NULL: beside the store
        other TEXT  -- a folder that may have files too, while they are moved
    )""",
    f"""CREATE TABLE descriptions (  -- of media with several, the newest has the highest id
        id {SEQUENCE},
        unique_id TEXT NOT NULL,
        text TEXT NOT NULL,
        body TEXT NOT NULL,  -- the text as JSON
        made_by TEXT NOT NULL,
        at TEXT NOT NULL,
        UNIQUE (unique_id, made_by)
    )""",
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

"""The tables of conversations, runs and chats, in SQL that more than one database understands. Pure.

`id` is always a local sequence; the ids that platforms and the engine give are text, under names of their own. JSON is
exact and for the program; the columns beside it are for people, and for finding things.
"""

from tertulia.store.database import BY_KEY, BYTES, SEQUENCE

CONVERSATIONS = (
    f"""CREATE TABLE places (
        id {SEQUENCE},
        place_key TEXT NOT NULL UNIQUE,  -- platform, place and thread as JSON
        platform TEXT NOT NULL,
        place_id TEXT NOT NULL,
        thread TEXT,
        messages INTEGER NOT NULL DEFAULT 0,  -- how many were ever kept, the number of the next one
        changes INTEGER NOT NULL DEFAULT 0,  -- how many edits, deletions and the like there were
        removed INTEGER NOT NULL DEFAULT 0,  -- the last change by which something was deleted or forgotten
        delimiter TEXT,
        beginning INTEGER NOT NULL DEFAULT 0,  -- of the conversation: the number of a message
        direct_until INTEGER NOT NULL DEFAULT 0,  -- after its last message as a direct chat
        open_until INTEGER NOT NULL DEFAULT 0,  -- after its last message as a group
        service TEXT NOT NULL DEFAULT '',  -- where the ids of its people are unique
        left_at TEXT,  -- since when we cannot write there
        events INTEGER NOT NULL DEFAULT 0  -- how many there were
    )""",
    f"""CREATE TABLE titles (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id),
        title TEXT NOT NULL,
        direct INTEGER NOT NULL,  -- whether that is a direct chat
        body TEXT NOT NULL UNIQUE  -- Place as JSON
    )""",  # messages, runs, facts and episodes name one without a reference, which would be looked for in all of them
    "CREATE INDEX titles_place ON titles (place)",
    f"""CREATE TABLE authors (
        id {SEQUENCE},
        platform TEXT NOT NULL,
        author_id TEXT NOT NULL,
        language TEXT NOT NULL DEFAULT '',  -- of their client, as the service says
        UNIQUE (platform, author_id)
    )""",
    f"""CREATE TABLE names (
        id {SEQUENCE},
        author INTEGER NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
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
        message_id TEXT NOT NULL,  -- the platform's; of a doubtful one that of its delivery
        role TEXT NOT NULL CHECK (role IN ('user', 'model')),
        text TEXT NOT NULL,
        media TEXT,
        own INTEGER NOT NULL DEFAULT 0,  -- whether an agent of this engine wrote it
        agent TEXT,  -- which one; empty: the default agent; NULL: none of them
        name INTEGER NOT NULL REFERENCES names (id),
        title INTEGER NOT NULL,
        sent_at TEXT,
        received_at TEXT,  -- none of the agent's own are
        edited_at TEXT,
        deleted INTEGER NOT NULL DEFAULT 0,
        reply_to TEXT,
        reply_author INTEGER REFERENCES authors (id),
        reply TEXT,
        parts TEXT NOT NULL,
        stale INTEGER NOT NULL DEFAULT 0,  -- changed since it was read for facts
        album TEXT,  -- the id that messages sent as one album share
        hidden INTEGER NOT NULL DEFAULT 0,  -- from all that models are shown
        doubtful INTEGER NOT NULL DEFAULT 0,  -- whether it is not known if people received all of it
        forwarded_from TEXT,  -- whose words a message is, as JSON
        forward_author INTEGER REFERENCES authors (id),  -- NULL: the account is unknown
        UNIQUE (place, message_id),
        UNIQUE (place, number)
    )""",
    "CREATE INDEX messages_by_name ON messages (name)",
    "CREATE INDEX messages_by_reply ON messages (place, reply_to) WHERE reply_to IS NOT NULL",
    "CREATE INDEX messages_by_reply_author ON messages (reply_author) WHERE reply_author IS NOT NULL",
    "CREATE INDEX messages_by_album ON messages (place, album) WHERE album IS NOT NULL",
    "CREATE INDEX messages_hidden ON messages (place) WHERE hidden = 1",
    "CREATE INDEX messages_stale ON messages (place, number) WHERE stale = 1",
    "CREATE INDEX messages_by_forward_author ON messages (forward_author) WHERE forward_author IS NOT NULL",
    f"""CREATE TABLE decisions (  -- why a message that was received is or is not answered
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        agent TEXT NOT NULL DEFAULT '',  -- that is meant; empty: nobody, the only one, or it is not decided yet
        place INTEGER NOT NULL,  -- that of the message; a reference would be looked for with every removed place
        reason TEXT NOT NULL,
        address TEXT,  -- how the message speaks to the agent
        edited INTEGER NOT NULL DEFAULT 0,  -- whether it was decided once more after an edit
        run_id TEXT,  -- the run that took the message
        at TEXT,  -- when it was decided; of one that waits, since when
        position INTEGER NOT NULL DEFAULT 0,  -- in which the agents that are meant answer
        addressed TEXT,  -- names of agents as JSON, of whom the platform says that the message is for them
        PRIMARY KEY (message, agent)
    ) {BY_KEY}""",
    "CREATE INDEX decisions_waiting ON decisions (place, message) WHERE reason = 'waiting'",
    f"""CREATE TABLE message_changes (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id),
        change INTEGER NOT NULL,  -- counted in the place, from 1
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('edited', 'deleted', 'said', 'removed')),
        at TEXT,
        before TEXT,  -- Message as JSON, as it was until then
        position INTEGER NOT NULL DEFAULT 0,  -- messages of the place when it happened
        seen INTEGER NOT NULL DEFAULT 0,  -- whether a run had shown the message by then
        UNIQUE (place, change)
    )""",
    "CREATE INDEX message_changes_by_message ON message_changes (message)",
    "CREATE INDEX message_changes_seen ON message_changes (place, number) WHERE seen = 1",
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
    """CREATE TABLE turns (
        message INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
        turns TEXT NOT NULL  -- what the model did and said to write it
    )""",
    """CREATE TABLE media (
        message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        unique_id TEXT NOT NULL,
        media_kind TEXT NOT NULL,
        PRIMARY KEY (unique_id, message)
    )""",
    "CREATE INDEX media_by_message ON media (message)",
    f"""CREATE TABLE reactions (
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        message_id TEXT NOT NULL,
        name INTEGER NOT NULL REFERENCES names (id),
        emojis TEXT NOT NULL,  -- JSON: all that they show
        at TEXT,
        message INTEGER REFERENCES messages (id) ON DELETE CASCADE,  -- none: not known
        position INTEGER,  -- messages of the place then; none: no prompt tells of it
        current INTEGER NOT NULL DEFAULT 1  -- 0: they show others now
    )""",
    "CREATE INDEX reactions_by_message ON reactions (place, message_id)",
    "CREATE INDEX reactions_by_name ON reactions (name)",
    "CREATE INDEX reactions_by_row ON reactions (message) WHERE message IS NOT NULL",
    "CREATE INDEX reactions_by_position ON reactions (place, position) WHERE position IS NOT NULL",
    f"""CREATE TABLE commands (  -- to be carried out
        id {SEQUENCE},
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        name INTEGER NOT NULL REFERENCES names (id),
        message TEXT NOT NULL,
        command TEXT NOT NULL,
        argument TEXT NOT NULL,
        agent TEXT NOT NULL DEFAULT '',  -- whose account it names; empty: it is for the place
        horizon INTEGER NOT NULL  -- messages of the place when it was given
    )""",
    "CREATE INDEX commands_by_name ON commands (name)",
    "CREATE INDEX commands_by_place ON commands (place)",
    f"""CREATE TABLE new_numbers (  -- of messages while an import puts them in order; empty between transactions
        place INTEGER NOT NULL,
        number INTEGER NOT NULL,
        new_number INTEGER NOT NULL,
        PRIMARY KEY (place, number)
    ) {BY_KEY}""",
    f"""CREATE TABLE place_aliases (
        id {SEQUENCE},  -- in the order in which places moved
        place_key TEXT NOT NULL UNIQUE,  -- of a place that goes on as another one
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE
    )""",
    "CREATE INDEX place_aliases_by_place ON place_aliases (place)",
    f"""CREATE TABLE place_events (
        id {SEQUENCE},
        place INTEGER NOT NULL,  -- a reference would be looked for in all of them with every removed place
        number INTEGER NOT NULL,  -- in its place, from 1
        run_id TEXT,
        at TEXT,
        body TEXT NOT NULL  -- its kind and ids as JSON
    )""",
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
    """CREATE TABLE blocked_authors (
        author INTEGER PRIMARY KEY REFERENCES authors (id) ON DELETE CASCADE,
        at TEXT NOT NULL,
        until TEXT  -- in UTC; NULL for ever
    )""",
    f"""CREATE TABLE forgets (  -- of people; who they were is removed when it is done
        id {SEQUENCE},
        platform TEXT NOT NULL,
        author_id TEXT NOT NULL,
        at TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('removing', 'removed', 'done'))  -- removed: the file is not rewritten yet
    )""",
    """CREATE TABLE cap_notices (  -- whom we told that a cap on what may be spent is reached
        day TEXT NOT NULL,  -- in UTC
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        author INTEGER NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
        PRIMARY KEY (day, place, author)
    )""",
    "CREATE INDEX cap_notices_by_place ON cap_notices (place)",
    "CREATE INDEX cap_notices_by_author ON cap_notices (author)",
    f"""CREATE TABLE owner_settings (  -- what owners changed by commands
        id {SEQUENCE},
        name TEXT NOT NULL UNIQUE,  -- of the command
        value TEXT NOT NULL,
        replaced TEXT NOT NULL,  -- the value of the config at that time
        at TEXT NOT NULL
    )""",
    f"""CREATE TABLE agents (  -- that owners added while the bot ran
        id {SEQUENCE},
        name TEXT NOT NULL,
        text TEXT NOT NULL,  -- of its persona
        author INTEGER REFERENCES authors (id) ON DELETE SET NULL,  -- who added it; NULL: forgotten since
        at TEXT NOT NULL,
        removed_at TEXT
    )""",
    "CREATE UNIQUE INDEX agents_by_name ON agents (name) WHERE removed_at IS NULL",
    "CREATE INDEX agents_by_author ON agents (author) WHERE author IS NOT NULL",
    """CREATE TABLE place_agents (  -- which administrators chose
        place INTEGER PRIMARY KEY REFERENCES places (id) ON DELETE CASCADE,
        agents TEXT,  -- JSON: their names; NULL: not chosen
        default_agent TEXT  -- NULL: not chosen
    )""",
    f"""CREATE TABLE presences (  -- from which message to which an agent was in a place
        place INTEGER NOT NULL REFERENCES places (id) ON DELETE CASCADE,
        agent TEXT NOT NULL,
        since INTEGER NOT NULL,  -- the number of the first message
        until INTEGER,  -- that of the first one after the last; NULL: it is still there
        joined_at TEXT NOT NULL,
        left_at TEXT,
        PRIMARY KEY (place, agent, since)
    ) {BY_KEY}""",
    "CREATE INDEX presences_of_agents ON presences (agent, place) WHERE until IS NULL",
    f"""CREATE TABLE orders (  -- what people asked of the bot from outside of its process
        id {SEQUENCE},
        order_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,  -- the id of what it is about
        place INTEGER REFERENCES places (id) ON DELETE CASCADE,
        title INTEGER REFERENCES titles (id) ON DELETE CASCADE,
        service TEXT NOT NULL DEFAULT '',  -- of a person's id
        who TEXT NOT NULL,
        at TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('waiting', 'done', 'refused')),
        why TEXT NOT NULL DEFAULT '',  -- it is refused
        ended_at TEXT
    )""",
    "CREATE INDEX orders_waiting ON orders (id) WHERE status = 'waiting'",
    "CREATE INDEX orders_by_place ON orders (place) WHERE place IS NOT NULL",
    "CREATE INDEX orders_by_title ON orders (title) WHERE title IS NOT NULL",
    f"""CREATE TABLE rooms (  -- places of the page that people enter by a link
        id {SEQUENCE},
        room_id TEXT NOT NULL UNIQUE,  -- of the place
        title TEXT NOT NULL,
        people INTEGER NOT NULL,  -- at most
        made_at TEXT NOT NULL,
        ends_at TEXT NOT NULL,
        revoked_at TEXT,
        cap TEXT NOT NULL,  -- on the spend of a day, as JSON
        key_digest TEXT NOT NULL  -- of the link
    )""",
    f"""CREATE TABLE room_guests (
        id {SEQUENCE},
        room INTEGER NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
        author INTEGER NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        joined_at TEXT NOT NULL,
        cookie_digest TEXT NOT NULL UNIQUE,
        UNIQUE (room, author)
    )""",
    "CREATE INDEX room_guests_by_author ON room_guests (author)",
)

RUNS = (
    f"""CREATE TABLE runs (
        id {SEQUENCE},
        run_id TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL DEFAULT '',  -- that answers
        place INTEGER NOT NULL REFERENCES places (id),
        title INTEGER NOT NULL,
        target TEXT NOT NULL,
        message_ids TEXT NOT NULL,
        began_at TEXT NOT NULL,
        horizon INTEGER NOT NULL,
        model TEXT NOT NULL,
        profile TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('open', 'done', 'failed')),
        ended_at TEXT,
        why TEXT NOT NULL,
        resumes INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0,  -- that processes have worked on it
        prompts_removed_at TEXT,  -- when they had become too old
        forgotten INTEGER NOT NULL DEFAULT 0  -- whether it showed what was forgotten: its contents were removed
    )""",
    "CREATE INDEX runs_open ON runs (id) WHERE status = 'open'",
    "CREATE INDEX runs_open_by_place ON runs (place) WHERE status = 'open'",
    "CREATE INDEX runs_by_place ON runs (place, id)",
    "CREATE INDEX runs_by_time ON runs (place, began_at)",
    f"""CREATE TABLE records (
        id {SEQUENCE},
        run_id TEXT NOT NULL REFERENCES runs (run_id),
        step INTEGER NOT NULL,
        valid INTEGER NOT NULL,
        at TEXT NOT NULL,
        record_run_id TEXT,  -- the run that the record itself names
        turn TEXT NOT NULL,
        raw TEXT
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
        UNIQUE (run_id, step, number)
    )""",
    f"""CREATE TABLE layers (
        id {SEQUENCE},
        hash TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        base INTEGER REFERENCES layers (id),  -- the layer it begins like
        prefix_length INTEGER NOT NULL DEFAULT 0,  -- how many bytes of that one it begins with
        depth INTEGER NOT NULL DEFAULT 0,  -- how many layers must be read to rebuild it, besides itself
        suffix TEXT NOT NULL  -- Layer as JSON, from there on
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
        cached TEXT,
        fallback TEXT,  -- the fallback, if the step before failed
        why TEXT NOT NULL DEFAULT '',  -- why it was needed
        model TEXT NOT NULL DEFAULT '',  -- the model of that request
        left_out TEXT,  -- of the context, and why: JSON; none: as in the step before
        tool_tokens INTEGER NOT NULL,  -- estimated
        stable INTEGER NOT NULL,  -- tokens of the prefix that the prompt before it in this place begins with, too
        broken_by TEXT,  -- the first layer of that one that is not repeated, or `history`; none: all are
        cause TEXT NOT NULL  -- why, in words
    )""",
    "CREATE INDEX prompts_by_run ON prompts (run_id, step)",
    f"""CREATE TABLE prompt_layers (
        prompt INTEGER NOT NULL REFERENCES prompts (id),
        position INTEGER NOT NULL,
        layer INTEGER NOT NULL REFERENCES layers (id),
        tokens INTEGER NOT NULL,  -- estimated
        instruction INTEGER NOT NULL,  -- what of these its instruction has
        PRIMARY KEY (prompt, position)
    ) {BY_KEY}""",
    "CREATE INDEX prompt_layers_by_layer ON prompt_layers (layer)",
    f"""CREATE TABLE outbox (
        id {SEQUENCE},
        outgoing_id TEXT NOT NULL UNIQUE,
        place INTEGER NOT NULL REFERENCES places (id),
        run_id TEXT,
        task_id TEXT,
        agent TEXT NOT NULL DEFAULT '',  -- that says it
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
        kind TEXT NOT NULL DEFAULT 'answer',  -- answer, error, notice, task, draft
        purpose TEXT,  -- draft end, proposal; of most none
        reply_id TEXT,  -- shared by the parts of a reply that was split
        part INTEGER NOT NULL DEFAULT 0,
        separator TEXT NOT NULL DEFAULT '',  -- between it and the part before it
        edits TEXT,  -- the id of our own message that it replaces
        plain INTEGER NOT NULL DEFAULT 0,  -- whether it goes in plain text, since the service refused its own form
        waits INTEGER NOT NULL DEFAULT 0,  -- whether its message waits for other agents once it is sent
        unknown_attempts INTEGER NOT NULL DEFAULT 0,  -- of which nobody knows the outcome
        position INTEGER  -- how many messages the place had when it was sent
    )""",
    f"""CREATE TABLE delivery_attempts (
        outgoing_id TEXT NOT NULL REFERENCES outbox (outgoing_id) ON DELETE CASCADE,
        number INTEGER NOT NULL,  -- from 1
        begun_at TEXT NOT NULL,
        ended_at TEXT,  -- none: under way, or the process ended in it
        outcome TEXT,  -- the status that the reply got by it
        why TEXT NOT NULL,
        PRIMARY KEY (outgoing_id, number)
    ) {BY_KEY}""",
    "CREATE INDEX outbox_by_status ON outbox (status, id)",
    "CREATE INDEX outbox_by_run ON outbox (run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX outbox_by_message ON outbox (place, message_id)",
    "CREATE INDEX outbox_by_reply ON outbox (reply_id, part) WHERE reply_id IS NOT NULL",
    "CREATE INDEX outbox_drafts ON outbox (run_id) WHERE kind = 'draft'",
    "CREATE INDEX outbox_purposes ON outbox (run_id, purpose) WHERE purpose IS NOT NULL",
    "CREATE INDEX outbox_edits ON outbox (place, edits) WHERE edits IS NOT NULL",
    f"""CREATE TABLE tasks (
        id {SEQUENCE},
        task_id TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL DEFAULT '',  -- whose it is
        place INTEGER REFERENCES places (id),
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        due_at TEXT,  -- UTC
        body TEXT NOT NULL,
        run_id TEXT,  -- whose plan it belongs to
        free INTEGER NOT NULL DEFAULT 0  -- whether it waits for nothing but its time
    )""",
    "CREATE INDEX tasks_by_place ON tasks (place)",
    "CREATE INDEX tasks_running ON tasks (id) WHERE status = 'running'",
    "CREATE INDEX tasks_due ON tasks (due_at) WHERE status = 'pending' AND free = 1",
    "CREATE INDEX tasks_by_run ON tasks (run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX tasks_to_call_off ON tasks (place) WHERE status = 'pending' AND run_id IS NOT NULL",
    f"""CREATE TABLE calls (  -- requests to services
        id {SEQUENCE},
        purpose TEXT NOT NULL,
        run_id TEXT REFERENCES runs (run_id) ON DELETE CASCADE,  -- none: it belongs to no run
        step INTEGER,
        attempt INTEGER NOT NULL,  -- at this step, from 1
        agent TEXT NOT NULL DEFAULT '',  -- for which it was made
        place INTEGER REFERENCES places (id) ON DELETE CASCADE,
        author INTEGER REFERENCES authors (id) ON DELETE CASCADE,  -- who was answered
        model TEXT NOT NULL,  -- that was asked
        answered_by TEXT NOT NULL,  -- as the service calls it
        begun_at TEXT NOT NULL,  -- UTC
        first_at TEXT,  -- when the first piece came, if it streamed
        ended_at TEXT NOT NULL,
        waited REAL NOT NULL,  -- seconds, after the attempt before it
        status TEXT NOT NULL CHECK (status IN ('answered', 'failed', 'stopped')),
        error TEXT NOT NULL,  -- the class of the error
        why TEXT NOT NULL,  -- the error, or how the response ended
        input INTEGER NOT NULL,  -- tokens, the cached and the written among them
        cached INTEGER NOT NULL,
        written INTEGER NOT NULL,  -- to a cache
        output INTEGER NOT NULL,
        thought INTEGER NOT NULL,
        input_price REAL,  -- dollars for a million tokens; none: not known
        cached_price REAL,
        output_price REAL,
        money REAL NOT NULL,  -- dollars, where the price was known
        sha256 TEXT NOT NULL,  -- of the body that was sent; empty: not known
        size INTEGER NOT NULL,  -- of it, in bytes
        wire TEXT NOT NULL,  -- whose format: gemini, openai
        streamed INTEGER NOT NULL,
        cache TEXT,  -- the explicit cache that it names
        vendor TEXT,  -- how a service differs: JSON
        receipts TEXT,  -- of what was repaired: JSON
        media TEXT  -- in which form each medium of the prompt went: JSON
    )""",
    "CREATE INDEX calls_by_run ON calls (run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX calls_by_place ON calls (place, ended_at)",
    "CREATE INDEX calls_by_author ON calls (author)",
    "CREATE INDEX calls_by_time ON calls (ended_at)",
    f"""CREATE TABLE usage (  -- of model calls, summed up
        id {SEQUENCE},
        day TEXT NOT NULL,  -- in UTC
        place INTEGER REFERENCES places (id),  -- none: forgotten since
        author INTEGER REFERENCES authors (id),  -- who was answered; none: forgotten since
        agent TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL,
        calls INTEGER NOT NULL,
        input INTEGER NOT NULL,  -- tokens, the cached among them
        cached INTEGER NOT NULL,
        written INTEGER NOT NULL,
        output INTEGER NOT NULL,
        thought INTEGER NOT NULL,
        money REAL NOT NULL,  -- dollars, where the price was known
        UNIQUE (day, place, author, agent, model)
    )""",
    "CREATE INDEX usage_by_place ON usage (place)",
    "CREATE INDEX usage_by_author ON usage (author)",
)

CHATS = (
    """CREATE TABLE chats (
        name TEXT PRIMARY KEY,
        exchange TEXT,  -- the one under way, as JSON
        edition INTEGER NOT NULL DEFAULT 0  -- changes when something in it is forgotten
    )""",
    """CREATE TABLE chat_entries (
        chat TEXT NOT NULL REFERENCES chats (name) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        entry TEXT NOT NULL,  -- Entry as JSON
        PRIMARY KEY (chat, number)
    )""",
)

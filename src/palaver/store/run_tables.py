"""What was added to the tables of runs, step by step."""

DRAFTS = (
    "ALTER TABLE outbox ADD COLUMN edits TEXT",  # the id of our own message that it replaces
    "CREATE INDEX outbox_drafts ON outbox (run_id) WHERE kind = 'draft'",
    "CREATE INDEX outbox_edits ON outbox (place, edits) WHERE edits IS NOT NULL",
)

TRIED = (
    "ALTER TABLE prompts ADD COLUMN fallback TEXT",  # what was tried with it, where the step before came to nothing
    "ALTER TABLE prompts ADD COLUMN why TEXT NOT NULL DEFAULT ''",  # what had gone wrong then
    "ALTER TABLE prompts ADD COLUMN model TEXT NOT NULL DEFAULT ''",  # which was asked then
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

"""What was added to the tables of runs, step by step."""

TRIED = (
    "ALTER TABLE prompts ADD COLUMN fallback TEXT",  # what was tried with it, where the step before came to nothing
    "ALTER TABLE prompts ADD COLUMN why TEXT NOT NULL DEFAULT ''",  # what had gone wrong then
    "ALTER TABLE prompts ADD COLUMN model TEXT NOT NULL DEFAULT ''",  # which was asked then
    "ALTER TABLE runs DROP COLUMN rungs",
)

SECONDS = ("ALTER TABLE runs ADD COLUMN seconds REAL NOT NULL DEFAULT 0",)  # that processes have worked on it

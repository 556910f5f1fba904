"""Export of a person: the rows of the plan of forgetting them, as they are now.

A row that is the person's, or that the agent wrote for them, is exported whole. Of a row about somebody else that only
has their words, it is said that there is one. Of a message of somebody else only the quote of the person is exported,
or the words of theirs that it forwards.
"""

from collections import defaultdict
from typing import Any

from tertulia.memory.forget import SHOWN_WITH, Key, Plan
from tertulia.store.database import Database
from tertulia.store.encoding import ANY
from tertulia.store.forget.removal import SECTIONS, Section
from tertulia.store.json_columns import JSON_COLUMNS

LEFT_OUT = {
    "prompts": "they repeat what is exported here, between messages of other people; `runs` counts them",
    "records": "the raw answers of models, which are in `answers` as they were sent; `runs` counts them",
    "tool_runs": "they belong to the runs of prompts; `runs` counts them",
    "turns": "what the agent did to write an answer, between messages of other people",
    "events": "those that forgetting removes have only ids of facts, which are in `facts`",
    "search index": "it is made of the messages",
    "raw updates": "the messages as their service sent them, which may hold other people; `raw_updates` counts them",
    "rate limit": "it is not stored: a running bot counts the last messages of a person in its memory",
    "bytes of files": "`files` says where they are in the folder of media",
    "texts about other people": "`about_others` is true where only words of this person are in them",
}
_ABOUT_OTHERS = ("facts_about_others", "summaries_of_others", "episodes_of_others", "window_summaries")
SHOWN = {name: section for name, section in reversed(SECTIONS.items()) if section.shown}

# The places with their newest titles.
_PLACES = """SELECT p.id, p.platform, p.place_id, p.thread,
    (SELECT t.title FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1) FROM places p"""

# What is shown of rows besides their columns.
_MESSAGE_ID = {"message_id": "(SELECT m.message_id FROM messages m WHERE m.id = message)"}
_MORE: dict[str, dict[str, str]] = {
    **dict.fromkeys(("earlier_versions", "quotes_in_versions", "hidden_sentences"), _MESSAGE_ID),
    "proposals": {"fact_id": "(SELECT f.fact_id FROM facts f WHERE f.id = fact)"},
    "runs": {
        table: f"(SELECT count(*) FROM {table} o WHERE o.run_id = runs.run_id)"
        for table in ("prompts", "records", "tool_runs")
    },
    "tasks": {"task": "body"},
    "files": {"file": "substr(sha256, 1, 2) || '/' || sha256"},
    "texts_of_files": {"sha256": "source"},
}

# Lists of what belongs to rows, by the first column of their key: named, with the names of the columns.
_LISTS: dict[str, list[tuple[str, str, str]]] = {
    "messages": [
        (
            "decisions",
            "agent reason address at",
            "SELECT message, agent, reason, address, at FROM decisions WHERE message IN (:some) ORDER BY agent",
        )
    ],
    "facts": [  # with the text of those sources that the person wrote
        (
            "sources",
            "message_id text",
            """SELECT s.fact, s.message_id, CASE WHEN n.author = :author THEN m.text END FROM fact_sources s
                LEFT JOIN messages m ON m.place = s.place AND m.message_id = s.message_id
                LEFT JOIN names n ON n.id = m.name WHERE s.fact IN (:some) ORDER BY s.id""",
        )
    ],
    "files": [
        ("unique_ids", "", "SELECT sha256, unique_id FROM media_files WHERE sha256 IN (:some)"),
        ("forms", "", "SELECT sha256, form FROM file_forms WHERE sha256 IN (:some)"),
    ],
}


def export_plan(database: Database, plan: Plan) -> dict[str, Any]:
    """Return everything that is known of a person: the rows of a plan."""
    named = ("platform", "id", "thread", "title")
    places = {row: dict(zip(named, place, strict=True)) for row, *place in database.all(_PLACES)}
    sections: dict[str, list[dict[str, Any]]] = {}
    for name, section in SHOWN.items():
        rows = _rows(database, name, section, plan)
        sections.setdefault(SHOWN_WITH.get(name, name), []).extend(_finish(name, row, places) for row in rows)
    entries = (
        "SELECT entry FROM chat_entries WHERE chat = :chat AND number >= :start AND number < :stop ORDER BY number"
    )
    exchanges = [
        {"chat": chat, "entry": ANY.loads(entry)}
        for chat, start, stop in plan.rows.get("exchanges", ())
        for (entry,) in database.all(entries, chat=chat, start=start, stop=stop)
    ]
    others = plan.rows.get("exchanges_of_others", ())
    author = "SELECT language FROM authors WHERE id = :author"
    blocked = database.one("SELECT at, until FROM blocked_authors WHERE author = :author", author=plan.author)
    return {
        "person": {
            "platform": plan.platform,
            "id": plan.author_id,
            "language": (database.one(author, author=plan.author) or ("",))[0],
            "blocked_at": blocked[0] if blocked else None,
            "blocked_until": blocked[1] if blocked else None,
        },
        **sections,
        "exchanges": exchanges + [{"chat": chat, "about_others": True} for chat, *_ in others],
        "raw_updates": len(plan.rows.get("updates", ())),
        "left_out": LEFT_OUT,
    }


def _rows(database: Database, name: str, section: Section, plan: Plan) -> list[dict[str, Any]]:
    """Return the rows of a section, in the order of the plan, with what belongs to them."""
    keys = plan.rows.get(name, ())
    if not keys:
        return []
    key, some = section.key.split(), [*dict.fromkeys(first for first, *_ in keys)]
    shown = {column: column for column in section.shown.split()} | _MORE.get(name, {})
    select = f"SELECT {', '.join((*key, *shown.values()))} FROM {section.table} WHERE {key[0]} IN (:some)"
    found: defaultdict[Key, list[dict[str, Any]]] = defaultdict(list)
    encoded = JSON_COLUMNS.get(section.table, ())
    for row in database.all(select, some=some):
        read = zip(shown.items(), row[len(key) :], strict=True)
        values = {name: ANY.loads(value) if value and column in encoded else value for (name, column), value in read}
        found[tuple(row[: len(key)])].append(values)
    for listed, columns, statement in _LISTS.get(name, ()):
        belonging: defaultdict[Any, list[Any]] = defaultdict(list)
        for first, *one in database.all(statement, some=some, author=plan.author):
            belonging[first].append(dict(zip(columns.split(), one, strict=True)) if columns else one[0])
        for (first, *_), rows in found.items():
            for shown_row in rows:
                shown_row[listed] = belonging[first]
    more = {"about_others": True} if name in _ABOUT_OTHERS else {}
    return [row | more for one in keys for row in found.get(tuple(one), ())]


def _finish(section: str, row: dict[str, Any], places: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return a row with its place."""
    if "place" in row:
        row["place"] = places.get(row["place"])
    if section == "quotes_in_versions":
        row["reply"] = row.pop("before").get("reply_to")
    return row

"""Export of a person: the rows of the plan of forgetting them, as they are now.

A row that is the person's, or that the agent wrote for them, is exported whole. Of a row about somebody else that only
has their words, it is said that there is one. Of a message of somebody else only the quote of the person is exported,
or the words of theirs that it forwards.
"""

from collections.abc import Mapping
from typing import Any

from tertulia.memory.forget import Plan
from tertulia.store.database import Database
from tertulia.store.encoding import ANY
from tertulia.store.forget.removal import DERIVED, OWN, Section

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
_MAX_IDS = 500  # ids in one statement
_JSON = set("parts reply forwarded_from before emojis tags task exchange entry message".split())


SECTIONS = {name: section for name, section in reversed((DERIVED | OWN).items()) if section.shown}


def export_plan(database: Database, plan: Plan) -> dict[str, Any]:
    """Return everything that is known of a person: the rows of a plan."""
    places = {row: _place(database, row) for (row,) in database.all("SELECT id FROM places")}
    sections: dict[str, list[dict[str, Any]]] = {}
    for name, section in SECTIONS.items():
        rows = _rows(database, section, plan.rows.get(name, ()))
        sections.setdefault(section.under or name, []).extend(
            _finish(database, name, row, places, plan) for row in rows
        )
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


def _rows(database: Database, section: Section, keys: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the rows of these keys, in their order."""
    named, columns = section.key.split(), section.shown.split()
    select = f"SELECT {', '.join((*named, *columns))} FROM {section.table} WHERE {named[0]} IN (:some)"
    found: dict[Any, list[dict[str, Any]]] = {}
    for start in range(0, len(keys), _MAX_IDS):
        for row in database.all(select, some=[key[0] for key in keys[start : start + _MAX_IDS]]):
            key, values = row[: len(named)], row[len(named) :]
            found.setdefault(tuple(key), []).append(dict(zip(columns, values, strict=True)))
    more = {"about_others": True} if section.is_about_others else {}
    return [row | more for key in keys for row in found.get(tuple(key), ())]


def _finish(
    database: Database, section: str, row: dict[str, Any], places: Mapping[int, Any], plan: Plan
) -> dict[str, Any]:
    """Return a row with its place, decoded, and with what belongs to it."""
    if "place" in row:
        row["place"] = places.get(row["place"])
    if section in ("earlier_versions", "quotes_in_versions", "hidden_sentences"):
        found = database.one("SELECT message_id FROM messages WHERE id = :row", row=row.pop("message"))
        row["message_id"] = found and found[0]
    for name in _JSON & row.keys():
        row[name] = None if row[name] is None else ANY.loads(row[name])
    match section:
        case "messages":
            select = "SELECT reason, address, at FROM decisions WHERE message = :message ORDER BY agent"
            row["decisions"] = _all(database, ("reason", "address", "at"), select, message=row.pop("id"))
        case "quotes_in_versions":
            row["reply"] = row.pop("before").get("reply_to")
        case "tasks":
            row["task"] = ANY.loads(row.pop("body"))
        case "facts":
            row["sources"] = _all(database, ("message_id", "text"), _SOURCES, fact=row.pop("id"), author=plan.author)
        case "proposals":
            found = database.one("SELECT fact_id FROM facts WHERE id = :fact", fact=row.pop("fact"))
            row["fact_id"] = found and found[0]
        case "runs":
            for table in ("prompts", "records", "tool_runs"):
                count = database.one(f"SELECT count(*) FROM {table} WHERE run_id = :run_id", run_id=row["run_id"])
                row[table] = count[0] if count else 0
        case "files":
            sha256 = row["sha256"]
            media = database.all("SELECT unique_id FROM media_files WHERE sha256 = :sha256", sha256=sha256)
            forms = database.all("SELECT form FROM file_forms WHERE sha256 = :sha256", sha256=sha256)
            row |= {"file": f"{sha256[:2]}/{sha256}", "unique_ids": [one for (one,) in media]}
            row["forms"] = [one for (one,) in forms]
        case "texts_of_files":
            row["sha256"] = row.pop("source")
    return row


# The sources of a fact, with the text of those that the person wrote.
_SOURCES = """SELECT s.message_id, CASE WHEN n.author = :author THEN m.text END FROM fact_sources s
    LEFT JOIN messages m ON m.place = s.place AND m.message_id = s.message_id LEFT JOIN names n ON n.id = m.name
    WHERE s.fact = :fact ORDER BY s.id"""


def _all(database: Database, names: tuple[str, ...], statement: str, **values: Any) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in database.all(statement, **values)]


def _place(database: Database, row: int) -> dict[str, Any]:
    """Return a place with its newest title."""
    select = """SELECT p.platform, p.place_id, p.thread,
            (SELECT t.title FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1)
        FROM places p WHERE p.id = :row"""
    return _all(database, ("platform", "id", "thread", "title"), select, row=row)[0]

"""Export of a person: everything that forgetting them would remove, as it is now.

The export and `person.forget` cover the same rows because the export runs it: on a copy of the store, in a transaction
that is rolled back. Triggers note every row that it deletes, empties or detaches from the person. These rows are then
read as they were.

A row that is the person's, or that the agent wrote for them, is exported whole. Of a row about somebody else that only
has their words, it is said that there is one. Of a message of somebody else only the quote of the person is exported,
or the words of theirs that it forwards.
"""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from tertulia.memory import rules
from tertulia.run.chat_values import SERVICE
from tertulia.store.encoding import clean
from tertulia.store.fact_rows import SOURCES
from tertulia.store.forget import person
from tertulia.store.identities import find_author, language_of
from tertulia.store.sqlite import connection
from tertulia.store.sqlite.connection import Database

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

_NOTE = "INSERT INTO noted VALUES ('{name}', OLD.rowid)"
_NAMED = {"UPDATE OF forwarded_from": "forwards"}  # changes whose rows are noted under a name of their own
_REMOVED = (  # a table, and the change of a row that removes it or empties it
    *[
        (table, "DELETE")
        for table in (
            "names messages message_changes reactions commands descriptions description_failures files media_files "
            "file_forms facts proposals fact_exclusions summaries episodes window_pasts tasks outbox runs usage "
            "cap_notices blocked_authors titles chats chat_entries hidden_sentences"
        ).split()
    ],
    ("messages", "UPDATE OF reply"),
    ("messages", "UPDATE OF forwarded_from WHEN OLD.forwarded_from IS NOT NULL"),
    ("message_changes", "UPDATE OF before"),
    ("tasks", "UPDATE OF body WHEN coalesce(json_extract(NEW.body, '$.args'), '{}') = '{}'"),
    ("outbox", "UPDATE OF text WHEN NEW.text = ''"),
    ("runs", "UPDATE OF why"),
    ("usage", "UPDATE OF author, place"),
    ("titles", "UPDATE OF title"),
    ("chats", "UPDATE OF exchange"),
    ("handles", "UPDATE OF unwanted"),
    ("updates", "UPDATE OF raw WHEN OLD.raw IS NOT NULL"),
)

_PLACE = """(SELECT json_object('platform', p.platform, 'id', p.place_id, 'thread', p.thread, 'title', (
        SELECT t.title FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1
    )) FROM places p WHERE p.id = x.place) AS place"""
_AUTHOR = "(SELECT n.author FROM names n WHERE n.id = x.name)"
_COUNT = "(SELECT count(*) FROM {table} c WHERE c.run_id = x.run_id) AS {table}"
_OF_DIRECT = "x.place IN (SELECT value FROM json_each(:direct))"
_TOOK_PART = f"({_OF_DIRECT} OR :author_id IN (SELECT value FROM json_each(x.people)))"
_LEARNED = f"coalesce((SELECT min(n.author = :author) FROM {SOURCES} WHERE c.fact = x.id), 0)"  # from them alone
_THEIRS = f"(x.about = :author OR {_OF_DIRECT})"
_FACT = f"({_THEIRS} OR {_LEARNED})"
_SOURCES = """(SELECT json_group_array(json_object('message_id', c.message_id, 'text', (
        SELECT m.text FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = c.place AND m.message_id = c.message_id AND n.author = :author
    ))) FROM fact_sources c WHERE c.fact = x.id) AS sources"""
_CONTENT = """x.message_id, x.sent_at, x.received_at, x.edited_at, x.deleted, x.hidden, x.album, x.parts, x.reply,
    x.forwarded_from"""
_DECISIONS = """(SELECT json_group_array(json_object('reason', d.reason, 'address', d.address, 'at', d.at))
    FROM decisions d WHERE d.message = x.id) AS decisions"""
_FILE = """x.sha256, substr(x.sha256, 1, 2) || '/' || x.sha256 AS file,
    (SELECT json_group_array(w.unique_id) FROM media_files w WHERE w.sha256 = x.sha256) AS unique_ids,
    (SELECT json_group_array(o.form) FROM file_forms o WHERE o.sha256 = x.sha256) AS forms"""
_VERSION = "SELECT m.message_id FROM messages m WHERE m.id = x.message"
_VERSION_AUTHOR = "(SELECT n.author FROM messages m JOIN names n ON n.id = m.name WHERE m.id = x.message)"
_VERSION_ROLE = "(SELECT m.role FROM messages m WHERE m.id = x.message)"
_SECTIONS: tuple[tuple[str, str, str, str], ...] = (  # its name, table, columns, and which of the noted rows are in it
    ("names", "names", "x.name, x.username, x.seen_at", "1"),
    ("messages", "messages", f"{_PLACE}, {_CONTENT}, {_DECISIONS}", f"{_AUTHOR} = :author"),
    (
        "earlier_versions",
        "message_changes",
        f"{_PLACE}, ({_VERSION}) AS message_id, x.kind, x.at, x.before",
        f"x.before IS NOT NULL AND ({_VERSION_AUTHOR} = :author OR {_VERSION_ROLE} = 'model')",
    ),
    ("answers", "messages", f"{_PLACE}, {_CONTENT}", "x.role = 'model'"),
    (
        "quotes",
        "messages",
        f"{_PLACE}, x.message_id, x.reply",
        f"x.role = 'user' AND x.reply IS NOT NULL AND {_AUTHOR} <> :author",
    ),
    (
        "quotes",
        "message_changes",
        f"{_PLACE}, ({_VERSION}) AS message_id, json_extract(x.before, '$.reply_to') AS reply",
        f"""json_extract(x.before, '$.reply_to') IS NOT NULL AND {_VERSION_AUTHOR} <> :author
            AND {_VERSION_ROLE} = 'user' AND json_extract(x.before, '$.forwarded_from') IS NULL""",
    ),
    (
        "forwards",
        "messages",
        f"{_PLACE}, x.message_id, x.forwarded_from, x.parts",
        f"{_AUTHOR} <> :author",
    ),
    ("hidden_sentences", "hidden_sentences", f"({_VERSION}) AS message_id, x.text", f"{_VERSION_AUTHOR} = :author"),
    ("reactions", "reactions", f"{_PLACE}, x.message_id, x.emojis, x.at", "1"),
    ("commands", "commands", f"{_PLACE}, x.command, x.argument, x.message", "1"),
    ("descriptions", "descriptions", "x.unique_id, x.text, x.made_by, x.at", "1"),
    ("media_without_description", "description_failures", "x.unique_id, x.made_by, x.why, x.failures", "1"),
    ("files", "files", f"{_FILE}, x.mime, x.size, x.width, x.height, x.seconds, x.pages, x.at, x.used_at", "1"),
    ("texts_of_files", "file_forms", "x.source AS sha256, x.form, x.text", "x.text <> ''"),
    ("media_without_file", "media_files", "x.unique_id, x.failure, x.failures, x.at", "x.sha256 IS NULL"),
    ("files_at_services", "handles", "x.sha256, x.account, x.name, x.uri, x.at, x.expires_at", "1"),
    (
        "facts",
        "facts",
        f"""{_PLACE}, x.fact_id, x.key, x.text, x.scope, x.confidence, x.learned_at, x.valid_from, x.valid_until,
            x.superseded_by, x.imported_from, {_SOURCES}""",
        _FACT,
    ),
    ("facts", "facts", f"{_PLACE}, x.fact_id, x.learned_at, 'true' AS about_others", f"NOT {_FACT}"),
    (
        "proposals",
        "proposals",
        "x.run_id, x.until, (SELECT f.fact_id FROM facts f WHERE f.id = x.fact) AS fact_id",
        "1",
    ),
    ("fact_exclusions", "fact_exclusions", "x.digest", "1"),
    ("summaries", "summaries", f"{_PLACE}, x.text, x.made_at", _THEIRS),
    ("summaries", "summaries", f"{_PLACE}, x.made_at, 'true' AS about_others", f"NOT {_THEIRS}"),
    (
        "episodes",
        "episodes",
        f"{_PLACE}, x.episode_id, x.began_at, x.ended_at, x.topic, x.summary, x.tags",
        _TOOK_PART,
    ),
    (
        "episodes",
        "episodes",
        f"{_PLACE}, x.episode_id, x.began_at, x.ended_at, 'true' AS about_others",
        f"NOT {_TOOK_PART}",
    ),
    ("window_summaries", "window_pasts", f"{_PLACE}, x.text", _TOOK_PART),
    ("window_summaries", "window_pasts", f"{_PLACE}, 'true' AS about_others", f"NOT {_TOOK_PART}"),
    ("tasks", "tasks", f"{_PLACE}, x.status, x.body AS task", "1"),
    ("replies", "outbox", f"{_PLACE}, x.outgoing_id, x.kind, x.status, x.made_at, x.sent_at, x.reply", "1"),
    (
        "runs",
        "runs",
        f"""{_PLACE}, x.run_id, x.began_at, x.ended_at, x.status, x.model, x.prompts_removed_at,
            {", ".join(_COUNT.format(table=table) for table in ("prompts", "records", "tool_runs"))}""",
        "1",
    ),
    (
        "usage",
        "usage",
        f"x.day, {_PLACE}, x.model, x.calls, x.input, x.cached, x.output, x.thought, x.money",
        f"x.author IS :author OR {_OF_DIRECT}",
    ),
    ("cap_notices", "cap_notices", f"{_PLACE}, x.day", "1"),
    ("titles", "titles", f"{_PLACE}, x.title", "x.title <> ''"),
    ("chats", "chats", "x.name, x.exchange", "x.exchange IS NOT NULL"),
)
_JSON = {
    "place",
    "message",
    "parts",
    "reply",
    "forwarded_from",
    "before",
    "decisions",
    "emojis",
    "sources",
    "tags",
    "task",
    "exchange",
    "about_others",
    "unique_ids",
    "forms",
}


def export_person(path: Path, platform: str, author_id: str, at: datetime) -> dict[str, Any]:
    """Return everything that is known of a person; *path* is a copy of the store, which is changed."""
    with connection.translate_errors("the copy of the store"), closing(connection.connect(str(path))) as database:
        author = find_author(database, clean(platform), clean(author_id))
        near = person.places_of(database, author) if author is not None else set()
        direct = [place for place in near if author is not None and person.is_private_chat(database, place, author)]
        noted, chats = _forget(database, platform, author_id, at)
        values = {"author": author, "author_id": author_id, "direct": json.dumps(direct)}
        sections: dict[str, list[dict[str, Any]]] = {}
        for name, table, columns, where in _SECTIONS:
            rows = noted.get(name if name in _NAMED.values() else table, ())
            found = _select(database, f"SELECT {columns} FROM {table} x", where, rows, values)
            sections.setdefault(name, []).extend(found)
        language = language_of(database, platform, author_id) or ""
        blocked = database.execute("SELECT at, until FROM blocked_authors WHERE author IS ?", (author,)).fetchone()
        return {
            "person": {
                "platform": platform,
                "id": author_id,
                "language": language,
                "blocked_at": blocked[0] if blocked else None,
                "blocked_until": blocked[1] if blocked else None,
            },
            **sections,
            "exchanges": _exchanges(database, chats, hers=author_id if platform == SERVICE else None),
            "raw_updates": len(noted.get("updates", ())),
            "left_out": LEFT_OUT,
        }


def _forget(
    database: Database, platform: str, author_id: str, at: datetime
) -> tuple[dict[str, set[int]], dict[str, Counter[str]]]:
    """Forget the person and take it back; return the rows that it removed by table, and what it left of chats."""
    database.execute("CREATE TEMP TABLE noted (name TEXT NOT NULL, row INTEGER NOT NULL)")
    for number, (table, change) in enumerate(_REMOVED):
        kind, _, condition = change.partition(" WHEN ")
        when = f" WHEN {condition}" if condition else ""
        note = _NOTE.format(name=_NAMED.get(kind, table))
        database.execute(f"CREATE TEMP TRIGGER note_{number} BEFORE {kind} ON main.{table}{when} BEGIN {note}; END")
    database.begin()
    person.forget(database, platform, author_id, at, rules)
    noted: dict[str, set[int]] = {}
    for table, row in database.execute("SELECT name, row FROM noted"):
        noted.setdefault(table, set()).add(row)
    chats: dict[str, Counter[str]] = {}
    for chat, entry in database.execute("SELECT chat, entry FROM chat_entries"):
        chats.setdefault(chat, Counter())[entry] += 1
    database.execute("ROLLBACK")
    return noted, chats


def _exchanges(database: Database, left: dict[str, Counter[str]], *, hers: str | None) -> list[dict[str, Any]]:
    """Return the entries of chats with a name that are not *left*, in order."""
    found = []
    for chat, entry in database.execute("SELECT chat, entry FROM chat_entries ORDER BY chat, number"):
        if left.get(chat, Counter())[entry]:
            left[chat][entry] -= 1
        else:
            found.append({"chat": chat, "entry": json.loads(entry)} if chat == hers else {"chat": chat, **_OTHERS})
    return found


_OTHERS = {"about_others": True}


def _select(
    database: Database, select: str, where: str, rows: Iterable[int], values: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the rows that *where* describes, in the order in which they were stored."""
    chosen = f"{select} WHERE x.rowid IN (SELECT value FROM json_each(:rows)) AND ({where}) ORDER BY x.rowid"
    cursor = database.execute(chosen, {**values, "rows": json.dumps(sorted(rows))})
    names = [column[0] for column in cursor.description]
    return [_decode(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def _decode(row: dict[str, Any]) -> dict[str, Any]:
    for name in _JSON & row.keys():
        with suppress(TypeError):  # NULL
            row[name] = json.loads(row[name])
    return row

"""Numbered steps: each creates or changes tables, and converts the rows of older files."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tertulia.messages import Place
from tertulia.store import message_rows
from tertulia.store.encoding import PLACE, TASK, dumps
from tertulia.store.identities import upsert_title
from tertulia.store.migrations import table_changes
from tertulia.store.migrations.table_changes import (
    ALBUM_INDEX,
    ALBUMS,
    CAP_NOTICES,
    CHAT_EDITIONS,
    CHATS,
    DELIVERIES,
    DRAFTS,
    EVENTS,
    EVENTS_BY_SEQUENCE,
    FORWARDS,
    HIDDEN_SENTENCES,
    KINDS,
    LANGUAGES,
    LEFT_OUT,
    MEDIA_FILES,
    MESSAGE_PARTS,
    REACTIONS,
    RETENTION,
    SECONDS,
    SERVICES,
    TRIED,
    UNKNOWN_ATTEMPTS,
    UPDATES,
    USAGE,
    WINDOW_PASTS,
)
from tertulia.store.migrations.tables import AGAIN, ENGINE, FIRST, HIDDEN, MEMORY, PROPOSALS, SEARCH
from tertulia.store.search_index import reindex_invisible
from tertulia.store.sqlite import connection
from tertulia.store.sqlite.connection import Database
from tertulia.store.tasks import group_by_plan
from tertulia.tasks.graph import settle, without_open_dependencies
from tertulia.timezones import utc

_MARKER = "rung: "  # prefix of the names of layers that named a fallback

Migration = Callable[[Database], None]


def _execute(database: Database, statements: Iterable[str]) -> None:
    for statement in statements:
        database.execute(statement)


def m001_conversations(database: Database) -> None:
    """Create the tables of messages, runs, prompts, replies, tasks and descriptions."""
    _execute(database, FIRST)


def m002_engine(database: Database) -> None:
    """Add resumes of runs, delimiters, starts of conversations, plans of tasks, blocked authors and facts."""
    _execute(database, ENGINE)
    _store_plans(database)


def _store_plans(database: Database) -> None:
    """Store the plan of each task of an older file."""
    stored = [TASK.loads(body) for (body,) in database.execute("SELECT body FROM tasks ORDER BY id")]
    rows = [
        (name, int(task.id in unbound), task.status, dumps(task), task.id)
        for name, plan in group_by_plan(database, stored).items()
        for now in [settle(plan)]
        for unbound in [{one.id for one in without_open_dependencies(now)}]
        for task in now
    ]
    update = "UPDATE tasks SET run_id = ?, free = ?, status = ?, body = ? WHERE task_id = ?"
    database.executemany(update, rows)


def m003_memory(database: Database) -> None:
    """Create the tables of facts with their sources and scopes, of summaries, episodes and reading cursors."""
    select = "SELECT id, place, about, text, source, learned_at FROM facts ORDER BY id"
    known = database.execute(select).fetchall()
    database.execute("DROP TABLE facts")
    _execute(database, MEMORY)
    for row in known:
        _copy_fact(database, *row)
    # earlier messages count as read: an update of the program must not start a model on all of them
    database.execute("INSERT INTO learned (place, facts, episodes) SELECT id, messages, messages FROM places")


def _copy_fact(
    database: Database, number: int, place: int, about: int, text: str, source: str, learned_at: str
) -> None:
    """Copy a fact of an older file. It is about the author of its source."""
    title, where = _newest_title(database, place)
    direct = where.kind == "direct"
    values = {
        "fact_id": f"kept-{number}",
        "place": place,
        "title": title,
        "direct": int(direct),
        "about": about,
        "name": "",
        "text": text,
        "key": "",
        "scope": "direct" if direct else "chat",
        "confidence": 1.0,
        "learned_at": _in_utc(learned_at),
    }
    insert = f"INSERT INTO facts ({', '.join(values)}) VALUES ({', '.join('?' * len(values))}) RETURNING id"
    fact = database.execute(insert, tuple(values.values())).fetchone()[0]
    keep = "INSERT INTO fact_sources (fact, place, message_id) VALUES (?, ?, ?)"
    database.execute(keep, (fact, place, source))


def _in_utc(moment: str) -> str:
    read = datetime.fromisoformat(moment)
    return utc(read if read.tzinfo else read.replace(tzinfo=UTC)).isoformat()


def _newest_title(database: Database, place: int) -> tuple[int, Place]:
    """Return the newest title of a place and its row; a place without one becomes a direct chat, to be safe."""
    row = database.execute("SELECT id, body FROM titles WHERE place = ? ORDER BY id DESC LIMIT 1", (place,)).fetchone()
    if row:
        return row[0], PLACE.loads(row[1])
    select = "SELECT platform, place_id, thread FROM places WHERE id = ?"
    platform, place_id, thread = database.execute(select, (place,)).fetchone()
    unknown = Place(platform=platform, id=place_id, thread=thread, kind="direct")
    return upsert_title(database, unknown, place), unknown


def m004_search(database: Database) -> None:
    """Create the search index. The messages of an older file are indexed in the background."""
    _execute(database, SEARCH)


def m005_again(database: Database) -> None:
    """Add which messages are stale, so that they are read for facts again, and which facts are excluded."""
    _execute(database, AGAIN)


def m006_albums(database: Database) -> None:
    """Add the column for the album of a message."""
    _execute(database, ALBUMS)


def m007_hidden(database: Database) -> None:
    """Add the column for hidden messages."""
    _execute(database, HIDDEN)


def m008_proposals(database: Database) -> None:
    """Create the table of proposals to forget a fact."""
    _execute(database, PROPOSALS)


def m009_kinds(database: Database) -> None:
    """Add the number after the last message of a place as a direct chat, and the one as a group."""
    _execute(database, KINDS)


def m010_deliveries(database: Database) -> None:
    """Add the kind of a delivery: answer, error, notice or task."""
    _execute(database, DELIVERIES)


def m011_services(database: Database) -> None:
    """Add the service of a place: author ids are unique in it."""
    _execute(database, SERVICES)


def m012_tried(database: Database) -> None:
    """Add the fallback of a prompt as columns. Before, an empty layer named it, in that prompt and all later ones."""
    _execute(database, TRIED)
    markers = f"name LIKE '{_MARKER}%' AND rest = '{{\"name\":\"' || name || '\"}}'"
    select = f"""SELECT p.id, p.run_id, count(*), max(pl.position) FROM prompts p
        JOIN prompt_layers pl ON pl.prompt = p.id JOIN layers l ON l.id = pl.layer
        WHERE {markers} GROUP BY p.id ORDER BY p.id"""
    before: dict[str, int] = {}
    for prompt, run, count, last in database.execute(select).fetchall():
        if count > before.get(run, 0):
            name = (
                "SELECT l.name FROM prompt_layers pl JOIN layers l ON l.id = pl.layer WHERE prompt = ? AND position = ?"
            )
            (found,) = database.execute(name, (prompt, last)).fetchone()
            update = "UPDATE prompts SET fallback = ? WHERE id = ?"
            database.execute(update, (found.removeprefix(_MARKER), prompt))
        before[run] = count
    database.execute(f"DELETE FROM prompt_layers WHERE layer IN (SELECT id FROM layers WHERE {markers})")
    database.execute(f"DELETE FROM layers WHERE {markers}")


def m013_updates(database: Database) -> None:
    """Create the tables of updates, reactions, commands that are not done yet, and migrated places."""
    _execute(database, UPDATES)


def m014_invisible(database: Database) -> None:
    """Index messages with invisible characters again. The code that does it uses the table names of `m030`."""
    table_changes.rename_all(database, table_changes.SEARCH_RENAMES)
    reindex_invisible(database)
    table_changes.revert_all(database, table_changes.SEARCH_RENAMES)


def m015_seconds(database: Database) -> None:
    """Add the seconds that processes have worked on a run."""
    _execute(database, SECONDS)


def m016_events(database: Database) -> None:
    """Create the table of durable events, numbered per place."""
    _execute(database, EVENTS)


def m017_usage(database: Database) -> None:
    """Create the table of usage and cost by day, place, author and model."""
    _execute(database, USAGE)


def m018_parts(database: Database) -> None:
    """Add the parts of split replies, in the outbox and in the log."""
    _execute(database, MESSAGE_PARTS)


def m019_album_index(database: Database) -> None:
    """Index messages by album."""
    _execute(database, ALBUM_INDEX)


def m020_chats(database: Database) -> None:
    """Create the tables of chats with a name."""
    _execute(database, CHATS)


def m021_drafts(database: Database) -> None:
    """Add the id of the draft that a reply edits."""
    _execute(database, DRAFTS)


def m022_window_pasts(database: Database) -> None:
    """Move the summaries of windows to their own table. Before, each was an episode with a negative start."""
    _execute(database, WINDOW_PASTS)
    move = """INSERT INTO window_pasts (place, since, start, text, people)
        SELECT place, -1 - start, stop, summary, people FROM episodes WHERE start < 0 ORDER BY id"""
    database.execute(move)
    database.execute("DELETE FROM episodes WHERE start < 0")


def m023_chat_editions(database: Database) -> None:
    """Add the edition of a chat: it changes when something in the chat is forgotten."""
    _execute(database, CHAT_EDITIONS)


def m024_left_out(database: Database) -> None:
    """Add what was left out of a prompt, and why."""
    _execute(database, LEFT_OUT)


def m025_cap_notices(database: Database) -> None:
    """Create the table of notices that a spending cap is reached."""
    _execute(database, CAP_NOTICES)


def m026_reactions(database: Database) -> None:
    """Add the message of a reaction and its position in prompts. Reactions of an older file are shown at the end."""
    _execute(database, REACTIONS)
    owners = """UPDATE reactions SET message = coalesce(
        (SELECT p.message FROM message_parts p WHERE p.place = reactions.place AND p.message_id = reactions.message_id),
        (SELECT m.id FROM messages m WHERE m.place = reactions.place AND m.message_id = reactions.message_id))"""
    database.execute(owners)
    told = """UPDATE reactions SET position = (SELECT messages FROM places WHERE id = reactions.place)
        WHERE message IS NOT NULL AND (SELECT count(*) FROM reactions o
            WHERE o.message = reactions.message AND o.id < reactions.id) < ?"""
    database.execute(told, (message_rows.MAX_REACTIONS_SHOWN,))


def m027_unknown_attempts(database: Database) -> None:
    """Add the number of attempts with unknown outcome."""
    _execute(database, UNKNOWN_ATTEMPTS)


def m028_events_by_sequence(database: Database) -> None:
    """Replace the table of events by one without indexes."""
    _execute(database, EVENTS_BY_SEQUENCE)
    connection.continue_sequence(database, "place_events", "indexed_events")
    database.execute("DROP TABLE indexed_events")


def m029_hidden_sentences(database: Database) -> None:
    """Create the table of sentences for which a message is hidden."""
    _execute(database, HIDDEN_SENTENCES)


def m030_plain_names(database: Database) -> None:
    """Rename tables, columns and indexes to the names that the code uses."""
    table_changes.rename_all(database, table_changes.ALL_RENAMES)


def m031_retention(database: Database) -> None:
    """Add when the prompts of a run were removed because they had become too old."""
    _execute(database, RETENTION)


def m032_languages(database: Database) -> None:
    """Add the languages of authors."""
    _execute(database, LANGUAGES)


def m033_forwards(database: Database) -> None:
    """Add whose words a forwarded message is."""
    _execute(database, FORWARDS)


def m034_media_files(database: Database) -> None:
    """Add the files of media, their handles at services, and when a description became known."""
    _execute(database, MEDIA_FILES)


MIGRATIONS: tuple[Migration, ...] = (
    m001_conversations,
    m002_engine,
    m003_memory,
    m004_search,
    m005_again,
    m006_albums,
    m007_hidden,
    m008_proposals,
    m009_kinds,
    m010_deliveries,
    m011_services,
    m012_tried,
    m013_updates,
    m014_invisible,
    m015_seconds,
    m016_events,
    m017_usage,
    m018_parts,
    m019_album_index,
    m020_chats,
    m021_drafts,
    m022_window_pasts,
    m023_chat_editions,
    m024_left_out,
    m025_cap_notices,
    m026_reactions,
    m027_unknown_attempts,
    m028_events_by_sequence,
    m029_hidden_sentences,
    m030_plain_names,
    m031_retention,
    m032_languages,
    m033_forwards,
    m034_media_files,
)

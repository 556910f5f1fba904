"""Numbered steps: each creates or changes tables, and carries over the rows of older files."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from palaver.messages import Place
from palaver.store import reactions
from palaver.store.encoding import PLACE, TASK, dumps
from palaver.store.identities import upsert_title
from palaver.store.index_writer import reindex_invisible
from palaver.store.migrations import renames
from palaver.store.migrations.additions import (
    ALBUM_INDEX,
    ALBUMS,
    CAP_NOTICES,
    CHAT_EDITIONS,
    CHATS,
    DELIVERIES,
    DRAFTS,
    EVENTS,
    EVENTS_BY_SEQUENCE,
    HIDDEN_SENTENCES,
    KINDS,
    LEFT_OUT,
    MESSAGE_PARTS,
    REACTIONS,
    SECONDS,
    SERVICES,
    TRIED,
    UNKNOWN_ATTEMPTS,
    UPDATES,
    USAGE,
    WINDOW_PASTS,
)
from palaver.store.migrations.tables import AGAIN, ENGINE, FIRST, HIDDEN, MEMORY, PROPOSALS, SEARCH
from palaver.store.sqlite import connection
from palaver.store.sqlite.connection import Database
from palaver.store.tasks import group_by_plan
from palaver.tasks.graph import settle, without_open_dependencies
from palaver.timezones import utc

_MARKER = "rung: "  # began the names of layers that said what was tried

Migration = Callable[[Database], None]


def _execute(database: Database, statements: Iterable[str]) -> None:
    for statement in statements:
        database.execute(statement)


def m001_conversations(database: Database) -> None:
    """Messages, runs, prompts, replies, tasks and descriptions."""
    _execute(database, FIRST)


def m002_engine(database: Database) -> None:
    """What the engine asks for besides: plans, where a conversation begins, who is blocked, what is remembered."""
    _execute(database, ENGINE)
    _settle(database)


def _settle(database: Database) -> None:
    """Give the tasks of an older file their plans."""
    kept = [TASK.loads(body) for (body,) in database.execute("SELECT body FROM tasks ORDER BY id")]
    rows = [
        (name, int(task.id in unbound), task.status, dumps(task), task.id)
        for name, plan in group_by_plan(database, kept).items()
        for now in [settle(plan)]
        for unbound in [{one.id for one in without_open_dependencies(now)}]
        for task in now
    ]
    update = "UPDATE tasks SET run_id = ?, free = ?, status = ?, body = ? WHERE task_id = ?"
    database.executemany(update, rows)


def m003_memory(database: Database) -> None:
    """Facts with their sources and scopes, summaries, episodes, and how far a place was read for them."""
    select = "SELECT id, place, about, text, source, learned_at FROM facts ORDER BY id"
    known = database.execute(select).fetchall()
    database.execute("DROP TABLE facts")
    _execute(database, MEMORY)
    for row in known:
        _carry_over(database, *row)
    # what was said before counts as read: whoever updates has not asked for a model to read all of it
    database.execute("INSERT INTO learned (place, facts, episodes) SELECT id, messages, messages FROM places")


def _carry_over(
    database: Database, number: int, place: int, about: int, text: str, source: str, learned_at: str
) -> None:
    """A fact of an older file, which was about the author of the message it came from."""
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
    """Return the place as it called itself last; one that nobody knows more of is taken for a direct chat, to
    be safe.
    """
    row = database.execute("SELECT id, body FROM titles WHERE place = ? ORDER BY id DESC LIMIT 1", (place,)).fetchone()
    if row:
        return row[0], PLACE.loads(row[1])
    select = "SELECT platform, place_id, thread FROM places WHERE id = ?"
    platform, place_id, thread = database.execute(select, (place,)).fetchone()
    unknown = Place(platform=platform, id=place_id, thread=thread, kind="direct")
    return upsert_title(database, unknown, place), unknown


def m004_search(database: Database) -> None:
    """The index of what was said; the messages of an older file are indexed in the background."""
    _execute(database, SEARCH)


def m005_again(database: Database) -> None:
    """Which messages must be read for facts once more, and what is not learned from them again."""
    _execute(database, AGAIN)


def m006_albums(database: Database) -> None:
    """Which messages were sent as one album."""
    _execute(database, ALBUMS)


def m007_hidden(database: Database) -> None:
    """Which messages are hidden, because what was learned from them was forgotten."""
    _execute(database, HIDDEN)


def m008_proposals(database: Database) -> None:
    """What models would forget, until the people it is about say yes."""
    _execute(database, PROPOSALS)


def m009_kinds(database: Database) -> None:
    """Up to which message a place was a direct chat, and up to which it was not."""
    _execute(database, KINDS)


def m010_deliveries(database: Database) -> None:
    """Which kind each message of the outbox is: an answer, an error, a notice, or a task's."""
    _execute(database, DELIVERIES)


def m011_services(database: Database) -> None:
    """Of which service the people of each place are."""
    _execute(database, SERVICES)


def m012_tried(database: Database) -> None:
    """What was tried in a run, as columns of its prompts; it was an empty layer with a name, in all prompts since."""
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
    """Updates of chat services with their keys, reactions, commands to be carried out, places that moved."""
    _execute(database, UPDATES)


def m014_invisible(database: Database) -> None:
    """The index of messages ignores invisible characters. Today's code does that, under today's names of the tables."""
    renames.apply(database, renames.SEARCH)
    reindex_invisible(database)
    renames.revert(database, renames.SEARCH)


def m015_seconds(database: Database) -> None:
    """For how long processes have worked on a run."""
    _execute(database, SECONDS)


def m016_events(database: Database) -> None:
    """What happened in each place, numbered."""
    _execute(database, EVENTS)


def m017_usage(database: Database) -> None:
    """What model calls used and cost, by day, place, person and model."""
    _execute(database, USAGE)


def m018_parts(database: Database) -> None:
    """Replies that are sent as more than one message: the parts of each, and of our message in the log."""
    _execute(database, MESSAGE_PARTS)


def m019_album_index(database: Database) -> None:
    """Albums are found by their ids."""
    _execute(database, ALBUM_INDEX)


def m020_chats(database: Database) -> None:
    """Chats by their names."""
    _execute(database, CHATS)


def m021_drafts(database: Database) -> None:
    """Which messages of the outbox edit a draft."""
    _execute(database, DRAFTS)


def m022_window_pasts(database: Database) -> None:
    """The pasts of windows in a table of their own; each was an episode that began before the first message."""
    _execute(database, WINDOW_PASTS)
    move = """INSERT INTO window_pasts (place, since, start, text, people)
        SELECT place, -1 - start, stop, summary, people FROM episodes WHERE start < 0 ORDER BY id"""
    database.execute(move)
    database.execute("DELETE FROM episodes WHERE start < 0")


def m023_chat_editions(database: Database) -> None:
    """Whether something in a chat was forgotten since it was read."""
    _execute(database, CHAT_EDITIONS)


def m024_left_out(database: Database) -> None:
    """What was left out of a prompt, and why."""
    _execute(database, LEFT_OUT)


def m025_cap_notices(database: Database) -> None:
    """Who was told that a cap on what may be spent is reached."""
    _execute(database, CAP_NOTICES)


def m026_reactions(database: Database) -> None:
    """Which message each reaction belongs to, and where prompts tell of it: those of an older file from now on."""
    _execute(database, REACTIONS)
    owners = """UPDATE reactions SET message = coalesce(
        (SELECT p.message FROM message_parts p WHERE p.place = reactions.place AND p.message_id = reactions.message_id),
        (SELECT m.id FROM messages m WHERE m.place = reactions.place AND m.message_id = reactions.message_id))"""
    database.execute(owners)
    told = """UPDATE reactions SET position = (SELECT messages FROM places WHERE id = reactions.place)
        WHERE message IS NOT NULL AND (SELECT count(*) FROM reactions o
            WHERE o.message = reactions.message AND o.id < reactions.id) < ?"""
    database.execute(told, (reactions.MAX_SHOWN,))


def m027_unknown_attempts(database: Database) -> None:
    """How often nobody knew whether a reply went out."""
    _execute(database, UNKNOWN_ATTEMPTS)


def m028_events_by_sequence(database: Database) -> None:
    """Events of places without indexes; they are read in their sequence."""
    _execute(database, EVENTS_BY_SEQUENCE)
    connection.continue_sequence(database, "place_events", "indexed_events")
    database.execute("DROP TABLE indexed_events")


def m029_hidden_sentences(database: Database) -> None:
    """For which sentences a message is hidden."""
    _execute(database, HIDDEN_SENTENCES)


def m030_plain_names(database: Database) -> None:
    """Tables, columns and indexes get the names that the code uses for what they hold."""
    renames.apply(database, renames.ALL)


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
)

"""Forgets a person: their messages and names, and everything that was derived from them or repeats them.

What is removed for certain is found by references: messages, names, quotes, forwards, reactions, facts about the
person, direct chats, runs that answered them. But their words are also in rows of others: in prompts and records of
other runs, in answers to other people, summaries, episodes, descriptions and titles. No reference leads there, so every
such text is searched for marks (words, names, numbers, sentences) that only this person used; `person_words` says
which. A row with such a mark is removed, or emptied if others refer to it: the number and id of a message stay, so that
a platform which delivers it again adds nothing. At the end SQLite rewrites the file, so that no removed bytes are left
in it.
"""

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.memory.values import FactRules
from tertulia.messages import Author, Quote
from tertulia.run.chat_values import SERVICE
from tertulia.store import chats, prompts, search_index, usage
from tertulia.store.chats import remove_chat
from tertulia.store.encoding import AUTHOR, MESSAGE, PLACE, QUOTE, STRINGS, clean, dumps
from tertulia.store.forget import person_media, person_words, removal, retraction
from tertulia.store.forget.person_words import PersonWords, Vocabulary
from tertulia.store.forget.removal import remove_places
from tertulia.store.identities import find_author, upsert_name
from tertulia.store.message_rows import insert_change
from tertulia.store.model_caches import drop_caches
from tertulia.store.sqlite.connection import Database, clear_cache

NOBODY = Author(id="", name="")  # the author of emptied messages


class Forgotten(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of what was removed. Of a message in a group its number and id stay."""

    known: bool = True  # whether anybody has the id; the raw updates of services are searched for it in any case
    places: int = 0  # direct chats, with everything in them
    messages: int = 0
    quotes: int = 0
    forwards: int = 0  # messages of others that forwarded the person's
    names: int = 0
    titles: int = 0  # of groups that were called by the person's name
    descriptions: int = 0
    files: int = 0  # of media that only the person sent, with what was made of them
    facts: int = 0
    summaries: int = 0
    episodes: int = 0  # and the summaries of windows, which are made of them
    exchanges: int = 0  # of chats with a name
    runs: int = 0  # that answered the person or have their words; only their contents are removed
    prompts: int = 0
    records: int = 0
    tool_runs: int = 0
    answers: int = 0  # messages of the agent's, to the person or with their words
    replies: int = 0
    tasks: int = 0
    blocks: int = 0


def _remove_chat_named(database: Database, name: str) -> int:
    """Remove the chat with a name; return how many exchanges it had."""
    exchanges = chats.count_exchanges(database, name)
    remove_chat(database, name)
    return exchanges


def _empty_forwards(database: Database, rows: Collection[int], at: datetime, rules: FactRules) -> None:
    """Empty messages that others forwarded from the person."""
    retraction.retract(database, list(rows), rules)
    for row in rows:
        removal.empty_message(database, row, at, with_quote=False)


def forget(database: Database, platform: str, author_id: str, at: datetime, rules: FactRules) -> Forgotten:
    """Remove a person in one transaction; the file must be vacuumed after it.

    The person of a chat with a name has that name as id, and the service `chat`.
    """
    exchanges = _remove_chat_named(database, author_id) if platform == SERVICE else 0
    author = find_author(database, clean(platform), clean(author_id))
    near = places_of(database, author) if author is not None else set()
    _remove_updates(database, [author_id, *_names(database, author)], near)
    if author is None:
        return Forgotten(known=exchanges > 0, exchanges=exchanges)
    media = person_media.read_media(database)
    _remove_events(database, near)
    prompts.remove_fact_ids(database, near)
    words = person_words.read_vocabulary(database, author, author_id, near)
    direct = [place for place in near if is_private_chat(database, place, author)]
    theirs = {(place, message_id) for _, place, message_id in _messages_of(database, author)}
    counts = {
        "descriptions": _remove_descriptions(database, author, words, direct),
        "summaries": _remove_summaries(database, author, words),
        "episodes": _remove_episodes(database, author, words, direct),
        "facts": _remove_facts(database, author, direct, rules) + _remove_facts_with_words(database, words, rules),
        "messages": len(theirs),
        "places": remove_places(database, direct),
    }
    forwards = _forwards_of(database, author, words)
    runs = removal.find_runs(database, words, theirs, forwards)
    gone = removal.remove_replies(database, words, runs, theirs, at, author=author)
    removed = removal.remove_runs(database, runs.showing)
    exchanges += chats.remove_exchanges_with_words(database, words, runs.showing, at)
    counts |= {
        "exchanges": exchanges,
        "runs": len(runs.showing),
        "prompts": removed.prompts,
        "records": removed.records,
        "tool_runs": removed.tool_runs,
        "answers": len(gone.answers),
        "replies": gone.replies,
        "tasks": gone.tasks,
        "quotes": _remove_quotes(database, author, words, theirs | gone.answers | forwards.keys(), at),
        "forwards": len(forwards),
        "titles": removal.remove_titles(database, words),
        "blocks": database.execute("DELETE FROM blocked_authors WHERE author = ?", (author,)).rowcount,
    }
    _empty_forwards(database, forwards.values(), at, rules)
    _empty_messages(database, author, at)
    counts["names"] = _remove_names(database, author)
    counts["files"], descriptions = person_media.remove_lost_media(database, media, words.media)
    counts["descriptions"] += descriptions
    drop_caches(database)
    clear_cache(database)
    return Forgotten(known=True, **counts)


def _messages_of(database: Database, author: int) -> list[tuple[int, int, str]]:
    """Return the rows, places and ids of an author's messages."""
    select = "SELECT m.id, m.place, m.message_id FROM messages m JOIN names n ON n.id = m.name WHERE n.author = ?"
    return database.execute(select, (author,)).fetchall()


def _forwards_of(database: Database, author: int, words: Vocabulary) -> dict[tuple[int, str], int]:
    """Return the messages of others that forwarded the person: their places and ids, and their rows.

    Of a forward whose author is unknown or the agent, the words and the name decide.
    """
    select = """SELECT m.id, m.place, m.message_id, m.forward_author, m.forwarded_from, m.parts
        FROM messages m JOIN names n ON n.id = m.name WHERE m.forwarded_from IS NOT NULL AND n.author <> ?"""
    found: dict[tuple[int, str], int] = {}
    for row, place, message_id, whose, body, parts in database.execute(select, (author,)).fetchall():
        origin = AUTHOR.loads(body)
        is_known = origin.persona is None and not origin.unknown
        if whose == author or (not is_known and words.at(place).is_in(parts, origin.name)):
            found[place, message_id] = row
    return found


def places_of(database: Database, author: int) -> set[int]:
    """Return the places where the person wrote, reacted, was quoted, forwarded or has facts, and their direct chats."""
    select = """SELECT m.place FROM messages m JOIN names n ON n.id = m.name WHERE n.author = ?
        UNION SELECT place FROM messages WHERE reply_author = ?
        UNION SELECT place FROM messages WHERE forward_author = ?
        UNION SELECT r.place FROM reactions r JOIN names n ON n.id = r.name WHERE n.author = ?
        UNION SELECT place FROM facts WHERE about = ? UNION SELECT place FROM summaries WHERE about = ?
        UNION SELECT p.id FROM places p JOIN authors a ON a.platform = p.service AND a.author_id = p.place_id
        WHERE a.id = ?"""
    return {place for (place,) in database.execute(select, (author,) * 7)}


def is_private_chat(database: Database, place: int, author: int) -> bool:
    """Return whether a place is a direct chat without messages of others."""
    bodies = database.execute("SELECT body FROM titles WHERE place = ?", (place,)).fetchall()
    if not any(PLACE.loads(body).kind == "direct" for (body,) in bodies):
        return False
    others = """SELECT 1 FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = ? AND m.role = 'user' AND n.author <> ? AND n.body <> ? LIMIT 1"""
    return database.execute(others, (place, author, dumps(NOBODY))).fetchone() is None


def _remove_descriptions(database: Database, author: int, words: Vocabulary, direct: list[int]) -> int:
    """Remove descriptions of media that only the person sent, and those with the person's words."""
    marks = ", ".join("?" * len(direct))
    mine = f"""SELECT m.id FROM messages m JOIN names n ON n.id = m.name
        WHERE n.author = ? OR m.forward_author = ? OR m.place IN ({marks})"""
    delete = f"""DELETE FROM descriptions WHERE unique_id IN (SELECT unique_id FROM media WHERE message IN ({mine}))
        AND unique_id NOT IN (SELECT unique_id FROM media WHERE message NOT IN ({mine}))"""
    count = database.execute(delete, (author, author, *direct) * 2).rowcount
    select = """SELECT m.place, d.id, d.text FROM descriptions d
        JOIN media a ON a.unique_id = d.unique_id JOIN messages m ON m.id = a.message"""
    found = {row for row, _ in rows_with_words(database, words, select)}
    for row in found:
        count += 1
        delete = "DELETE FROM descriptions WHERE id = ? RETURNING unique_id"
        (unique_id,) = database.execute(delete, (row,)).fetchone()
        again = database.execute("SELECT message FROM media WHERE unique_id = ?", (unique_id,)).fetchall()
        search_index.unindex(database, [message for (message,) in again])
    return count


def _remove_facts(database: Database, author: int, direct: list[int], rules: FactRules) -> int:
    """Remove the facts about the person, those learned from them alone, and those of their direct chats."""
    marks = ", ".join("?" * len(direct))
    select = f"SELECT id FROM facts WHERE about = ? OR place IN ({marks})"
    theirs = [row for (row,) in database.execute(select, (author, *direct))]
    retraction.remove(database, theirs, rules)
    learned = retraction.remove_sources(database, [row for row, *_ in _messages_of(database, author)], rules)
    return len(theirs) + learned


def _remove_facts_with_words(database: Database, words: Vocabulary, rules: FactRules) -> int:
    """Remove the facts about others with words of the person."""
    found = [row for row, *_ in rows_with_words(database, words, "SELECT place, id, text, key, name FROM facts")]
    retraction.remove(database, found, rules)
    return len(found)


def _remove_summaries(database: Database, author: int, words: Vocabulary) -> int:
    """Remove the summaries of the person, and those of others with their words."""
    count = database.execute("DELETE FROM summaries WHERE about = ?", (author,)).rowcount
    found = rows_with_words(database, words, "SELECT place, id, text FROM summaries")
    database.executemany("DELETE FROM summaries WHERE id = ?", [(row,) for row, *_ in found])
    return count + len(found)


def _remove_episodes(database: Database, author: int, words: Vocabulary, direct: list[int]) -> int:
    """Remove the episodes and window summaries with the person, of their direct chats, or with their words."""
    platform, author_id = database.execute("SELECT platform, author_id FROM authors WHERE id = ?", (author,)).fetchone()
    count = 0
    for table, texts in (("episodes", "topic, summary, tags"), ("window_pasts", "text")):
        select = f"SELECT e.id, e.place, e.people FROM {table} e JOIN places p ON p.id = e.place WHERE p.service = ?"
        rows = database.execute(select, (platform,)).fetchall()
        found = {row for row, place, people in rows if place in direct or author_id in STRINGS.loads(people)}
        found |= {row for row, *_ in rows_with_words(database, words, f"SELECT place, id, {texts} FROM {table}")}
        database.executemany(f"DELETE FROM {table} WHERE id = ?", [(row,) for row in found])
        count += len(found)
    return count


def _empty_messages(database: Database, author: int, at: datetime) -> None:
    """Empty each message of the person."""
    for row, place, _ in _messages_of(database, author):
        service = database.execute("SELECT service FROM places WHERE id = ?", (place,)).fetchone()[0]
        update = "UPDATE messages SET name = ?, sent_at = NULL WHERE id = ?"
        database.execute(update, (upsert_name(database, service, NOBODY, None), row))
        removal.empty_message(database, row, at)


def _remove_quotes(
    database: Database, author: int, words: Vocabulary, gone: Collection[tuple[int, str]], at: datetime
) -> int:
    """Reduce to an id the quotes of the person, of messages that are *gone*, and those with their words."""
    who: tuple[str, str] = database.execute(
        "SELECT platform, author_id FROM authors WHERE id = ?", (author,)
    ).fetchone()

    def holds_words(quote: Quote, place: int, platform: str) -> bool:
        is_theirs = any(one and (platform, one.id) == who for one in (quote.author, quote.forwarded_from))
        return (place, quote.message_id) in gone or is_theirs or _repeats(quote, words.at(place))

    count = 0
    select = "SELECT m.id, m.place, p.service, m.reply FROM messages m JOIN places p ON p.id = m.place"
    for row, place, platform, reply in database.execute(f"{select} WHERE m.reply IS NOT NULL").fetchall():
        quote = QUOTE.loads(reply)
        if holds_words(quote, place, platform):
            count += 1
            insert_change(database, row, "removed", at, None)
            bare = dumps(Quote(message_id=quote.message_id))
            database.execute("UPDATE messages SET reply = ?, reply_author = NULL WHERE id = ?", (bare, row))
    select = """SELECT e.id, e.place, p.service, e.before FROM message_changes e JOIN places p ON p.id = e.place
        WHERE e.before LIKE '%"reply_to"%'"""
    for row, place, platform, before in database.execute(select).fetchall():
        message = MESSAGE.loads(before)
        old = message.reply_to
        if old is not None and holds_words(old, place, platform):
            count += 1
            bare = dumps(replace(message, reply_to=Quote(message_id=old.message_id)))
            database.execute("UPDATE message_changes SET before = ? WHERE id = ?", (bare, row))
    return count


def _repeats(quote: Quote, words: PersonWords) -> bool:
    """Return whether a quote of the agent, or of an unknown author, has these words."""
    speaker = quote.forwarded_from or quote.author
    is_known = speaker is not None and speaker.persona is None and not speaker.unknown
    return not is_known and words.is_in(dumps(quote.parts), quote.excerpt)


def _names(database: Database, author: int | None) -> set[str]:
    """Return all names of the person."""
    found = database.execute(person_words.NAMES, (author, author)).fetchall()
    return {name for row in found for name in row if name}


def _remove_updates(database: Database, names: Iterable[str], near: Collection[int]) -> None:
    """Remove the raw updates of places where the person was, and those with one of the *names*."""
    update = "UPDATE updates SET raw = NULL WHERE id IN (SELECT update_row FROM update_places WHERE place = ?)"
    database.executemany(update, [(place,) for place in near])
    forms = {form.encode("utf-8", "replace") for name in names if name for form in (name, json.dumps(name)[1:-1])}
    for row, raw in database.execute("SELECT id, raw FROM updates WHERE raw IS NOT NULL").fetchall():
        if any(form in raw for form in forms):
            database.execute("UPDATE updates SET raw = NULL WHERE id = ?", (row,))


def _remove_events(database: Database, near: Collection[int]) -> None:
    """Remove the events of learned facts in places where the person was; their ids are no longer valid."""
    delete = "DELETE FROM place_events WHERE place = ? AND json_extract(body, '$.kind') = 'facts learned'"
    database.executemany(delete, [(place,) for place in near])


def _remove_names(database: Database, author: int) -> int:
    for table in ("reactions", "commands"):
        delete = f"DELETE FROM {table} WHERE name IN (SELECT id FROM names WHERE author = ?)"
        database.execute(delete, (author,))
    count = database.execute("DELETE FROM names WHERE author = ?", (author,)).rowcount
    database.execute("DELETE FROM fact_exclusions WHERE about = ?", (author,))
    usage.forget_author(database, author)
    database.execute("DELETE FROM authors WHERE id = ?", (author,))
    return count


def rows_with_words(database: Database, words: Vocabulary, select: str) -> list[tuple[Any, ...]]:
    """Return the rows of *select* (place, key, texts…) with words of the person in a text, without their place."""
    return [row[1:] for row in database.execute(select).fetchall() if words.at(row[0]).is_in(*_texts(row[2:]))]


def _texts(columns: Iterable[Any]) -> list[str]:
    return [text for text in columns if isinstance(text, str)]

"""Memory of other programs on its way into the store: facts, episodes and bans, after the messages they refer to.

Each has an id that is the same in each import, so a second import finds it. What was forgotten stays forgotten. A fact
without a message counts as hearsay. An episode takes the place of ours for its messages; those around it are divided
again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tertulia.formats.imported import ImportedBan, ImportedEpisode, Remembered
from tertulia.memory.extract import HEARSAY_FACTOR
from tertulia.memory.facts import MAX_FACTS, check_fact
from tertulia.memory.values import Episode, Fact
from tertulia.messages import Place
from tertulia.platform import Deleted
from tertulia.store import episodes, places
from tertulia.store.cursors import fact_digest, read_cursor, set_cursor
from tertulia.store.encoding import parse_time
from tertulia.store.facts import learn_about, normalize
from tertulia.store.identities import IdentityCache, current_place, find_author, upsert_place
from tertulia.store.sqlite.connection import Database

UNKNOWN_PERSON = "facts about people who wrote none of the messages"
FORGOTTEN_FACT = "facts that were forgotten"
NO_MESSAGES = "episodes whose messages were not imported"
FORGOTTEN_EPISODE = "episodes of which something was forgotten or deleted"
OVERLAPPING = "episodes with messages of another"

Outcome = Literal["added", "known"] | str  # or the reason why it is skipped


class MemoryCounts(Struct, frozen=True, kw_only=True):
    facts: int = 0
    episodes: int = 0
    bans: int = 0
    known: int = 0
    skipped: Mapping[str, int]


class _Found(Struct, frozen=True, kw_only=True):
    """A message that something refers to."""

    row: int  # of its place
    place: Place
    message_id: str
    number: int
    author: int
    is_gone: bool  # deleted or hidden


def add_memory(database: Database, found: Sequence[Remembered], at: datetime) -> MemoryCounts:
    """Store what another program remembers; what is stored already stays as it is."""
    counts: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for one in found:
        kind, outcome = _add(database, one, at)
        if outcome in ("added", "known"):
            counts[kind if outcome == "added" else "known"] += 1
        else:
            skipped[outcome] += 1
    return MemoryCounts(skipped=skipped, **counts)


def _add(database: Database, one: Remembered, at: datetime) -> tuple[str, Outcome]:
    match one:
        case Fact():
            return "facts", _add_fact(database, one)
        case ImportedEpisode():
            return "episodes", _add_episode(database, one)
        case ImportedBan():
            return "bans", _add_ban(database, one, at)
        case _:
            assert_never(one)


def _add_fact(database: Database, fact: Fact) -> Outcome:
    is_stored = "SELECT 1 FROM facts WHERE fact_id = ?"
    if database.execute(is_stored, (fact.id,)).fetchone():
        return "known"
    about = find_author(database, fact.subject.platform, fact.subject.id)
    named = database.execute("SELECT name FROM names WHERE author = ? ORDER BY id DESC LIMIT 1", (about,)).fetchone()
    if about is None or named is None:
        return UNKNOWN_PERSON
    excluded = "SELECT 1 FROM fact_exclusions WHERE about = ? AND digest IN ('', ?)"
    sources = [one for name in fact.sources for one in _messages(database, fact.place, name)]
    is_excluded = database.execute(excluded, (about, fact_digest(fact.text, named[0]))).fetchone()
    if is_excluded or any(source.is_gone for source in sources):
        return FORGOTTEN_FACT
    upsert_place(database, fact.place)
    hearsay = all(source.author != about for source in sources)
    given = replace(
        fact,
        subject=replace(fact.subject, name=named[0]),
        place=sources[0].place if sources else current_place(database, fact.place),
        sources=tuple(source.message_id for source in sources),
        hearsay=hearsay,
        confidence=fact.confidence * (HEARSAY_FACTOR if hearsay else 1.0),
    )
    learn_about(database, [normalize(check_fact(given))], MAX_FACTS)
    return "added" if database.execute(is_stored, (fact.id,)).fetchone() else "known"


def _messages(database: Database, place: Place, message_id: str) -> list[_Found]:
    """Return the message of a chat with that id, in whichever of its threads it is."""
    now = places.redirect_change(database, Deleted(place=place, message_id=message_id))
    select = """SELECT m.place, m.title, m.number, n.author, m.deleted OR m.hidden FROM messages m
        JOIN places p ON p.id = m.place JOIN names n ON n.id = m.name
        WHERE p.platform = ? AND p.place_id = ? AND m.message_id = ? ORDER BY m.id LIMIT 1"""
    identities = IdentityCache()
    return [
        _Found(
            row=row,
            place=identities.place(database, title),
            message_id=now.message_id,
            number=number,
            author=author,
            is_gone=bool(is_gone),
        )
        for row, title, number, author, is_gone in database.execute(
            select, (now.place.platform, now.place.id, now.message_id)
        ).fetchall()
    ]


def _add_episode(database: Database, given: ImportedEpisode) -> Outcome:
    is_stored = "SELECT 1 FROM episodes WHERE substr(episode_id, 1, ?) = ?"  # its number may have been added
    if database.execute(is_stored, (len(given.id), given.id)).fetchone():
        return "known"
    found = [one for name in given.message_ids for one in _messages(database, given.place, name)]
    if not found:
        return NO_MESSAGES
    row, place = found[0].row, found[0].place
    numbers = [one.number for one in found if one.row == row]
    start, stop = min(numbers), max(numbers) + 1
    messages = """SELECT m.sent_at, a.author_id, m.role, m.deleted OR m.hidden FROM messages m
        JOIN names n ON n.id = m.name JOIN authors a ON a.id = n.author
        WHERE m.place = ? AND m.number >= ? AND m.number < ? ORDER BY m.number"""
    held = database.execute(messages, (row, start, stop)).fetchall()
    if start < episodes.earliest_visible(database, row) or any(is_gone for *_, is_gone in held):
        return FORGOTTEN_EPISODE
    prefix = given.id.rpartition("-")[0]
    overlap = "place = ? AND start < ? AND stop > ?"
    others = f"SELECT 1 FROM episodes WHERE {overlap} AND substr(episode_id, 1, ?) = ?"
    if database.execute(others, (row, stop, start, len(prefix), prefix)).fetchone():
        return OVERLAPPING
    database.execute(f"DELETE FROM episodes WHERE {overlap}", (row, stop, start))
    spoke = (author for _, author, role, _ in held if role == "user")
    episode = Episode(
        id=given.id,
        place=place,
        start=start,
        stop=stop,
        began_at=parse_time(held[0][0]),
        ended_at=parse_time(held[-1][0]),
        topic=given.topic,
        summary=given.summary,
        people=tuple(dict.fromkeys((*spoke, *given.people))),
        tags=given.tags,
        importance=given.importance,
    )
    episodes.insert_episode(database, row, episode)
    if stop > read_cursor(database, place, "episodes"):
        set_cursor(database, place, stop, "episodes")
    return "added"


def _add_ban(database: Database, ban: ImportedBan, at: datetime) -> Outcome:
    author = find_author(database, ban.platform, ban.author_id)
    if database.execute("SELECT 1 FROM blocked_authors WHERE author = ?", (author,)).fetchone():
        return "known"
    places.block_author(database, ban.platform, ban.author_id, at, ban.until)
    return "added"

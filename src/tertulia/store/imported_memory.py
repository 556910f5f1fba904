"""Memory of other programs on its way into the store: facts, episodes and bans, after the messages they refer to.

Each has an id that is the same in each import, so a second import finds it. What was forgotten stays forgotten. A fact
without a message counts as hearsay. An episode takes the place of ours for its messages; those around it are divided
again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tertulia.formats.imported import ImportedBan, ImportedEpisode, Remembered
from tertulia.memory.values import Episode, Fact, FactRules, check_fact
from tertulia.messages import Place
from tertulia.store import episodes, places
from tertulia.store.cursors import read_cursor, set_cursor
from tertulia.store.database import Database
from tertulia.store.encoding import Columns, parse_time
from tertulia.store.facts import learn_about, normalize
from tertulia.store.identities import current_place, find_author, upsert_place

UNKNOWN_PERSON = "facts about people who wrote none of the messages"
FORGOTTEN_FACT = "facts that were forgotten"
NO_MESSAGES = "episodes whose messages were not imported"
FORGOTTEN_EPISODE = "episodes of which something was forgotten or deleted"
OVERLAPPING = "episodes with messages of another"

Outcome = Literal["added", "known"] | str  # or the reason why it is skipped


# Messages of a chat, in whichever of its threads they are.
_FIND_MESSAGES = """SELECT m.message_id, m.place, m.number, n.author,
        CASE WHEN m.deleted = 1 OR m.hidden = 1 THEN 1 ELSE 0 END, t.body
    FROM messages m JOIN places p ON p.id = m.place JOIN names n ON n.id = m.name JOIN titles t ON t.id = m.title
    WHERE p.platform = :platform AND p.place_id = :place_id AND m.message_id IN (:ids) ORDER BY m.id DESC"""

# The messages of an episode: when they were sent, by whom, and whether they can still be read.
_MESSAGES_BETWEEN = """SELECT m.sent_at, a.author_id, m.role, CASE WHEN m.deleted = 1 OR m.hidden = 1 THEN 1 ELSE 0 END
    FROM messages m JOIN names n ON n.id = m.name JOIN authors a ON a.id = n.author
    WHERE m.place = :place AND m.number >= :start AND m.number < :stop ORDER BY m.number"""

_OVERLAP = "place = :place AND start < :stop AND stop > :start"


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


_FOUND = Columns(_Found, "message_id row number author is_gone place")


def add_memory(database: Database, found: Sequence[Remembered], at: datetime, rules: FactRules) -> MemoryCounts:
    """Store what another program remembers; what is stored already stays as it is."""
    counts: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for one in found:
        kind, outcome = _add(database, one, at, rules)
        if outcome in ("added", "known"):
            counts[kind if outcome == "added" else "known"] += 1
        else:
            skipped[outcome] += 1
    return MemoryCounts(skipped=skipped, **counts)


def _add(database: Database, one: Remembered, at: datetime, rules: FactRules) -> tuple[str, Outcome]:
    match one:
        case Fact():
            return "facts", _add_fact(database, one, rules)
        case ImportedEpisode():
            return "episodes", _add_episode(database, one)
        case ImportedBan():
            return "bans", _add_ban(database, one, at)
        case _:
            assert_never(one)


def _add_fact(database: Database, fact: Fact, rules: FactRules) -> Outcome:
    is_stored = "SELECT 1 FROM facts WHERE fact_id = :fact_id"
    if database.one(is_stored, fact_id=fact.id):
        return "known"
    about = find_author(database, fact.subject.platform, fact.subject.id)
    named = database.one("SELECT name FROM names WHERE author = :author ORDER BY id DESC LIMIT 1", author=about)
    if about is None or named is None:
        return UNKNOWN_PERSON
    excluded = "SELECT 1 FROM fact_exclusions WHERE about = :about AND digest IN ('', :digest)"
    sources = _messages(database, fact.place, fact.sources)
    is_excluded = database.one(excluded, about=about, digest=rules.fact_digest(fact.text, named[0]))
    if is_excluded or any(source.is_gone for source in sources):
        return FORGOTTEN_FACT
    upsert_place(database, fact.place)
    given = replace(
        fact,
        subject=replace(fact.subject, name=named[0]),
        place=sources[0].place if sources else current_place(database, fact.place),
        sources=tuple(source.message_id for source in sources),
    )
    if all(source.author != about for source in sources):
        given = rules.as_hearsay(given)
    learn_about(database, [normalize(check_fact(given))], rules)
    return "added" if database.one(is_stored, fact_id=fact.id) else "known"


def _messages(database: Database, place: Place, message_ids: Iterable[str]) -> list[_Found]:
    """Return the messages of a chat with these ids, in whichever of its threads they are."""
    now, ids = places.redirect_ids(database, place, message_ids)
    rows = database.all(_FIND_MESSAGES, platform=now.platform, place_id=now.id, ids=ids)
    found = {
        message.message_id: message for message in map(_FOUND.decode, rows)
    }  # of those with one id the first is last
    return [found[one] for one in ids if one in found]


def _add_episode(database: Database, given: ImportedEpisode) -> Outcome:
    is_stored = "SELECT 1 FROM episodes WHERE substr(episode_id, 1, :length) = :id"  # its number may have been added
    if database.one(is_stored, length=len(given.id), id=given.id):
        return "known"
    found = _messages(database, given.place, given.message_ids)
    if not found:
        return NO_MESSAGES
    row, place = found[0].row, found[0].place
    numbers = [one.number for one in found if one.row == row]
    start, stop = min(numbers), max(numbers) + 1
    held = database.all(_MESSAGES_BETWEEN, place=row, start=start, stop=stop)
    if start < episodes.earliest_visible(database, row) or any(is_gone for *_, is_gone in held):
        return FORGOTTEN_EPISODE
    prefix = given.id.rpartition("-")[0]
    others = f"SELECT 1 FROM episodes WHERE {_OVERLAP} AND substr(episode_id, 1, :length) = :prefix"
    if database.one(others, place=row, start=start, stop=stop, length=len(prefix), prefix=prefix):
        return OVERLAPPING
    database.run(f"DELETE FROM episodes WHERE {_OVERLAP}", place=row, start=start, stop=stop)
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
    if database.one("SELECT 1 FROM blocked_authors WHERE author = :author", author=author):
        return "known"
    places.block_author(database, ban.platform, ban.author_id, at, ban.until)
    return "added"

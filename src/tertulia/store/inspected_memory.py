"""Reads of memory for those who look at a store: people, the sources and uses of facts, summaries and episodes."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from tertulia.engine.inspection import FactUse, NumberedMessage, PersonSummary
from tertulia.memory.values import Episode, Fact, Subject, Summary
from tertulia.messages import Place
from tertulia.store import facts
from tertulia.store.database import Database
from tertulia.store.encoding import AUTHOR, clean, parse_time
from tertulia.store.episodes import select_episodes
from tertulia.store.fact_rows import facts_with_ids, find_subject
from tertulia.store.forget.retraction import with_superseded
from tertulia.store.identities import find_place, select_places
from tertulia.store.message_rows import MESSAGES
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading

_RECENT = 1_000  # messages of a place, or of a person, among which people and places are looked for

# The authors of messages, with how many they wrote, when the last one, and whether it is ours; whose names follows.
_WRITERS = """SELECT w.author, w.messages, m.sent_at, m.own FROM (
        SELECT n.author, sum(c.messages) AS messages, max(c.newest) AS newest FROM (
            SELECT name, count(*) AS messages, max(id) AS newest FROM messages {} GROUP BY name
        ) c JOIN names n ON n.id = c.name GROUP BY n.author
    ) w JOIN messages m ON m.id = w.newest ORDER BY m.id DESC LIMIT :most"""
_BY_AUTHORS = "WHERE name IN (SELECT id FROM names WHERE author IN (:authors))"
_AUTHORS_THERE = """SELECT DISTINCT n.author FROM (
        SELECT name FROM messages WHERE place = :place ORDER BY number DESC LIMIT :most
    ) c JOIN names n ON n.id = c.name"""
_FACTS_ABOUT = "SELECT about, count(*) FROM facts WHERE forgotten_at IS NULL GROUP BY about"

# People by their rows, with all that they went by, and whether they are blocked.
_PEOPLE = """SELECT a.id, a.platform, a.author_id,
        CASE WHEN EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author = a.id) THEN 1 ELSE 0 END, n.body
    FROM authors a LEFT JOIN names n ON n.author = a.id WHERE a.id IN (:people) ORDER BY a.id, n.id"""

# The places of the newest messages of a person.
_PLACES_OF = """SELECT t.body FROM places p JOIN titles t ON t.id = (SELECT max(id) FROM titles WHERE place = p.id)
    WHERE p.id IN (SELECT place FROM messages WHERE id IN (
        SELECT id FROM messages WHERE name IN (SELECT id FROM names WHERE author = :author)
        ORDER BY id DESC LIMIT :most
    )) ORDER BY p.id"""

# The messages that facts were learned from, as far as they can be seen; how many runs were shown facts.
_NUMBERED = Rows(NumberedMessage, "messages m", "number", message=MESSAGES)
_SOURCES = """JOIN fact_sources s ON s.place = m.place AND s.message_id = m.message_id JOIN facts f ON f.id = s.fact
    WHERE f.fact_id IN (:facts) AND f.forgotten_at IS NULL AND m.deleted = 0 AND m.hidden = 0 ORDER BY s.id"""
_SHOWN = """SELECT f.fact_id, count(DISTINCT r.run_id) FROM facts f JOIN recalled r ON r.fact = f.id
    WHERE f.fact_id IN (:facts) GROUP BY f.fact_id"""

# The newest names of people, by their ids.
_NAMES = """SELECT a.platform, a.author_id, n.name FROM authors a
    JOIN names n ON n.id = (SELECT max(id) FROM names WHERE author = a.id) WHERE a.author_id IN (:ids)"""


class InspectedMemory(Repository):
    """The part of `engine.inspection.InspectionStore` that reads memory."""

    @reading
    def people(
        self, database: Database, *, person: Subject | None = None, place: Place | None = None, most: int
    ) -> Sequence[PersonSummary]:
        wanted: list[int] | None = None
        if person is not None:
            row = find_subject(database, person)
            wanted = [] if row is None else [row]
        elif place is not None:
            wanted = database.column(_AUTHORS_THERE, place=find_place(database, place), most=_RECENT)
        named: dict[str, Any] = {} if wanted is None else {"authors": wanted}
        written = database.all(_WRITERS.format("" if wanted is None else _BY_AUTHORS), **named, most=most)
        about = dict[int, int](database.all(_FACTS_ABOUT))
        others = about if wanted is None else wanted
        rows = {author: row for author, *row in written}
        chosen = list(dict.fromkeys(chain(rows, others)))[:most]
        return _people(database, chosen, rows, about)

    @reading
    def places_of(self, database: Database, person: Subject) -> Sequence[Place]:
        return select_places(database, _PLACES_OF, author=find_subject(database, person), most=_RECENT)

    @reading
    def names(self, database: Database, author_ids: Sequence[str]) -> Mapping[tuple[str, str], str]:
        rows = database.all(_NAMES, ids=list(author_ids))
        return {(platform, author_id): name for platform, author_id, name in rows}

    @reading
    def facts(self, database: Database, fact_ids: Sequence[str]) -> Mapping[str, Fact]:
        return facts_with_ids(database, fact_ids)

    @reading
    def fact_uses(self, database: Database, fact_ids: Sequence[str]) -> Mapping[str, FactUse]:
        ids = [clean(one) for one in fact_ids]
        sources = _NUMBERED.by(database, "f.fact_id", _SOURCES, facts=ids)
        shown = dict[str, int](database.all(_SHOWN, facts=ids))
        return {one: FactUse(sources=tuple(sources.get(one, ())), runs=shown.get(one, 0)) for one in ids}

    @reading
    def plan_forget_facts(self, database: Database, fact_ids: Sequence[str]) -> Mapping[str, int]:
        found = facts.same_facts(database, fact_ids)
        rows = with_superseded(database, found)
        counted = """SELECT (SELECT count(DISTINCT m.id) FROM fact_sources s
                JOIN messages m ON m.place = s.place AND m.message_id = s.message_id WHERE s.fact IN (:facts)),
            (SELECT count(*) FROM summaries WHERE about IN (SELECT about FROM facts WHERE id IN (:facts)))"""
        ((messages, summaries),) = database.all(counted, facts=rows)
        return {"facts": len(rows), "messages": messages, "summaries": summaries}

    @reading
    def summaries(self, database: Database, person: Subject) -> Sequence[Summary]:
        return facts.summaries_of(database, person)

    @reading
    def episodes(self, database: Database, episode_ids: Sequence[str]) -> Mapping[str, Episode]:
        found = select_episodes(database, "e.episode_id IN (:ids)", ids=[clean(one) for one in episode_ids])
        return {episode.id: episode for episode in found}

    @reading
    def newest_episodes(
        self, database: Database, *, person: Subject | None = None, place: Place | None = None, most: int
    ) -> Sequence[Episode]:
        of_person = "e.id IN (SELECT episode FROM episode_people WHERE author = :author)"
        which = f"{of_person if place is None else 'e.place = :place'} ORDER BY e.id DESC LIMIT :most"
        values = {"author": person and find_subject(database, person), "place": place and find_place(database, place)}
        return select_episodes(database, which, **values, most=most)


def _people(
    database: Database, chosen: Sequence[int], written: Mapping[int, Sequence[Any]], about: Mapping[int, int]
) -> list[PersonSummary]:
    """Return people by their rows, without agents and unknown accounts."""
    named: dict[int, list[Sequence[Any]]] = {}
    for row, *person in database.all(_PEOPLE, people=list(chosen)):
        named.setdefault(row, []).append(person)
    found = []
    for row in chosen:
        messages, sent_at, own = written.get(row, (0, None, 0))
        platform, author_id, blocked, _ = named[row][0]
        authors = [AUTHOR.loads(body) for *_, body in named[row] if body]
        if own or (authors and not authors[-1].is_person):
            continue
        names = tuple(dict.fromkeys(author.name for author in reversed(authors)))
        found.append(
            PersonSummary(
                person=Subject(platform=platform, id=author_id, name=names[0] if names else ""),
                names=names,
                messages=messages,
                facts=about.get(row, 0),
                last_at=parse_time(sent_at),
                blocked=bool(blocked),
            )
        )
    return found

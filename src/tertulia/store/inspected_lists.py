"""Reads of lists for those who look at a store: the outbox, tasks, media, and a search over all messages."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from tertulia.engine.inspection import FoundMessage, NumberedMessage, StoredMedia
from tertulia.engine.store_protocols import OutboxItem
from tertulia.memory.values import WantedTerm
from tertulia.messages import Message, Place
from tertulia.store.database import Database
from tertulia.store.encoding import Columns, clean
from tertulia.store.identities import find_place
from tertulia.store.index_reader import LAST_CHARACTER
from tertulia.store.media_files import FILES
from tertulia.store.message_rows import MESSAGES, SEEN, descriptions_of
from tertulia.store.outbox import REPLIES
from tertulia.store.rows import Rows
from tertulia.store.tasks import select_tasks
from tertulia.store.threads import Repository, reading
from tertulia.tasks.task import Task

MOST_TERMS = 6  # of a search
_FREQUENT = 2_000  # messages with a term, from which on only the newest are looked at
_UNINDEXED = 5_000  # of the newest messages of a place, among which those without an index are searched

# The media of the newest messages that can be seen, with what is known of them.
_SHOWN = Rows(
    StoredMedia,
    "media a",
    "unique_id kind=media_kind",
    failure="coalesce(w.failure, '')",
    message=Columns(NumberedMessage, "number", "m", message=MESSAGES),
    file=FILES,
)
_MEDIA = f"""JOIN messages m ON m.id = a.message JOIN names n ON n.id = m.name
    LEFT JOIN media_files w ON w.unique_id = a.unique_id LEFT JOIN files f ON f.sha256 = w.sha256
    WHERE a.message IN (SELECT message FROM media ORDER BY message DESC LIMIT :most) AND {SEEN}
    ORDER BY a.message DESC LIMIT :most"""

# The newest message of a place that has media with an id and can be seen.
_WITH_MEDIA = f"""JOIN media a ON a.message = m.id JOIN names n ON n.id = m.name
    WHERE a.unique_id = :unique_id AND m.place = :place AND {SEEN} ORDER BY m.id DESC LIMIT 1"""

# Where words stand in all places, at most so often: a whole word, and words with a prefix. A term is named by its
# number. Of a frequent one only the newest messages of each place are looked at.
_TERM = "t.term = :first{0}"
_PREFIX = "t.term >= :first{0} AND t.term < :stop{0}"
_STANDS = """SELECT t.place, t.number, {0} AS wanted FROM search_places s
    CROSS JOIN search_terms t WHERE t.place = s.place AND {1}"""
_NEWEST = f" AND t.number >= s.indexed_to - {_FREQUENT // 4}"
_IS_FREQUENT = f"SELECT 1 FROM ({{}} LIMIT {_FREQUENT + 1}) u LIMIT 1 OFFSET {_FREQUENT}"
_FOUND_MESSAGE = Columns(FoundMessage, "number", "m", matches="w.matches", message=MESSAGES)
_FOUND = f"""SELECT {_FOUND_MESSAGE} FROM (
        SELECT place, number, count(DISTINCT wanted) AS matches FROM ({{}}) u GROUP BY place, number
    ) w JOIN messages m ON m.place = w.place AND m.number = w.number JOIN names n ON n.id = m.name
    WHERE {SEEN} ORDER BY w.matches DESC, m.id DESC LIMIT :most"""

# Messages that are not indexed, of each place among the newest; a condition on their texts follows.
_CONTAINING = f"""SELECT {_FOUND_MESSAGE} FROM (SELECT 1 AS matches) w CROSS JOIN places p
    LEFT JOIN search_places s ON s.place = p.id CROSS JOIN messages m JOIN names n ON n.id = m.name
    WHERE m.place = p.id AND m.number >= coalesce(s.indexed_to, 0) AND m.number >= p.messages - {_UNINDEXED}
    AND {SEEN} AND ({{}}) ORDER BY m.id DESC LIMIT :most"""


class InspectedLists(Repository):
    """The part of `engine.inspection.InspectionStore` that reads lists."""

    @reading
    def tasks_listed(self, database: Database, *, most: int) -> Sequence[Task]:
        return select_tasks(database, "ORDER BY id DESC LIMIT :most", most=most)

    @reading
    def outbox(self, database: Database, *, most: int) -> Sequence[OutboxItem]:
        unsettled = "WHERE status IN ('doubtful', 'waiting', 'sending') ORDER BY id DESC LIMIT :most"
        settled = "WHERE status IN ('sent', 'dropped') ORDER BY id DESC LIMIT :most"
        return [*REPLIES.all(database, unsettled, most=most), *REPLIES.all(database, settled, most=most)][:most]

    @reading
    def presences(self, database: Database) -> Mapping[str, int]:
        return dict(database.all("SELECT agent, count(*) FROM presences WHERE until IS NULL GROUP BY agent"))

    @reading
    def media(self, database: Database, *, most: int) -> Sequence[StoredMedia]:
        found = _SHOWN.all(database, _MEDIA, most=most)
        described = descriptions_of(database, {one.unique_id for one in found})
        return [replace(one, description=described.get(one.unique_id, "")) for one in found]

    @reading
    def message_with(self, database: Database, place: Place, unique_id: str) -> Message | None:
        return MESSAGES.one(database, _WITH_MEDIA, place=find_place(database, place), unique_id=clean(unique_id))

    @reading
    def search(self, database: Database, wanted: Sequence[WantedTerm], *, most: int) -> Sequence[FoundMessage]:
        terms = list(wanted)[:MOST_TERMS]
        if not terms:
            return []
        values = {f"first{number}": text for number, (text, _) in enumerate(terms)}
        values |= {f"stop{number}": text + LAST_CHARACTER for number, (text, whole) in enumerate(terms) if not whole}
        parts = []
        for number, (_, whole) in enumerate(terms):
            part = _STANDS.format(number, (_TERM if whole else _PREFIX).format(number))
            own = {name: value for name, value in values.items() if name.endswith(str(number))}
            frequent = database.one(_IS_FREQUENT.format(part), **own) is not None
            parts.append(f"SELECT * FROM ({part}{_NEWEST} LIMIT {_FREQUENT}) u{number}" if frequent else part)
        rows = database.all(_FOUND.format(" UNION ALL ".join(parts)), **values, most=most)
        return [_FOUND_MESSAGE.decode(row) for row in rows]

    @reading
    def containing(self, database: Database, texts: Sequence[str], *, most: int) -> Sequence[FoundMessage]:
        if not texts:
            return []
        like = " OR ".join(f"m.text LIKE :text{number} ESCAPE '!'" for number in range(len(texts)))
        values = {f"text{number}": f"%{_escaped(text)}%" for number, text in enumerate(texts)}
        rows = database.all(_CONTAINING.format(like), **values, most=most)
        return [_FOUND_MESSAGE.decode(row) for row in rows]


def _escaped(text: str) -> str:
    """Return a text as a pattern that stands for itself."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")

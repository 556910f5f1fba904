"""Calls of services; their sums by day, place, author, agent and model, which outlive them; notices of reached caps."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tertulia.engine.limits import Spend, StoredCall, UsageRow
from tertulia.memory.values import Subject
from tertulia.messages import Author, Message, Place
from tertulia.models.base import Usage
from tertulia.models.calls import Call, SentRequest
from tertulia.models.prices import Price
from tertulia.store.database import Database, send_row
from tertulia.store.encoding import PLACE, Columns
from tertulia.store.identities import find_author, find_place
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing
from tertulia.timezones import utc

S = TypeVar("S", bound=Struct)

_USED = Columns(Usage, "input cached written output thought", "u")
_PRICE = Columns(Price, "input=input_price cached=cached_price output=output_price", "u")
_REQUEST = Columns(SentRequest, "sha256 size wire streamed cached=cache vendor receipts", "u")
_CALL = Columns(
    Call,
    "purpose run=run_id agent step attempt model answered_by begun_at first_at ended_at waited status error why money "
    "media",
    "u",
    usage=_USED,
    price=_PRICE,
    request=_REQUEST,
)
_PLACE = Columns(Place, "platform id=place_id thread", "p", kind="'direct'")
_NAME = "coalesce((SELECT n.name FROM names n WHERE n.author = a.id ORDER BY n.id DESC LIMIT 1), '')"
_PERSON = Columns(Subject, "platform id=author_id", "a", name=_NAME)
_CALLS = Rows(StoredCall, "calls u", "", call=_CALL, place=_PLACE, person=_PERSON)
_SPENT_OF = "day agent model calls input cached written output thought money"
_DAYS = Rows(UsageRow, "usage u", _SPENT_OF, place=_PLACE, person=_PERSON)
_SUMS = ("calls", *_USED.names, "money")
_OF_DAY = f"day, place, author, agent, model, {', '.join(_SUMS)}"
_TITLE = "(SELECT t.body FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1)"
_NAMED = "LEFT JOIN places p ON p.id = u.place LEFT JOIN authors a ON a.id = u.author"

# Adds to a row of sums. Two rows may be for nobody any more; the older one counts on.
_ADD = f"""UPDATE usage SET {", ".join(f"{name} = {name} + :{name}" for name in _SUMS)}
    WHERE id = (SELECT min(id) FROM usage WHERE day = :day AND place IS NOT DISTINCT FROM :place
        AND author IS NOT DISTINCT FROM :author AND agent = :agent AND model = :model)"""

# The usage of a place becomes that of another one.
_MOVE = f"""INSERT INTO usage ({_OF_DAY}) SELECT {_OF_DAY.replace("place", ":new", 1)} FROM usage WHERE place = :old
    ON CONFLICT (day, place, author, agent, model) DO UPDATE SET
    {", ".join(f"{name} = usage.{name} + excluded.{name}" for name in _SUMS)}"""

# What was spent on a day.
_SPENT = """SELECT coalesce(sum(input + output + thought), 0), coalesce(sum(money), 0.0) FROM usage
    WHERE day = :day"""


class SqlUsage(Repository):
    """Implements `engine.spend_caps.UsageStore`."""

    @reading
    def spent(
        self,
        database: Database,
        day: date,
        *,
        place: Place | None = None,
        author: Author | None = None,
        agent: str | None = None,
    ) -> Spend:
        who = find_author(database, place.author_namespace, author.id) if place and author else None
        which = "" if place is None else " AND place = :place" if author is None else " AND author = :who"
        which += "" if agent is None else " AND agent = :agent"
        where = place and find_place(database, place)
        found = database.one(f"{_SPENT}{which}", day=day.isoformat(), place=where, who=who, agent=agent)
        return Spend(tokens=int(found[0]), money=found[1]) if found else Spend()

    @writing
    def add(self, database: Database, call: Call, *, place: Place | None, author: Author | None = None) -> None:
        where = find_place(database, place) if place else None
        who = find_author(database, place.author_namespace, author.id) if place and author else None
        add(database, where, who, call)

    @reading
    def calls(
        self, database: Database, *, run: str | None = None, place: Place | None = None, failed: bool = False, most: int
    ) -> Sequence[StoredCall]:
        conditions = ["1 = 1", *["u.run_id = :run"] * (run is not None), *["u.place = :place"] * (place is not None)]
        conditions += ["u.status <> 'answered'"] * failed
        which = f"WHERE {' AND '.join(conditions)} ORDER BY u.id DESC LIMIT :most"
        values = {"run": run, "place": place and find_place(database, place), "most": most}
        found = [_without_unknown(one) for one in _read(database, _CALLS, which, **values)]
        return found[::-1]

    @reading
    def listed(self, database: Database, since: date) -> Sequence[UsageRow]:
        return _read(database, _DAYS, "WHERE u.day >= :since ORDER BY u.day, u.id", since=since.isoformat())

    @reading
    def has_notice(self, database: Database, message: Message, day: date) -> bool:
        select = "SELECT day FROM cap_notices WHERE day = :day AND place = :place AND author = :author"
        return database.one(select, **_notice(database, message, day)) is not None

    @writing
    def add_notice(self, database: Database, message: Message, day: date) -> None:
        """Store a notice of today, and remove those of other days."""
        database.run("DELETE FROM cap_notices WHERE day <> :day", day=day.isoformat())
        insert = "INSERT INTO cap_notices (day, place, author) VALUES (:day, :place, :author) ON CONFLICT DO NOTHING"
        database.run(insert, **_notice(database, message, day))


def _read(database: Database, rows: Rows[S], which: str, **values: Any) -> list[S]:
    """Return rows, each with the newest title of its place, if that has one."""
    found = rows.beside(database, _TITLE, f"{_NAMED} {which}", **values)
    return [replace(one, place=PLACE.loads(body)) if body else one for one, (body,) in found]


def _without_unknown(stored: StoredCall) -> StoredCall:
    """Return a call without a request of which nothing is known."""
    known = stored.call.request and stored.call.request.sha256
    return stored if known else replace(stored, call=replace(stored.call, request=None))


def add(database: Database, place: int | None, author: int | None, call: Call) -> None:
    """Store a call, and count it for the author who is answered."""
    request = call.request or SentRequest(sha256="", size=0)
    call = replace(call, request=request, begun_at=utc(call.begun_at), ended_at=utc(call.ended_at))
    row = {**_CALL.encode(call), "place": place, "author": author}
    send_row(database, "calls", **row)
    added = {name: row[name] for name in ("place", "author", "agent", "model", "money", *_USED.names)}
    added |= {"calls": 1, "day": call.ended_at.date().isoformat()}
    if not database.run(_ADD, **added):
        send_row(database, "usage", **added)


def _notice(database: Database, message: Message, day: date) -> dict[str, Any]:
    author = find_author(database, message.place.author_namespace, message.author.id)
    return {"day": day.isoformat(), "place": find_place(database, message.place), "author": author}


def move(database: Database, old: int, new: int) -> None:
    """Add the usage of the place *old* to the place *new*."""
    merge_notices = """INSERT INTO cap_notices (day, place, author)
        SELECT day, :new, author FROM cap_notices WHERE place = :old ON CONFLICT DO NOTHING"""
    database.run(_MOVE, old=old, new=new)
    database.run(merge_notices, old=old, new=new)
    database.run("DELETE FROM usage WHERE place = :old", old=old)
    database.run("DELETE FROM cap_notices WHERE place = :old", old=old)


def remove_calls(database: Database, runs: Sequence[str]) -> None:
    """Remove the calls of runs; the sums stay."""
    database.run("DELETE FROM calls WHERE run_id IN (:runs)", runs=list(runs))


def remove_old_calls(database: Database, before: datetime) -> None:
    """Remove the calls of no run that began before *before*; the sums stay."""
    database.run("DELETE FROM calls WHERE run_id IS NULL AND begun_at < :before", before=utc(before).isoformat())

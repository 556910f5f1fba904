"""Calls of services; their sums by day, place, author, agent and model, which outlive them; notices of reached caps."""

from collections.abc import Sequence
from datetime import date, datetime
from itertools import islice
from typing import Any

from msgspec.structs import replace

from tertulia.engine.limits import Spend, StoredCall, UsageRow
from tertulia.memory.values import Subject
from tertulia.messages import Author, Message, Place
from tertulia.models.base import Usage
from tertulia.models.calls import Call, SentRequest
from tertulia.models.prices import Price
from tertulia.store.database import Database, Row, send_row
from tertulia.store.encoding import PLACE, Columns, clean
from tertulia.store.identities import find_author, find_place
from tertulia.store.threads import Repository, reading, writing
from tertulia.timezones import utc

_CALL = Columns(
    Call,
    "purpose run=run_id agent step attempt model answered_by begun_at first_at ended_at waited status error why money "
    "media",
)
_USED = Columns(Usage, "input cached written output thought")
_PRICE = Columns(Price, "input=input_price cached=cached_price output=output_price")
_SENT = Columns(SentRequest, "sha256 size wire streamed cached=cache vendor receipts")
_DAY = Columns(UsageRow, "day agent model calls input cached written output thought money")
_SUMS = ("calls", *_USED.names, "money")
_OF_DAY = f"day, place, author, agent, model, {', '.join(_SUMS)}"

# The newest names of the place and the author of a row.
_NAMES = """p.platform, p.place_id, p.thread,
    (SELECT t.body FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1),
    a.platform, a.author_id, (SELECT n.name FROM names n WHERE n.author = a.id ORDER BY n.id DESC LIMIT 1)"""
_NAMED = "LEFT JOIN places p ON p.id = u.place LEFT JOIN authors a ON a.id = u.author"

# Calls; what is asked of them follows.
_CALLS = f"SELECT {_CALL}, {_USED}, {_PRICE}, {_SENT}, {_NAMES} FROM calls u {_NAMED}"

# Adds to a row of sums. Two rows may be for nobody any more; the older one counts on.
_ADD = f"""UPDATE usage SET {", ".join(f"{name} = {name} + :{name}" for name in _SUMS)}
    WHERE id = (SELECT min(id) FROM usage WHERE day = :day AND place IS NOT DISTINCT FROM :place
        AND author IS NOT DISTINCT FROM :author AND agent = :agent AND model = :model)"""

# All usage from a day on.
_LISTED = f"SELECT {_DAY}, {_NAMES} FROM usage u {_NAMED} WHERE u.day >= :since ORDER BY u.day, u.id"

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
        self, database: Database, day: date, *, place: Place | None = None, author: Author | None = None
    ) -> Spend:
        who = find_author(database, place.author_namespace, author.id) if place and author else None
        which = "" if place is None else " AND place = :place" if author is None else " AND author = :who"
        where = place and find_place(database, place)
        found = database.one(f"{_SPENT}{which}", day=day.isoformat(), place=where, who=who)
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
        statement = f"{_CALLS} WHERE {' AND '.join(conditions)} ORDER BY u.id DESC LIMIT :most"
        rows = database.all(statement, run=run, place=place and find_place(database, place), most=most)
        return [_stored_call(row) for row in reversed(rows)]

    @reading
    def listed(self, database: Database, since: date) -> Sequence[UsageRow]:
        return [_DAY.decode(row, **_named(row)) for row in database.all(_LISTED, since=since.isoformat())]

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


def _named(row: Row) -> dict[str, Any]:
    """Return the place and the person of a row that ends with `_NAMES`; a place without a title by its id."""
    platform, place, thread, body, service, author, name = row[-7:]
    bare = None if place is None else Place(platform=platform, id=place, kind="direct", thread=thread)
    return {
        "place": PLACE.loads(body) if body else bare,
        "person": None if author is None else Subject(platform=service, id=author, name=name or ""),
    }


def add(database: Database, place: int | None, author: int | None, call: Call) -> None:
    """Store a call, and count it for the author who is answered."""
    call = replace(call, model=clean(call.model), begun_at=utc(call.begun_at), ended_at=utc(call.ended_at))
    row = {
        **_CALL.encode(call),
        **_USED.encode(call.usage),
        **(_PRICE.encode(call.price) if call.price else dict.fromkeys(_PRICE.names)),
        **_SENT.encode(call.request or SentRequest(sha256="", size=0)),
        "place": place,
        "author": author,
    }
    send_row(database, "calls", **row)
    added = {name: row[name] for name in ("place", "author", "agent", "model", "money", *_USED.names)}
    added |= {"calls": 1, "day": call.ended_at.date().isoformat()}
    if not database.run(_ADD, **added):
        send_row(database, "usage", **added)


def _stored_call(row: Row) -> StoredCall:
    values = iter(row)
    call = _CALL.decode(values)
    used, price, sent = _USED.decode(values), list(islice(values, len(_PRICE.names))), _SENT.decode(values)
    known = price[0] is not None
    call = replace(
        call, usage=used, price=_PRICE.decode(price) if known else None, request=sent if sent.sha256 else None
    )
    return StoredCall(call=call, **_named(row))


def _notice(database: Database, message: Message, day: date) -> dict[str, Any]:
    author = find_author(database, message.place.author_namespace, message.author.id)
    return {"day": day.isoformat(), "place": find_place(database, message.place), "author": author}


def move(database: Database, old: int, new: int) -> None:
    """Add the usage of the place *old* to the place *new*."""
    merge_notices = """INSERT INTO cap_notices (day, place, author)
        SELECT day, :new, author FROM cap_notices WHERE place = :old ON CONFLICT DO NOTHING"""
    database.run(_MOVE, old=old, new=new)
    database.run("UPDATE calls SET place = :new WHERE place = :old", old=old, new=new)
    database.run(merge_notices, old=old, new=new)
    database.run("DELETE FROM usage WHERE place = :old", old=old)
    database.run("DELETE FROM cap_notices WHERE place = :old", old=old)


def remove_calls(database: Database, runs: Sequence[str]) -> None:
    """Remove the calls of runs; the sums stay."""
    database.run("DELETE FROM calls WHERE run_id IN (:runs)", runs=list(runs))


def remove_old_calls(database: Database, before: datetime) -> None:
    """Remove the calls of no run that began before *before*; the sums stay."""
    database.run("DELETE FROM calls WHERE run_id IS NULL AND begun_at < :before", before=utc(before).isoformat())

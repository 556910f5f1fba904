"""Calls of services; their sums by day, place, author and model, which outlive them; notices of reached caps."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from tertulia.engine.limits import Spend, StoredCall, UsageRow
from tertulia.memory.values import Subject
from tertulia.messages import Author, Message, Place
from tertulia.models.base import Usage
from tertulia.models.calls import Call, SentRequest
from tertulia.models.prices import Price
from tertulia.run.journal import Run
from tertulia.store.database import Database, Row
from tertulia.store.encoding import PLACE, RECEIPTS, SENT_MEDIA, VENDOR, clean, dumps, parse_time, validate
from tertulia.store.identities import find_author, find_place
from tertulia.store.threads import Repository, reading, writing

# One request to a service.
_INSERT_CALL = """INSERT INTO calls (purpose, run_id, step, attempt, place, author, model, answered_by, begun_at,
        first_at, ended_at, waited, status, error, why, input, cached, written, output, thought, input_price,
        cached_price, output_price, money, sha256, size, wire, streamed, cache, vendor, receipts, media)
    VALUES (:purpose, :run_id, :step, :attempt, :place, :author, :model, :answered_by, :begun_at,
        :first_at, :ended_at, :waited, :status, :error, :why, :input, :cached, :written, :output, :thought,
        :input_price, :cached_price, :output_price, :money, :sha256, :size, :wire, :streamed, :cache, :vendor,
        :receipts, :media)"""

# Calls with the newest names of their places and authors; what is asked of them follows.
_CALLS = """SELECT c.purpose, c.run_id, c.step, c.attempt, c.model, c.answered_by, c.begun_at, c.first_at, c.ended_at,
        c.waited, c.status, c.error, c.why, c.input, c.cached, c.written, c.output, c.thought, c.input_price,
        c.cached_price, c.output_price, c.money, c.sha256, c.size, c.wire, c.streamed, c.cache, c.vendor, c.receipts,
        c.media, p.platform, p.place_id, p.thread,
        (SELECT t.body FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1),
        a.platform, a.author_id, (SELECT n.name FROM names n WHERE n.author = a.id ORDER BY n.id DESC LIMIT 1)
    FROM calls c LEFT JOIN places p ON p.id = c.place LEFT JOIN authors a ON a.id = c.author"""

# Adds to the row of a day, place, author and model. Two rows may be for nobody any more; the older one counts on.
_ADD = """UPDATE usage SET calls = calls + 1, input = input + :input, cached = cached + :cached,
    written = written + :written, output = output + :output, thought = thought + :thought, money = money + :money
    WHERE id = (SELECT min(id) FROM usage WHERE day = :day AND place IS NOT DISTINCT FROM :place
        AND author IS NOT DISTINCT FROM :author AND model = :model)"""

# A new row of a day, place, author and model.
_INSERT = """INSERT INTO usage (day, place, author, model, calls, input, cached, written, output, thought, money)
    VALUES (:day, :place, :author, :model, 1, :input, :cached, :written, :output, :thought, :money)"""

# All usage from a day on, with the newest names of places and authors.
_LISTED = """SELECT u.day, u.model, u.calls, u.input, u.cached, u.written, u.output, u.thought,
    u.money, p.platform, p.place_id, p.thread,
    (SELECT t.body FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1),
    a.platform, a.author_id, (SELECT n.name FROM names n WHERE n.author = a.id ORDER BY n.id DESC LIMIT 1)
    FROM usage u LEFT JOIN places p ON p.id = u.place LEFT JOIN authors a ON a.id = u.author
    WHERE u.day >= :since ORDER BY u.day, u.id"""

# What was spent on a day.
_SPENT = """SELECT coalesce(sum(input + output + thought), 0), coalesce(sum(money), 0.0) FROM usage
    WHERE day = :day"""


class SqlUsage(Repository):
    """Implements `engine.spend_caps.UsageStore`."""

    @reading
    def spent(
        self, database: Database, day: date, *, place: Place | None = None, author: Author | None = None
    ) -> Spend:
        select, whose = _SPENT, None
        if place is not None and author is not None:
            select, whose = f"{_SPENT} AND author = :whose", find_author(database, place.author_namespace, author.id)
        elif place is not None:
            select, whose = f"{_SPENT} AND place = :whose", find_place(database, place)
        values = {"day": day.isoformat()} if select is _SPENT else {"day": day.isoformat(), "whose": whose}
        found = database.one(select, **values)
        return Spend(tokens=int(found[0]), money=found[1]) if found else Spend()

    @writing
    def add(self, database: Database, call: Call, *, place: Place | None, author: Author | None = None) -> None:
        where = find_place(database, place) if place else None
        who = find_author(database, place.author_namespace, author.id) if place and author else None
        _add(database, where, who, call)

    @reading
    def calls(
        self, database: Database, *, run: str | None = None, place: Place | None = None, failed: bool = False, most: int
    ) -> Sequence[StoredCall]:
        conditions, values = [], dict[str, Any]()
        if run is not None:
            conditions.append("c.run_id = :run")
            values["run"] = run
        if place is not None:
            conditions.append("c.place = :place")
            values["place"] = find_place(database, place)
        if failed:
            conditions.append("c.status <> 'answered'")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = database.all(f"{_CALLS} {where} ORDER BY c.id DESC LIMIT :most", **values, most=most)
        return [_stored_call(row) for row in reversed(rows)]

    @reading
    def listed(self, database: Database, since: date) -> Sequence[UsageRow]:
        found = []
        for day, model, *numbers, platform, place, thread, body, service, author, name in database.all(
            _LISTED, since=since.isoformat()
        ):
            calls, read, cached, written, output, thought, money = numbers
            found.append(
                UsageRow(
                    day=date.fromisoformat(day),
                    place=_place(platform, place, thread, body),
                    person=_person(service, author, name),
                    model=model,
                    calls=calls,
                    input=read,
                    cached=cached,
                    written=written,
                    output=output,
                    thought=thought,
                    money=money,
                )
            )
        return found

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


def _place(platform: str | None, place: str | None, thread: str | None, body: str | None) -> Place | None:
    """Return a place by its newest title; one without any by its id."""
    if platform is None or place is None:
        return None
    return PLACE.loads(body) if body else Place(platform=platform, id=place, kind="direct", thread=thread)


def _person(platform: str | None, author: str | None, name: str | None) -> Subject | None:
    return None if platform is None or author is None else Subject(platform=platform, id=author, name=name or "")


def add(database: Database, run: Run, call: Call) -> None:
    """Store a call of *run*, and count it for the author of the message that the run answers."""
    place = find_place(database, run.place)
    select = """SELECT n.author FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = :place AND m.message_id = :target"""
    found = database.one(select, place=place, target=run.target)
    _add(database, place, found[0] if found else None, call)


def _add(database: Database, place: int | None, author: int | None, call: Call) -> None:
    used, price, sent = call.usage, call.price, call.request
    numbers = {
        "place": place,
        "author": author,
        "model": clean(call.model),
        "input": used.input,
        "cached": used.cached,
        "written": used.written,
        "output": used.output,
        "thought": used.thought,
        "money": call.money,
    }
    database.run(
        _INSERT_CALL,
        **numbers,
        purpose=call.purpose,
        run_id=call.run,
        step=call.step,
        attempt=call.attempt,
        answered_by=clean(call.answered_by),
        begun_at=_utc(call.begun_at),
        first_at=_utc(call.first_at) if call.first_at else None,
        ended_at=_utc(call.ended_at),
        waited=call.waited,
        status=call.status,
        error=clean(call.error),
        why=clean(call.why),
        input_price=price.input if price else None,
        cached_price=price.cached if price else None,
        output_price=price.output if price else None,
        sha256=sent.sha256 if sent else "",
        size=sent.size if sent else 0,
        wire=sent.wire if sent else "",
        streamed=int(sent.streamed) if sent else 0,
        cache=sent.cached if sent else None,
        vendor=dumps(sent.vendor) if sent and sent.vendor else None,
        receipts=dumps(sent.receipts) if sent and sent.receipts else None,
        media=dumps(call.media) if call.media else None,
    )
    day = call.ended_at.astimezone(UTC).date().isoformat()
    if not database.run(_ADD, day=day, **numbers):
        database.run(_INSERT, day=day, **numbers)


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _stored_call(row: Row) -> StoredCall:
    purpose, run, step, attempt, model, answered_by, begun_at, first_at, ended_at, waited, status, error, why = row[:13]
    read, cached, written, output, thought, input_price, cached_price, output_price, money = row[13:22]
    digest, size, wire, streamed, cache, vendor, receipts, media = row[22:30]
    request = SentRequest(
        sha256=digest,
        size=size,
        wire=wire,
        receipts=RECEIPTS.loads(receipts) if receipts else (),
        vendor=VENDOR.loads(vendor) if vendor else None,
        streamed=bool(streamed),
        cached=cache,
    )
    price = None if input_price is None else Price(input=input_price, cached=cached_price, output=output_price)
    call = Call(
        purpose=purpose,
        run=run,
        step=step,
        attempt=attempt,
        model=model,
        answered_by=answered_by,
        begun_at=datetime.fromisoformat(begun_at),
        first_at=parse_time(first_at),
        ended_at=datetime.fromisoformat(ended_at),
        waited=waited,
        status=status,
        error=error,
        why=why,
        usage=Usage(input=read, cached=cached, written=written, output=output, thought=thought),
        price=price,
        money=money,
        request=validate(request) if digest else None,
        media=SENT_MEDIA.loads(media) if media else (),
    )
    return StoredCall(call=validate(call), place=_place(*row[30:34]), person=_person(*row[34:]))


def _notice(database: Database, message: Message, day: date) -> dict[str, Any]:
    author = find_author(database, message.place.author_namespace, message.author.id)
    return {"day": day.isoformat(), "place": find_place(database, message.place), "author": author}


def move(database: Database, old: int, new: int) -> None:
    """Add the usage of the place *old* to the place *new*."""
    merge = """INSERT INTO usage (day, place, author, model, calls, input, cached, written, output, thought, money)
        SELECT day, :new, author, model, calls, input, cached, written, output, thought, money FROM usage
        WHERE place = :old
        ON CONFLICT (day, place, author, model) DO UPDATE SET calls = usage.calls + excluded.calls,
        input = usage.input + excluded.input, cached = usage.cached + excluded.cached,
        written = usage.written + excluded.written, output = usage.output + excluded.output,
        thought = usage.thought + excluded.thought, money = usage.money + excluded.money"""
    merge_notices = """INSERT INTO cap_notices (day, place, author)
        SELECT day, :new, author FROM cap_notices WHERE place = :old ON CONFLICT DO NOTHING"""
    database.run(merge, old=old, new=new)
    database.run("UPDATE calls SET place = :new WHERE place = :old", old=old, new=new)
    database.run(merge_notices, old=old, new=new)
    database.run("DELETE FROM usage WHERE place = :old", old=old)
    database.run("DELETE FROM cap_notices WHERE place = :old", old=old)


def remove_calls(database: Database, runs: Sequence[str]) -> None:
    """Remove the calls of runs; the sums stay."""
    database.run("DELETE FROM calls WHERE run_id IN (:runs)", runs=list(runs))


def remove_old_calls(database: Database, before: datetime) -> None:
    """Remove the calls of no run that began before *before*; the sums stay."""
    database.run("DELETE FROM calls WHERE run_id IS NULL AND begun_at < :before", before=_utc(before))

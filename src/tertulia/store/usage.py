"""Usage and cost of model calls by day, place, author and model; notices of reached caps."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from tertulia.engine.limits import Spend, UsageRow
from tertulia.memory.values import Subject
from tertulia.messages import Author, Message, Place
from tertulia.run.journal import CallCost, Run
from tertulia.store.database import Database
from tertulia.store.encoding import PLACE, clean
from tertulia.store.identities import find_author, find_place
from tertulia.store.threads import Repository

# Adds to the row of a day, place, author and model. Two rows may be for nobody any more; the older one counts on.
_ADD = """UPDATE usage SET calls = calls + :calls, input = input + :input, cached = cached + :cached,
    output = output + :output, thought = thought + :thought, money = money + :money WHERE id = (
        SELECT min(id) FROM usage WHERE day = :day AND place IS NOT DISTINCT FROM :place
        AND author IS NOT DISTINCT FROM :author AND model = :model)"""

# A new row of a day, place, author and model.
_INSERT = """INSERT INTO usage (day, place, author, model, calls, input, cached, output, thought, money)
    VALUES (:day, :place, :author, :model, :calls, :input, :cached, :output, :thought, :money)"""

# All usage from a day on, with the newest names of places and authors.
_LISTED = """SELECT u.day, u.model, u.calls, u.input, u.cached, u.output, u.thought, u.money,
    p.platform, p.place_id, p.thread, (SELECT t.body FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1),
    a.platform, a.author_id, (SELECT n.name FROM names n WHERE n.author = a.id ORDER BY n.id DESC LIMIT 1)
    FROM usage u LEFT JOIN places p ON p.id = u.place LEFT JOIN authors a ON a.id = u.author
    WHERE u.day >= :since ORDER BY u.day, u.id"""

# What was spent on a day.
_SPENT = """SELECT coalesce(sum(input + output + thought), 0), coalesce(sum(money), 0.0) FROM usage
    WHERE day = :day"""


class SqlUsage(Repository):
    """Implements `engine.spend_caps.UsageStore`."""

    async def spent(self, day: date, *, place: Place | None = None, author: Author | None = None) -> Spend:
        return await self._reader.run(lambda database: _spent(database, day, place, author))

    async def add(self, spent: CallCost, *, place: Place, author: Author | None = None, at: datetime) -> None:
        def work(database: Database) -> None:
            who = find_author(database, place.author_namespace, author.id) if author else None
            _add(database, find_place(database, place), who, at, spent)

        await self._writer.run(work)

    async def listed(self, since: date) -> Sequence[UsageRow]:
        return await self._reader.run(lambda database: _listed(database, since))

    async def has_notice(self, message: Message, day: date) -> bool:
        select = "SELECT day FROM cap_notices WHERE day = :day AND place = :place AND author = :author"
        return await self._reader.run(
            lambda database: database.one(select, **_notice(database, message, day)) is not None
        )

    async def add_notice(self, message: Message, day: date) -> None:
        await self._writer.run(lambda database: _add_notice(database, message, day))


def _listed(database: Database, since: date) -> list[UsageRow]:
    found = []
    for day, model, *numbers, platform, place, thread, body, service, author, name in database.all(
        _LISTED, since=since.isoformat()
    ):
        untitled = Place(platform=platform, id=place, kind="direct", thread=thread) if place is not None else None
        calls, read, cached, output, thought, money = numbers
        found.append(
            UsageRow(
                day=date.fromisoformat(day),
                place=PLACE.loads(body) if body else untitled,
                person=Subject(platform=service, id=author, name=name or "") if author is not None else None,
                model=model,
                calls=calls,
                input=read,
                cached=cached,
                output=output,
                thought=thought,
                money=money,
            )
        )
    return found


def add(database: Database, run: Run, at: datetime, spent: CallCost) -> None:
    """Count a call for the author of the message that *run* answers."""
    place = find_place(database, run.place)
    select = """SELECT n.author FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = :place AND m.message_id = :target"""
    found = database.one(select, place=place, target=run.target)
    _add(database, place, found[0] if found else None, at, spent)


def _add(database: Database, place: int | None, author: int | None, at: datetime, spent: CallCost) -> None:
    used = spent.usage
    row = {
        "day": at.astimezone(UTC).date().isoformat(),
        "place": place,
        "author": author,
        "model": clean(spent.model),
        "calls": 1,
        "input": used.input,
        "cached": used.cached,
        "output": used.output,
        "thought": used.thought,
        "money": spent.money,
    }
    if not database.run(_ADD, **row):
        database.run(_INSERT, **row)


def _add_notice(database: Database, message: Message, day: date) -> None:
    """Store a notice of today, and remove those of other days."""
    database.run("DELETE FROM cap_notices WHERE day <> :day", day=day.isoformat())
    insert = "INSERT INTO cap_notices (day, place, author) VALUES (:day, :place, :author) ON CONFLICT DO NOTHING"
    database.run(insert, **_notice(database, message, day))


def _notice(database: Database, message: Message, day: date) -> dict[str, Any]:
    author = find_author(database, message.place.author_namespace, message.author.id)
    return {"day": day.isoformat(), "place": find_place(database, message.place), "author": author}


def move(database: Database, old: int, new: int) -> None:
    """Add the usage of the place *old* to the place *new*."""
    merge = """INSERT INTO usage (day, place, author, model, calls, input, cached, output, thought, money)
        SELECT day, :new, author, model, calls, input, cached, output, thought, money FROM usage WHERE place = :old
        ON CONFLICT (day, place, author, model) DO UPDATE SET calls = usage.calls + excluded.calls,
        input = usage.input + excluded.input, cached = usage.cached + excluded.cached,
        output = usage.output + excluded.output, thought = usage.thought + excluded.thought,
        money = usage.money + excluded.money"""
    merge_notices = """INSERT INTO cap_notices (day, place, author)
        SELECT day, :new, author FROM cap_notices WHERE place = :old ON CONFLICT DO NOTHING"""
    database.run(merge, old=old, new=new)
    database.run(merge_notices, old=old, new=new)
    database.run("DELETE FROM usage WHERE place = :old", old=old)
    database.run("DELETE FROM cap_notices WHERE place = :old", old=old)


def forget_author(database: Database, author: int) -> None:
    """Leave what a person's calls have cost, and not whose they were."""
    database.run("UPDATE usage SET author = NULL WHERE author = :author", author=author)
    database.run("DELETE FROM cap_notices WHERE author = :author", author=author)


def _spent(database: Database, day: date, place: Place | None, author: Author | None) -> Spend:
    select, whose = _SPENT, None
    if place is not None and author is not None:
        select, whose = f"{_SPENT} AND author = :whose", find_author(database, place.author_namespace, author.id)
    elif place is not None:
        select, whose = f"{_SPENT} AND place = :whose", find_place(database, place)
    values = {"day": day.isoformat()} if select is _SPENT else {"day": day.isoformat(), "whose": whose}
    found = database.one(select, **values)
    return Spend(tokens=int(found[0]), money=found[1]) if found else Spend()

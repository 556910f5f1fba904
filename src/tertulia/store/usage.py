"""Usage and cost of model calls by day, place, author and model; notices of reached caps."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from tertulia.engine.limits import Spend, UsageRow
from tertulia.memory.values import Subject
from tertulia.messages import Author, Message, Place
from tertulia.run.journal import CallCost, Run
from tertulia.store.encoding import PLACE, clean
from tertulia.store.identities import find_author, find_place
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Repository

_COUNT = """UPDATE usage SET calls = calls + 1, input = input + ?, cached = cached + ?, output = output + ?,
    thought = thought + ?, money = money + ? WHERE rowid = (
        SELECT rowid FROM usage WHERE day = ? AND place IS ? AND author IS ? AND model = ? LIMIT 1)"""
_INSERT = """INSERT INTO usage (calls, input, cached, output, thought, money, day, place, author, model)
    VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


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
        select = "SELECT 1 FROM cap_notices WHERE day = ? AND place IS ? AND author IS ?"
        return await self._reader.run(
            lambda database: database.execute(select, _notice(database, message, day)).fetchone() is not None
        )

    async def add_notice(self, message: Message, day: date) -> None:
        await self._writer.run(lambda database: _add_notice(database, message, day))


def _listed(database: Database, since: date) -> list[UsageRow]:
    select = """SELECT u.day, u.model, u.calls, u.input, u.cached, u.output, u.thought, u.money,
        p.platform, p.place_id, p.thread, (SELECT t.body FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1),
        a.platform, a.author_id, (SELECT n.name FROM names n WHERE n.author = a.id ORDER BY n.id DESC LIMIT 1)
        FROM usage u LEFT JOIN places p ON p.id = u.place LEFT JOIN authors a ON a.id = u.author
        WHERE u.day >= ? ORDER BY u.day, u.rowid"""
    found = []
    for day, model, *numbers, platform, place, thread, body, service, author, name in database.execute(
        select, (since.isoformat(),)
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
    select = "SELECT n.author FROM messages m JOIN names n ON n.id = m.name WHERE m.place = ? AND m.message_id = ?"
    found = database.execute(select, (place, run.target)).fetchone()
    _add(database, place, found[0] if found else None, at, spent)


def _add(database: Database, place: int | None, author: int | None, at: datetime, spent: CallCost) -> None:
    used, day = spent.usage, at.astimezone(UTC).date().isoformat()
    numbers = (used.input, used.cached, used.output, used.thought, spent.money)
    row = (*numbers, day, place, author, clean(spent.model))
    if not database.execute(_COUNT, row).rowcount:
        database.execute(_INSERT, row)


def _add_notice(database: Database, message: Message, day: date) -> None:
    """Store a notice of today, and remove those of other days."""
    database.execute("DELETE FROM cap_notices WHERE day <> ?", (day.isoformat(),))
    insert = "INSERT INTO cap_notices (day, place, author) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    database.execute(insert, _notice(database, message, day))


def _notice(database: Database, message: Message, day: date) -> tuple[str, int | None, int | None]:
    author = find_author(database, message.place.author_namespace, message.author.id)
    return day.isoformat(), find_place(database, message.place), author


def move(database: Database, old: int, new: int) -> None:
    """Add the usage of the place *old* to the place *new*."""
    merge = """INSERT INTO usage (day, place, author, model, calls, input, cached, output, thought, money)
        SELECT day, ?, author, model, calls, input, cached, output, thought, money FROM usage WHERE place = ?
        ON CONFLICT (day, place, author, model) DO UPDATE SET calls = calls + excluded.calls,
        input = input + excluded.input, cached = cached + excluded.cached, output = output + excluded.output,
        thought = thought + excluded.thought, money = money + excluded.money"""
    database.execute(merge, (new, old))
    merge_notices = (
        "INSERT INTO cap_notices SELECT day, ?, author FROM cap_notices WHERE place = ? ON CONFLICT DO NOTHING"
    )
    database.execute(merge_notices, (new, old))
    for table in ("usage", "cap_notices"):
        database.execute(f"DELETE FROM {table} WHERE place = ?", (old,))


def forget_author(database: Database, author: int) -> None:
    database.execute("UPDATE usage SET author = NULL WHERE author = ?", (author,))
    database.execute("DELETE FROM cap_notices WHERE author = ?", (author,))


def _spent(database: Database, day: date, place: Place | None, author: Author | None) -> Spend:
    where, values = "day = ?", [day.isoformat()]
    narrowed: int | None = 0
    if place is not None and author is not None:
        where, narrowed = f"{where} AND author = ?", find_author(database, place.author_namespace, author.id)
    elif place is not None:
        where, narrowed = f"{where} AND place = ?", find_place(database, place)
    if narrowed is None:
        return Spend()
    select = f"SELECT coalesce(sum(input + output + thought), 0), coalesce(sum(money), 0.0) FROM usage WHERE {where}"
    tokens, money = database.execute(select, (*values, narrowed) if place is not None else values).fetchone()
    return Spend(tokens=tokens, money=money)

"""What model calls of runs used and cost, summed up by day, place, person and model. Numbers only."""

from datetime import UTC, date, datetime

from palaver.conversation.spending import Spend
from palaver.messages import Author, Place
from palaver.run.journal import Run, Spent
from palaver.store.people import find_author, find_place
from palaver.store.sqlite import Database
from palaver.store.values import clean
from palaver.store.writer import Owner

_ADD = """INSERT INTO usage (day, place, author, model, calls, input, cached, output, thought, money)
    VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?) ON CONFLICT (day, place, author, model) DO UPDATE SET
    calls = calls + 1, input = input + excluded.input, cached = cached + excluded.cached,
    output = output + excluded.output, thought = thought + excluded.thought, money = money + excluded.money"""


class Usages:
    """`conversation.spending.Usages`, stored."""

    def __init__(self, reader: Owner) -> None:
        self._reader = reader

    async def spent(self, day: date, *, place: Place | None = None, author: Author | None = None) -> Spend:
        return await self._reader.run(lambda database: _spent(database, day, place, author))


def add(database: Database, run: Run, at: datetime, spent: Spent) -> None:
    """Count a call for the author of the message that *run* answers."""
    place = find_place(database, run.place)
    select = "SELECT n.author FROM messages m JOIN names n ON n.id = m.name WHERE m.place = ? AND m.message_id = ?"
    found = database.execute(select, (place, run.target)).fetchone()
    used = spent.usage
    numbers = (used.input, used.cached, used.output, used.thought, spent.money)
    day = at.astimezone(UTC).date().isoformat()
    database.execute(_ADD, (day, place, found[0] if found else None, clean(spent.model), *numbers))


def forget_author(database: Database, author: int) -> None:
    database.execute("UPDATE usage SET author = NULL WHERE author = ?", (author,))


def _spent(database: Database, day: date, place: Place | None, author: Author | None) -> Spend:
    where, values = "day = ?", [day.isoformat()]
    narrowed: int | None = 0
    if place is not None and author is not None:
        where, narrowed = f"{where} AND author = ?", find_author(database, place.author_namespace, author.id)
    elif place is not None:
        where, narrowed = f"{where} AND place = ?", find_place(database, place)
    if narrowed is None:
        return Spend()
    select = f"SELECT coalesce(sum(input + output + thought), 0), coalesce(sum(money), 0.0) FROM usage WHERE {where}"  # noqa: S608
    tokens, money = database.execute(select, (*values, narrowed) if place is not None else values).fetchone()
    return Spend(tokens=tokens, money=money)

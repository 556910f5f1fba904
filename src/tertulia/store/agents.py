"""Agents: those that owners added, the agents of places, from which message to which each was in a place.

A message counts for an agent that was in its place: the numbers of a stay are those of the first message of it, and of
the first one after it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from tertulia.engine.store_protocols import AddedAgent, AgentStay, PlaceCast
from tertulia.messages import Place
from tertulia.store import decisions, tasks
from tertulia.store.database import Database, insert_row, upsert_row
from tertulia.store.encoding import PLACE, Columns, clean, format_time
from tertulia.store.identities import find_place, upsert_author, upsert_place, upsert_title
from tertulia.store.threads import Repository, reading, writing
from tertulia.tasks.task import Task

REMOVED = "its agent was removed"  # why a task is cancelled
_ADDED = Columns(AddedAgent, "name text at")
_CAST = Columns(PlaceCast, "agents default=default_agent")
_STAY = Columns(AgentStay, "since until joined_at left_at")
_WAITING = "SELECT place FROM decisions WHERE agent = :agent AND reason = 'waiting'"
_TASKS = "FROM tasks WHERE agent = :agent AND status = 'pending'"
# the newest titles of places; a condition follows
_TITLES = "SELECT t.body FROM titles t WHERE t.id IN (SELECT max(id) FROM titles WHERE place IN ({}) GROUP BY place)"


class SqlAgents(Repository):
    """Implements `engine.store_protocols.AgentStore`."""

    @reading
    def added(self, database: Database) -> Sequence[AddedAgent]:
        select = f"""SELECT a.platform, a.author_id, {_ADDED.of("g")} FROM agents g
            LEFT JOIN authors a ON a.id = g.author WHERE g.removed_at IS NULL ORDER BY g.id"""
        return [_ADDED.decode(row, service=service or "", who=who or "") for service, who, *row in database.all(select)]

    @writing
    def add(self, database: Database, agent: AddedAgent) -> None:
        _remove(database, agent.name, agent.at)
        who = upsert_author(database, agent.service, agent.who) if agent.who else None
        insert_row(database, "agents", author=who, **_ADDED.encode(agent))

    @writing
    def remove(self, database: Database, name: str, *, at: datetime) -> bool:
        return _remove(database, name, at)

    @reading
    def cast(self, database: Database, place: Place) -> PlaceCast:
        select = f"SELECT {_CAST} FROM place_agents WHERE place = :place"
        row = database.one(select, place=find_place(database, place))
        return _CAST.decode(row) if row else PlaceCast()

    @writing
    def set_cast(self, database: Database, place: Place, cast: PlaceCast) -> None:
        upsert_row(database, "place_agents", "place", place=upsert_place(database, place), **_CAST.encode(cast))

    @writing
    def join(self, database: Database, place: Place, agent: str, *, at: datetime, since: int | None = None) -> None:
        row = upsert_place(database, place)
        upsert_title(database, place, row)
        insert = """INSERT INTO presences (place, agent, since, joined_at)
            SELECT id, :agent, coalesce(:since, messages), :at FROM places WHERE id = :place AND NOT EXISTS (
                SELECT 1 FROM presences WHERE place = :place AND agent = :agent AND until IS NULL)"""
        database.run(insert, place=row, agent=clean(agent), since=since, at=format_time(at))

    @writing
    def leave(self, database: Database, place: Place, agent: str, *, at: datetime) -> None:
        values = {"place": find_place(database, place), "agent": clean(agent)}
        update = """UPDATE presences SET until = (SELECT messages FROM places WHERE id = :place), left_at = :at
            WHERE place = :place AND agent = :agent AND until IS NULL"""
        database.run(update, **values, at=format_time(at))
        database.run("DELETE FROM presences WHERE place = :place AND agent = :agent AND until = since", **values)

    @reading
    def stays(self, database: Database, place: Place) -> Mapping[str, Sequence[AgentStay]]:
        select = f"SELECT agent, {_STAY} FROM presences WHERE place = :place ORDER BY agent, since"
        found: dict[str, list[AgentStay]] = {}
        for agent, *row in database.all(select, place=find_place(database, place)):
            found.setdefault(agent, []).append(_STAY.decode(row))
        return found

    @reading
    def places_of(self, database: Database, agent: str) -> Sequence[Place]:
        present = "SELECT place FROM presences WHERE agent = :agent AND until IS NULL"
        return _places(database, present, agent)

    async def drop_waiting(self, agent: str, *, at: datetime) -> Sequence[Task]:
        def drop(database: Database) -> Sequence[Task]:
            decisions.drop_agent(database, agent, at)
            rules = self._access.plans
            waiting = tasks.select_tasks(database, "WHERE agent = :agent AND status = 'pending'", agent=agent)
            cancelled = {task.id: rules.cancel(task, why=REMOVED) for task in waiting}
            tasks.change(database, cancelled, rules)
            return list(cancelled.values())

        either = f"{_WAITING} UNION SELECT place {_TASKS}"
        places = await self._reader.run(lambda database: _places(database, either, agent))
        return await self._writer.run(drop, places=places)


def _remove(database: Database, name: str, at: datetime) -> bool:
    update = "UPDATE agents SET removed_at = :at WHERE name = :name AND removed_at IS NULL"
    return database.run(update, name=clean(name), at=format_time(at)) > 0


def _places(database: Database, which: str, agent: str) -> list[Place]:
    return [
        PLACE.loads(body) for (body,) in database.all(f"{_TITLES.format(which)} ORDER BY t.place", agent=clean(agent))
    ]


def append_place(database: Database, there: int, row: int, count: int) -> None:
    """Add what is stored of the agents of the place *there* to the place *row*, which has so many messages.

    Who is in *row* has been there since before the messages of the other one.
    """
    known = "DELETE FROM presences WHERE place = :there AND agent IN ({})"
    present = "SELECT agent FROM presences WHERE place = :row AND until IS NULL"
    database.run(known.format(present), there=there, row=row)
    moved = "UPDATE presences SET place = :row, since = since + :count, until = until + :count WHERE place = :there"
    database.run(moved, there=there, row=row, count=count)
    cast = """UPDATE place_agents SET place = :row WHERE place = :there
        AND NOT EXISTS (SELECT 1 FROM place_agents WHERE place = :row)"""
    database.run(cast, there=there, row=row)


def find_faults(database: Database) -> Iterator[str]:
    """Yield the stays of agents that end before they begin, or begin before the one before has ended."""
    before: tuple[int, str] | None = None
    ended: int | None = 0
    for place, agent, since, until in database.all(
        "SELECT place, agent, since, until FROM presences ORDER BY place, agent, since"
    ):
        overlaps = (place, agent) == before and (ended is None or since < ended)
        if overlaps or (until is not None and until <= since):
            yield f"agent {agent!r} is in place {place} from message {since} to {until}, which cannot be"
        before, ended = (place, agent), until

"""Agents: those that owners added, the agents of places, from which message to which each was in a place.

A message counts for an agent that was in its place: the numbers of a stay are those of the first message of it, and of
the first one after it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from tertulia.engine.store_protocols import AddedAgent, AgentStay, PlaceCast
from tertulia.messages import Place
from tertulia.store import decisions, tasks
from tertulia.store.database import Database
from tertulia.store.encoding import clean, format_time
from tertulia.store.identities import find_place, select_places, upsert_author, upsert_place, upsert_title
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing
from tertulia.tasks.task import Task

REMOVED = "its agent was removed"  # why a task is cancelled
_ADDED = Rows(AddedAgent, "agents g", "name text at", service="a.platform", who="a.author_id")
_CASTS = Rows(PlaceCast, "place_agents", "agents default=default_agent")
_STAYS = Rows(AgentStay, "presences", "since until joined_at left_at")
_WAITING = "SELECT place FROM decisions WHERE agent = :agent AND reason = 'waiting'"
_TASKS = "FROM tasks WHERE agent = :agent AND status = 'pending'"
# the newest titles of places; a condition follows
_TITLES = "SELECT t.body FROM titles t WHERE t.id IN (SELECT max(id) FROM titles WHERE place IN ({}) GROUP BY place)"


class SqlAgents(Repository):
    """Implements `engine.store_protocols.AgentStore`."""

    @reading
    def added(self, database: Database) -> Sequence[AddedAgent]:
        listed = "LEFT JOIN authors a ON a.id = g.author WHERE g.removed_at IS NULL ORDER BY g.id"
        return _ADDED.all(database, listed)

    @writing
    def add(self, database: Database, agent: AddedAgent) -> None:
        _remove(database, agent.name, agent.at)
        who = upsert_author(database, agent.service, agent.who) if agent.who else None
        _ADDED.insert(database, agent, author=who)

    @writing
    def remove(self, database: Database, name: str, *, at: datetime) -> bool:
        return _remove(database, name, at)

    @reading
    def cast(self, database: Database, place: Place) -> PlaceCast:
        return _CASTS.one(database, "WHERE place = :place", place=find_place(database, place)) or PlaceCast()

    @writing
    def set_cast(self, database: Database, place: Place, cast: PlaceCast) -> None:
        _CASTS.upsert(database, "place", cast, place=upsert_place(database, place))

    @writing
    def join(self, database: Database, place: Place, agent: str, *, at: datetime, since: int | None = None) -> None:
        row = upsert_place(database, place)
        upsert_title(database, place, row)
        insert = """INSERT INTO presences (place, agent, since, joined_at)
            SELECT id, :agent, {}, :at FROM places WHERE id = :place AND NOT EXISTS (
                SELECT 1 FROM presences WHERE place = :place AND agent = :agent AND until IS NULL)"""
        was_there = "EXISTS (SELECT 1 FROM presences WHERE place = :place AND agent = :agent)"
        number = "messages" if since is None else f"CASE WHEN {was_there} THEN messages ELSE :since END"
        database.run(insert.format(number), place=row, agent=clean(agent), at=format_time(at), since=since)

    @writing
    def leave(self, database: Database, place: Place, agent: str, *, at: datetime) -> None:
        values = {"place": find_place(database, place), "agent": clean(agent)}
        update = """UPDATE presences SET until = (SELECT messages FROM places WHERE id = :place), left_at = :at
            WHERE place = :place AND agent = :agent AND until IS NULL"""
        database.run(update, **values, at=format_time(at))
        database.run("DELETE FROM presences WHERE place = :place AND agent = :agent AND until = since", **values)

    @reading
    def stays(self, database: Database, place: Place) -> Mapping[str, Sequence[AgentStay]]:
        row = find_place(database, place)
        return _STAYS.by(database, "agent", "WHERE place = :place ORDER BY agent, since", place=row)

    @reading
    def had_several(self, database: Database) -> bool:
        return database.one("SELECT 1 FROM presences LIMIT 1") is not None

    @reading
    def places_of(self, database: Database, agent: str) -> Sequence[Place]:
        present = "SELECT place FROM presences WHERE agent = :agent AND until IS NULL"
        return _places(database, present, agent)

    @reading
    def awaited(self, database: Database) -> Sequence[str]:
        select = """SELECT agent FROM decisions WHERE agent <> '' AND reason = 'waiting'
            UNION SELECT agent FROM tasks WHERE agent <> '' AND status = 'pending' ORDER BY agent"""
        return [agent for (agent,) in database.all(select)]

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
    return select_places(database, f"{_TITLES.format(which)} ORDER BY t.place", agent=clean(agent))


def append_place(database: Database, there: int, row: int, count: int) -> None:
    """Add what is stored of the agents of the place *there* to the place *row*, which has so many messages.

    Who is in *row* has been there since before the messages of the other one.
    """
    known = "DELETE FROM presences WHERE place = :there AND agent IN ({})"
    present = "SELECT agent FROM presences WHERE place = :row AND until IS NULL"
    database.run(known.format(present), there=there, row=row)
    moved = "UPDATE presences SET place = :row, since = since + :count, until = until + :count WHERE place = :there"
    database.run(moved, there=there, row=row, count=count)
    known_cast = "DELETE FROM place_agents WHERE place = :there AND :row IN (SELECT place FROM place_agents)"
    database.run(known_cast, there=there, row=row)


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

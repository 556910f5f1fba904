"""Forgets people: a person is hidden in one short transaction, and removed in many.

The first transaction stores who is being forgotten and hides them like a blocked author; then their messages are
hidden, and open runs that showed them are withdrawn. From then on nothing new is made of the person. What was made of
them is removed next, and the plan computed again until there is nothing of that; then their own messages and names are
removed. A process that ends in between leaves a row in `forgets`; the next one that opens the store goes on from what
is left.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from tertulia.memory.forget import Forgotten, Key, Plan
from tertulia.memory.person_words import Vocabulary
from tertulia.store.database import Database
from tertulia.store.encoding import clean
from tertulia.store.forget import export, removal, retraction
from tertulia.store.forget.plan import Planner
from tertulia.store.forget.removal import DERIVED, OWN, Section, Work
from tertulia.store.media_files import SqlMedia
from tertulia.store.threads import Access, Operation, Repository, T

_HIDDEN_AT_ONCE = 25  # messages
_BETWEEN_COPIES = 20  # jobs after which the log is copied into the file, beside the writer

# People whose forgetting has begun and is not done.
_UNFINISHED = "SELECT platform, author_id, at FROM forgets WHERE state = 'removing' ORDER BY id"
_OPEN = "SELECT id FROM runs WHERE status = 'open'"
# What a forget in progress knows of the person goes with it.
_DONE = """UPDATE forgets SET platform = '', author_id = '', state = 'removed'
    WHERE state = 'removing' AND platform = :platform AND author_id = :author_id"""


class SqlForgets(Repository):
    """Plans and carries out the forgetting of people."""

    def __init__(self, access: Access, media: SqlMedia) -> None:
        super().__init__(access)
        self._media = media
        self._jobs = 0

    async def plan(self, platform: str, author_id: str) -> Plan:
        """Return what forgetting a person would remove."""
        return await Planner(self._reader, platform, author_id).plan()

    async def export(self, platform: str, author_id: str) -> dict[str, Any]:
        """Return the rows of the plan as they are."""
        plan = await self.plan(platform, author_id)
        return await self._reader.run(lambda database: export.export_plan(database, plan))

    async def forget(self, platform: str, author_id: str, at: datetime) -> Forgotten:
        """Remove a person; return what was removed."""
        planner = Planner(self._reader, platform, author_id)
        plan = await planner.plan()
        if plan.author is None and plan.is_empty:
            return plan.report()
        return await self._remove(plan, planner.words, at)

    async def resume(self) -> bool:
        """Remove the people whose forgetting was interrupted; return whether there were any."""
        people = await self._reader.run(lambda database: database.all(_UNFINISHED))
        for platform, author_id, at in people:
            await self._remove(await self.plan(platform, author_id), None, datetime.fromisoformat(at))
        return bool(people)

    async def _remove(self, plan: Plan, words: Vocabulary | None, at: datetime) -> Forgotten:
        removed, author, self._jobs = plan, plan.author, 0
        newest = await self._reader.run(lambda database: removal.newest_messages(database, author) if author else [])
        await self._write(partial(removal.hide_person, plan=plan, at=at, newest=newest))
        await self._access.clear_caches()
        opened = set(await self._reader.run(lambda database: database.all(_OPEN)))  # they cannot go on
        runs = tuple(key for key in plan.rows.get("runs", ()) if key in opened)
        await self._apply({"runs": DERIVED["runs"]}, replace(plan, rows={"runs": runs}), at)
        for keys in _chunks(plan.rows.get("messages", ()), _HIDDEN_AT_ONCE):
            await self._write(partial(retraction.hide_messages, rows=[row for (row,) in keys], at=at))
        self._media.forget(plan.media)
        await self._apply(DERIVED, plan, at)
        while True:
            plan = await Planner(self._reader, plan.platform, plan.author_id, words).plan()
            more, removed = plan.without(removed), removed.with_rows(plan)
            if more.rows.keys() & DERIVED.keys():
                await self._apply(DERIVED, more, at)
            elif await self._remove_own(plan, at):
                break
        await self._access.clear_caches()
        return removed.report()

    async def _write(self, work: Operation[T]) -> T:
        """Do a job on the writer."""
        if self._jobs % _BETWEEN_COPIES == 0:
            await self._reader.run(lambda database: database.copy_log(), autocommit=True)
        self._jobs += 1
        return await self._writer.run(work)

    async def _apply(self, sections: Mapping[str, Section], plan: Plan, at: datetime) -> None:
        for name, section in sections.items():
            for keys in _chunks(plan.rows.get(name, ()), section.at_once):
                await self._write(partial(section.apply, keys=keys, work=Work(plan, at, self._access.facts)))

    async def _remove_own(self, plan: Plan, at: datetime) -> bool:
        """Remove what is the person's own; return False where something of theirs was written meanwhile."""
        await self._apply(OWN, plan, at)
        for place in plan.direct:
            part = partial(removal.remove_place_part, place=place, since=plan.last_event)
            while not await self._write(part):
                pass
        await self._media.remove_unreferenced()
        await self._media.remove_strays()
        return await self._write(lambda database: _end(database, plan))


def is_to_be_rewritten(database: Database) -> bool:
    """Return whether people were removed and the file was not rewritten since: pages may still have copies of words."""
    return database.one("SELECT 1 FROM forgets WHERE state = 'removed'") is not None


def end(database: Database) -> None:
    """Store that the file was rewritten."""
    database.run("UPDATE forgets SET state = 'done' WHERE state = 'removed'")


def _end(database: Database, plan: Plan) -> bool:
    """Remove who the person was; return False where something written meanwhile still names them."""
    if plan.author is not None and not removal.remove_person(database, plan.author):
        return False
    database.run(_DONE, platform=clean(plan.platform), author_id=clean(plan.author_id))
    database.cache.clear()
    return True


def _chunks(keys: Sequence[Key], size: int) -> Iterator[Sequence[Key]]:
    """Yield some keys at a time; with the size 0 those with the same first column."""
    if size == 0:
        yield from (list(group) for _, group in groupby(keys, lambda key: key[0]))
        return
    yield from (keys[start : start + size] for start in range(0, len(keys), size))

"""Runs and their journals: prompts, records of responses, tool runs.

Resuming a run. Each step of a run is stored before the engine acts on it: `begin` stores the run with its first prompt
and claims its messages, in one transaction; `ask` stores each later prompt before the model is called; a tool is stored
when it starts and again when it ends; `end` stores replies and tasks together with the end of the run. After a crash
the engine reads the open runs, and `journal` gives the last prompt, all records and all tool runs: the run goes on
after its last stored step, and a tool that has ended does not run again. A message is claimed by one run, so
no other run answers it. A run whose prompts were removed, because they showed a forgotten fact, cannot
continue: it may only end with an error notice.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from tertulia.context.values import LeftOut, RecalledThing
from tertulia.engine.store_protocols import OutboxItem, PromptOutdated
from tertulia.errors import InvalidValue
from tertulia.events import DurableEvent, FallbackTried, PromptSent, RunEnded, RunStarted, ToolFinished, ToolStarted
from tertulia.messages import Place
from tertulia.models.calls import Call
from tertulia.run.journal import FallbackStep, Journal, Run, StepProgress, ToolRun
from tertulia.store import decisions, events, outbox, prompts, tasks, usage
from tertulia.store.database import Database, insert_into, send_row, upsert_row
from tertulia.store.encoding import STRINGS, Columns, clean, dumps, validate_id
from tertulia.store.identities import find_place, upsert_place, upsert_title
from tertulia.store.message_rows import FIND_MESSAGE
from tertulia.store.prompts import SqlPrompts, last_prompt
from tertulia.store.rows import Rows
from tertulia.store.threads import Access, Repository, reading, writing
from tertulia.tasks.task import Policy, Task, cancels_sends
from tertulia.turns import Prompt, Record

_CHANGING = "taken=message_ids status ended_at why seconds resumed=resumes"
_STATE = Columns(Run, _CHANGING)
RUNS = Rows(
    Run,
    "runs r",
    f"{_CHANGING} id=run_id agent target began_at horizon model profile",
    place="(SELECT body FROM titles WHERE id = r.title)",
)
_RECORDS = Rows(Record, "records", "turn at valid raw run=record_run_id")
_TOOLS = Rows(ToolRun, "tool_runs", "step number call began_at result ended_at")
_FALLBACKS = Rows(FallbackStep, "prompts", "fallback step why model")
_STEPS = Rows(StepProgress, "prompts", "step at model", tried=_FALLBACKS)
_RECALLED = Rows(
    RecalledThing,
    "recalled r",
    "score why",
    kind="CASE WHEN r.fact IS NOT NULL THEN 'fact' WHEN r.message IS NOT NULL THEN 'message' ELSE 'episode' END",
    id="coalesce(f.fact_id, m.message_id, e.episode_id)",
    place="t.body",
)

# A new run, unless it was begun before.
_INSERT = f"{insert_into('runs', 'place', 'title', *RUNS.names)} ON CONFLICT (run_id) DO NOTHING"

# What changes of a run between two steps, and at its end.
_UPDATE = f"UPDATE runs SET {', '.join(f'{name} = :{name}' for name in _STATE.names)} WHERE run_id = :run_id"

# What a prompt shows from memory, by its kind.
_RECALL = {
    "fact": """INSERT INTO recalled (run_id, fact, score, why)
        SELECT :run_id, id, :score, :why FROM facts WHERE fact_id = :id""",
    "message": """INSERT INTO recalled (run_id, message, score, why)
        SELECT :run_id, id, :score, :why FROM messages WHERE place = :place AND message_id = :id""",
    "episode": """INSERT INTO recalled (run_id, episode, score, why)
        SELECT :run_id, id, :score, :why FROM episodes WHERE episode_id = :id""",
}

# The status of a run, and whether it has prompts.
_STATUS = """SELECT status, message_ids,
    CASE WHEN EXISTS (SELECT 1 FROM prompts WHERE prompts.run_id = runs.run_id) THEN 1 ELSE 0 END, place,
    (SELECT n.author FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = runs.place AND m.message_id = runs.target), agent
    FROM runs WHERE run_id = :run_id"""


class StoredRun(NamedTuple):
    """The stored status and messages of a run, read before a write."""

    status: str
    taken: str
    has_prompts: int  # 0 once they are removed, because they showed a forgotten fact
    place: int
    author: int | None  # who is answered
    agent: str

    def add_call(self, database: Database, call: Call) -> None:
        """Store a call of the run."""
        usage.add(database, self.place, self.author, replace(call, agent=self.agent))


class SqlRuns(Repository):
    """Implements `engine.store_protocols.RunStore`."""

    def __init__(self, access: Access, prompts: SqlPrompts) -> None:
        super().__init__(access)
        self._prompts = prompts

    async def begin(
        self,
        run: Run,
        prompt: Prompt,
        *,
        at: datetime,
        cancels: Policy = cancels_sends,
        changes: int | None = None,
        edits_matter: bool = True,
        left_out: Sequence[LeftOut] = (),
        recalled: Iterable[RecalledThing] = (),
    ) -> None:
        _validate_ids(run)
        prepared, shown = self._prompts.prepare(run, 0, prompt, at=at, left_out=left_out), list(recalled)

        def begin(database: Database) -> None:
            """Begin a run, unless it was begun before."""
            values = _row_of(database, run)
            if not database.run(_INSERT, **values):
                return
            select = f"SELECT changes, removed, {FIND_MESSAGE}, {tasks.HAS_PLANS} FROM places WHERE id = :place"
            ((changed, removed, target, has_plans),) = database.all(
                select, place=values["place"], message_id=run.target, others=tasks.OTHERS
            )
            is_current = changed == changes if edits_matter else removed <= changes <= changed
            if changes is not None and not (is_current and target is not None):
                raise PromptOutdated(f"what run {run.id!r} would ask has changed")
            try:
                decided = decisions.claim(database, run, run.taken, at)
            except InvalidValue as error:
                raise PromptOutdated(str(error)) from error
            if has_plans:
                tasks.cancel_superseded(database, run.place, cancels, self._access.plans)
            started = RunStarted(place=run.place, run_id=run.id, message_id=run.target)
            events.add(database, *decided, started, PromptSent(place=run.place, run_id=run.id, step=0), at=at)
            _add_recalled(database, run.id, shown)
            prompts.insert_prompt(database, prepared)

        await self._writer.run(begin)

    @reading
    def open(self, database: Database) -> Sequence[Run]:
        return RUNS.all(database, "WHERE r.status = 'open' ORDER BY r.id")

    @reading
    def unfinished(self, database: Database, place: Place) -> Sequence[Run]:
        unfinished = f"""WHERE r.place = :place AND (r.status = 'open' OR r.run_id IN (
            SELECT run_id FROM outbox WHERE place = :place AND {outbox.WAITING_ANSWER})) ORDER BY r.id"""
        return RUNS.all(database, unfinished, place=find_place(database, place))

    @reading
    def recalled(self, database: Database, run_id: str) -> Sequence[RecalledThing]:
        joins = """LEFT JOIN facts f ON f.id = r.fact LEFT JOIN episodes e ON e.id = r.episode
            LEFT JOIN messages m ON m.id = r.message LEFT JOIN titles t ON t.id = m.title
            WHERE r.run_id = :run_id ORDER BY r.id"""
        return _RECALLED.all(database, joins, run_id=run_id)

    @writing
    def resume(self, database: Database, run: Run) -> None:
        update = "UPDATE runs SET resumes = :resumes WHERE run_id = :run_id"
        if not database.run(update, resumes=run.resumed, run_id=run.id):
            raise InvalidValue(f"no run {run.id!r} was begun")

    async def ask(
        self, run: Run, step: int, prompt: Prompt, *, at: datetime, tried: FallbackStep | None = None
    ) -> None:
        _validate_ids(run)
        prepared = self._prompts.prepare(run, step, prompt, at=at, tried=tried)
        asked = [PromptSent(place=run.place, run_id=run.id, step=step)]
        fallbacks = [FallbackTried(place=run.place, run_id=run.id, step=step, fallback=tried.fallback)] if tried else []
        await self._writer.run(lambda database: _ask(database, run, prepared, [*fallbacks, *asked], at))

    async def add_record(self, run: Run, step: int, record: Record, *, call: Call | None = None) -> None:
        row = {"run_id": run.id, "step": step, **_RECORDS.encode(record)}

        def write(database: Database) -> None:
            stored = _require_prompts(run, _find(database, run.id))
            send_row(database, "records", **row)
            if call:
                stored.add_call(database, call)

        await self._writer.run(write)

    async def add_call(self, run: Run, call: Call) -> None:
        def write(database: Database) -> None:
            stored = _find(database, run.id)
            if stored is None:
                usage.add(database, find_place(database, run.place), None, replace(call, run=None, agent=run.agent))
            else:
                stored.add_call(database, call)

        await self._writer.run(write)

    async def begin_tool(self, run: Run, tool: ToolRun) -> None:
        started = ToolStarted(place=run.place, run_id=run.id, step=tool.step, call=tool.number, name=tool.call.name)
        await self._write_tool(run, tool, started, tool.began_at)

    async def end_tool(self, run: Run, tool: ToolRun) -> None:
        finished = ToolFinished(
            place=run.place,
            run_id=run.id,
            step=tool.step,
            call=tool.number,
            name=tool.call.name,
            failed=bool(tool.result and tool.result.failed),
        )
        await self._write_tool(run, tool, finished, tool.ended_at)

    @reading
    def journal(self, database: Database, run_id: str) -> Journal | None:
        run = RUNS.one(database, "WHERE r.run_id = :run_id", run_id=run_id)
        if run is None:
            return None
        asked = last_prompt(database, run_id)
        records = _RECORDS.beside(database, "step", "WHERE run_id = :run ORDER BY id", run=run_id)
        tried = "WHERE run_id = :run AND fallback IS NOT NULL ORDER BY id"
        return Journal(
            run=run,
            prompt=asked[1] if asked else None,
            step=asked[0] if asked else 0,
            records=tuple((step, record) for record, (step,) in records),
            tools=tuple(select_tools(database, [run_id]).get(run_id, ())),
            tried=tuple(_FALLBACKS.all(database, tried, run=run_id)),
        )

    async def end(self, run: Run, *, replies: Sequence[OutboxItem] = (), tasks: Sequence[Task] = ()) -> None:
        _validate_ids(run)
        sending, planned = [outbox.as_row(reply) for reply in replies], list(tasks)
        await self._writer.run(lambda database: self._end(database, run, sending, planned))

    def _end(self, database: Database, run: Run, replies: list[outbox.OutboxRow], planned: list[Task]) -> None:
        """End a run and store its replies and tasks; a run that has ended stays as it is.

        A run that showed a fact forgotten since may end as failed, not as done.
        """
        stored = _find(database, run.id)
        if stored and stored.status != "open":
            return
        if stored is None and find_place(database, run.place) is None:
            return  # it was forgotten with its place
        if run.status == "done" and (stored or run.horizon):
            _require_prompts(run, stored)
        made = _upsert(database, run, stored, run.ended_at or run.began_at)
        events.add(database, *made, at=run.ended_at)
        for reply in replies:
            outbox.add(database, reply)
        tasks.add(database, planned, self._access.plans)
        if run.status != "open":
            ended = RunEnded(place=run.place, run_id=run.id, failed=run.status == "failed")
            events.add(database, ended, at=run.ended_at)

    async def _write_tool(self, run: Run, tool: ToolRun, event: DurableEvent, at: datetime | None) -> None:
        row = {"run_id": run.id, **_TOOLS.encode(tool)}

        def write(database: Database) -> None:
            _require_prompts(run, _find(database, run.id))
            upsert_row(database, "tool_runs", "run_id, step, number", **row)
            events.add(database, event, at=at)

        await self._writer.run(write)


def _validate_ids(run: Run) -> None:
    """Raise `InvalidValue` for ids that cannot be stored, before anything is written."""
    validate_id(run.id, "run")
    for message_id in (run.target, *run.taken):
        validate_id(message_id, "message")


def _require_prompts(run: Run, stored: StoredRun | None) -> StoredRun:
    """Return a stored run; raise if there is none, or it has lost its prompts because a fact was forgotten."""
    if stored is None:
        raise PromptOutdated(f"no run {run.id!r} was begun")
    if not stored.has_prompts:
        raise InvalidValue(f"run {run.id!r} showed what was forgotten since; it cannot go on")
    return stored


def _ask(
    database: Database, run: Run, prepared: prompts.PreparedPrompt, made: Sequence[DurableEvent], at: datetime
) -> None:
    stored = _find(database, run.id)
    if stored and stored.status != "open":
        raise InvalidValue(f"run {run.id!r} has ended")
    _require_prompts(run, stored)
    decided = _upsert(database, run, stored, at)
    database.send("UPDATE runs SET model = :model WHERE run_id = :run_id", model=clean(run.model), run_id=run.id)
    events.add(database, *decided, *made, at=at)
    prompts.insert_prompt(database, prepared)


def _upsert(database: Database, run: Run, stored: StoredRun | None, at: datetime) -> list[DurableEvent]:
    """Store the run and claim the messages that it has taken since; return the events of that.

    A run only ever takes more. Messages that it took before are not written again: those of a place that has migrated
    meanwhile have other ids than the run knows.
    """
    if stored is None:
        database.run(_INSERT, **_row_of(database, run))
        started = RunStarted(place=run.place, run_id=run.id, message_id=run.target)  # and ends: no model is asked
        return [*decisions.claim(database, run, run.taken, at), started]
    before = STRINGS.loads(stored.taken)
    more = run.taken[len(before) :]
    taken = dumps((*before, *more)) if more else stored.taken
    database.send(_UPDATE, **{**_STATE.encode(run), "message_ids": taken, "run_id": run.id})
    return [*decisions.claim(database, run, more, at)]


def _find(database: Database, run_id: str) -> StoredRun | None:
    row = database.one(_STATUS, run_id=run_id)
    return StoredRun(*row) if row else None


def _row_of(database: Database, run: Run) -> dict[str, Any]:
    """Return the values of the row of a run."""
    place = upsert_place(database, run.place)
    return {**RUNS.encode(run), "place": place, "title": upsert_title(database, run.place, place)}


def select_steps(database: Database, run_ids: Sequence[str]) -> dict[str, list[StepProgress]]:
    """Return the steps of runs, by the ids of these; of a step that was asked twice the last prompt."""
    found = _STEPS.by(database, "run_id", "WHERE run_id IN (:runs) ORDER BY id", runs=list(run_ids))
    return {run_id: list({one.step: one for one in steps}.values()) for run_id, steps in found.items()}


def select_tools(database: Database, run_ids: Sequence[str]) -> dict[str, list[ToolRun]]:
    """Return the tool runs of runs, by the ids of these."""
    which = "WHERE run_id IN (:runs) ORDER BY run_id, step, number"
    return _TOOLS.by(database, "run_id", which, runs=list(run_ids))


def _add_recalled(database: Database, run_id: str, recalled: Iterable[RecalledThing]) -> None:
    """Store what a prompt shows from memory; what was removed meanwhile is left out."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in recalled:
        row = {"run_id": run_id, "id": one.id, "score": one.score, "why": clean(one.why)}
        place = {"place": find_place(database, one.place)} if one.place else {}
        rows.setdefault(one.kind, []).append(row | place)
    for kind, found in rows.items():
        database.many(_RECALL[kind], found)

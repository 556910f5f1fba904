"""Runs step by step: what was asked, what came back, which tools were begun and what they gave."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from palaver.conversation.journal import Journal, Outgoing, Run, ToolRun
from palaver.store import outbox, tasks
from palaver.store.messages import take
from palaver.store.people import keep_place, keep_title
from palaver.store.prompts import Prompts, last_asked, require_run
from palaver.store.sqlite import Database
from palaver.store.values import ANY, CALL, PLACE, RESULT, TURN, WORDS, an_id, clean, dumps, moment, stamp
from palaver.store.writer import Owner
from palaver.tasks.graph import Task
from palaver.turns import Prompt, Record

_COLUMNS = """r.run_id, r.target, r.taken, r.began_at, r.horizon, r.model, r.profile, r.status, r.ended_at, r.why,
    r.rungs, t.body FROM runs r JOIN titles t ON t.id = r.title"""


class Runs:
    """`conversation.journal.Runs`, kept."""

    def __init__(self, writer: Owner, reader: Owner, prompts: Prompts) -> None:
        self._writer = writer
        self._reader = reader
        self._prompts = prompts

    async def begin(self, run: Run) -> None:
        an_id(run.id, "run")
        await self._writer.run(lambda database: _begin(database, run))

    async def open(self) -> Sequence[Run]:
        return await self._reader.run(_open)

    async def ask(self, run: Run, step: int, prompt: Prompt, *, at: datetime) -> None:
        await self._prompts.keep(run, step, prompt, at=at)

    async def keep(self, run: Run, step: int, record: Record) -> None:
        raw = None if record.raw is None else dumps(record.raw)
        row = (run.id, step, int(record.valid), record.at.isoformat(), record.run, dumps(record.turn), raw)
        insert = "INSERT INTO records (run_id, step, valid, at, named, turn, raw) VALUES (?, ?, ?, ?, ?, ?, ?)"
        await self._writer.run(lambda database: _write(database, run, insert, row))

    async def begin_tool(self, run: Run, tool: ToolRun) -> None:
        await self._keep_tool(run, tool)

    async def end_tool(self, run: Run, tool: ToolRun) -> None:
        await self._keep_tool(run, tool)

    async def journal(self, run_id: str) -> Journal | None:
        return await self._reader.run(lambda database: _journal(database, run_id))

    async def end(self, run: Run, *, replies: Sequence[Outgoing] = (), tasks: Sequence[Task] = ()) -> None:
        sending, planned = [outbox.as_row(reply) for reply in replies], list(tasks)
        await self._writer.run(lambda database: _end(database, run, sending, planned))

    async def _keep_tool(self, run: Run, tool: ToolRun) -> None:
        result = None if tool.result is None else dumps(tool.result)
        began, ended = tool.began_at.isoformat(), stamp(tool.ended_at)
        row = (run.id, tool.step, tool.number, dumps(tool.call), began, result, ended)
        await self._writer.run(lambda database: _write(database, run, _TOOL, row))


_TOOL = """INSERT INTO tool_runs (run_id, step, number, call, began_at, result, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run_id, step, number) DO UPDATE SET
    call = excluded.call, began_at = excluded.began_at, result = excluded.result, ended_at = excluded.ended_at"""


def _write(database: Database, run: Run, statement: str, row: tuple[Any, ...]) -> None:
    require_run(database, run.id)
    database.execute(statement, row)


def _begin(database: Database, run: Run) -> None:
    if database.execute("SELECT 1 FROM runs WHERE run_id = ?", (run.id,)).fetchone() is None:
        _keep(database, run)
    take(database, run.place, run.taken, "taken", run.id)


def _end(database: Database, run: Run, replies: list[outbox.Row], planned: list[Task]) -> None:
    _keep(database, run)
    for reply in replies:
        outbox.add(database, reply)
    tasks.add(database, planned)


def _keep(database: Database, run: Run) -> None:
    place = keep_place(database, run.place)
    values = {
        "run_id": run.id,
        "place": place,
        "title": keep_title(database, run.place, place),
        "target": run.target,
        "taken": dumps(run.taken),
        "began_at": run.began_at.isoformat(),
        "horizon": run.horizon,
        "model": run.model,
        "profile": run.profile,
        "status": run.status,
        "ended_at": stamp(run.ended_at),
        "why": clean(run.why),
        "rungs": dumps(run.rungs),
    }
    changed = ", ".join(f"{column} = excluded.{column}" for column in values)
    keep = f"""INSERT INTO runs ({", ".join(values)}) VALUES ({", ".join("?" * len(values))})
        ON CONFLICT (run_id) DO UPDATE SET {changed}"""  # noqa: S608
    database.execute(keep, tuple(values.values()))


def _open(database: Database) -> list[Run]:
    select = f"SELECT {_COLUMNS} WHERE r.status = 'open' ORDER BY r.id"
    return [_run(row) for row in database.execute(select)]


def _run(row: tuple[Any, ...]) -> Run:
    run_id, target, taken, began_at, horizon, model, profile, status, ended_at, why, rungs, place = row
    return Run(
        id=run_id,
        place=PLACE.loads(place),
        target=target,
        taken=WORDS.loads(taken),
        began_at=datetime.fromisoformat(began_at),
        horizon=horizon,
        model=model,
        profile=profile,
        status=status,
        ended_at=moment(ended_at),
        why=why,
        rungs=WORDS.loads(rungs),
    )


def _journal(database: Database, run_id: str) -> Journal | None:
    row = database.execute(f"SELECT {_COLUMNS} WHERE r.run_id = ?", (run_id,)).fetchone()
    if row is None:
        return None
    asked = last_asked(database, run_id)
    return Journal(
        run=_run(row),
        prompt=asked[1] if asked else None,
        step=asked[0] if asked else 0,
        records=tuple(_records(database, run_id)),
        tools=tuple(_tools(database, run_id)),
    )


def _records(database: Database, run_id: str) -> list[tuple[int, Record]]:
    select = "SELECT step, valid, at, named, turn, raw FROM records WHERE run_id = ? ORDER BY id"
    return [
        (
            step,
            Record(
                turn=TURN.loads(turn),
                at=datetime.fromisoformat(at),
                valid=bool(valid),
                raw=None if raw is None else ANY.loads(raw),
                run=named,
            ),
        )
        for step, valid, at, named, turn, raw in database.execute(select, (run_id,))
    ]


def _tools(database: Database, run_id: str) -> list[ToolRun]:
    select = """SELECT step, number, call, began_at, result, ended_at FROM tool_runs WHERE run_id = ?
        ORDER BY step, number"""
    return [
        ToolRun(
            step=step,
            number=number,
            call=CALL.loads(call),
            began_at=datetime.fromisoformat(began_at),
            result=None if result is None else RESULT.loads(result),
            ended_at=moment(ended_at),
        )
        for step, number, call, began_at, result, ended_at in database.execute(select, (run_id,))
    ]

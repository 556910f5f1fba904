"""Reads for those who look at a store: places in numbers, messages with what became of them, runs with their cost.

Each takes a bounded number of statements, whatever is stored, and finds its rows by an index. What is counted over all
rows of a place is counted in an index alone.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tertulia.engine.inspection import (
    CallSum,
    DaySummary,
    Figures,
    LoggedMessage,
    ModelFigures,
    Named,
    NumberedReply,
    PlaceSummary,
    RunSummary,
    SentSummary,
    Spent,
    StoredConversation,
    UpdateCount,
)
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue
from tertulia.messages import Place, placeholder_of
from tertulia.models.calls import Call, PromptSize
from tertulia.run.journal import Run, RunProgress, RunStatus, ToolRun
from tertulia.store import decisions
from tertulia.store.database import Database, Row
from tertulia.store.encoding import TURNS, Columns, clean, format_time
from tertulia.store.fact_rows import select_facts
from tertulia.store.identities import IMPORTS, conversation_start_column, find_place, read_counts
from tertulia.store.inspected_lists import InspectedLists
from tertulia.store.inspected_memory import InspectedMemory
from tertulia.store.message_rows import MESSAGES, current_reactions
from tertulia.store.outbox import REPLIES
from tertulia.store.rows import Rows
from tertulia.store.runs import RUNS, select_steps, select_tools
from tertulia.store.tasks import IS_FREE, select_tasks
from tertulia.store.threads import reading
from tertulia.tasks.task import Task

_ALL = 2**62  # more messages than a place has

# Places in numbers, with what waits there; their last run, and their last message that can be seen.
_PLACES = Rows(
    PlaceSummary,
    "places p",
    "messages event=events",
    place="t.body",
    runs="(SELECT count(*) FROM runs r WHERE r.place = p.id)",
    waiting="coalesce(w.waiting, 0)",
    doubtful="coalesce(d.doubtful, 0)",
    open_since="o.open_since",
)
_LAST = """(SELECT max(r.id) FROM runs r WHERE r.place = p.id),
    (SELECT m.id FROM messages m WHERE m.place = p.id AND m.deleted = 0 AND m.hidden = 0
        ORDER BY m.number DESC LIMIT 1)"""
_LISTED = f"""JOIN titles t ON t.id = (SELECT max(id) FROM titles WHERE place = p.id)
    LEFT JOIN (SELECT place, count(DISTINCT message) AS waiting FROM decisions WHERE reason = 'waiting' GROUP BY place
        ) w ON w.place = p.id
    LEFT JOIN (SELECT place, count(*) AS doubtful FROM outbox WHERE status = 'doubtful' GROUP BY place
        ) d ON d.place = p.id
    LEFT JOIN (SELECT place, min(began_at) AS open_since FROM runs WHERE status = 'open' GROUP BY place
        ) o ON o.place = p.id
    WHERE p.platform <> '{IMPORTS}' AND (:any = 1 OR p.id = :place) ORDER BY p.id"""

# Failed ones of some runs; a run that only sent a notice of a limit did not fail.
_FAILED = """WHERE r.id IN (:runs) AND r.status = 'failed' AND NOT EXISTS (
    SELECT 1 FROM messages m JOIN decisions d ON d.message = m.id
    WHERE m.place = r.place AND m.message_id = r.target AND d.reason IN ('rate limit', 'spend cap'))"""

# What calls add up to, by what they are grouped by.
_SPENT = Columns(
    Spent,
    "",
    calls="count(*)",
    input="coalesce(sum(input), 0)",
    cached="coalesce(sum(cached), 0)",
    output="coalesce(sum(output + thought), 0)",
    money="coalesce(sum(money), 0.0)",
    without_cache="""coalesce(sum(money + CASE WHEN input_price IS NULL THEN 0.0
        ELSE cached * (input_price - coalesce(cached_price, input_price)) / 1000000 END), 0.0)""",
    unpriced="coalesce(sum(CASE WHEN input_price IS NULL AND input + output + thought > 0 THEN 1 ELSE 0 END), 0)",
)
_CALLS_OF_RUNS = f"SELECT run_id, {_SPENT} FROM calls WHERE run_id IN (:runs) GROUP BY run_id"
_OF_HOUR = Columns(
    CallSum,
    "model",
    failed="sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END)",
    answered_at="max(CASE WHEN status = 'answered' THEN ended_at END)",
    failed_at="max(CASE WHEN status = 'failed' THEN ended_at END)",
    spent=_SPENT,
)
_CALLS_SINCE = f"""SELECT place, substr(ended_at, 1, 13), {_OF_HOUR} FROM calls WHERE %s AND ended_at >= :since
    GROUP BY substr(ended_at, 1, 13), model, place"""
_CALLS_OF_ALL, _CALLS_OF_PLACE = (_CALLS_SINCE % where for where in ("1 = 1", "place = :place"))
_BY_STATUS = Rows(ModelFigures, "calls", "model status", spent=_SPENT)

# When the newest calls began and how they ended.
_TIMES = Rows(Call, "calls", "model begun_at ended_at status error why")

# What waits now, and when the newest event was.
_NOW = Columns(Figures, "waiting waiting_since open_runs tasks_due tasks_pending newest_event_at")
_FIGURES = """SELECT (SELECT count(DISTINCT message) FROM decisions WHERE reason = 'waiting'),
    (SELECT min(at) FROM decisions WHERE reason = 'waiting'), (SELECT count(*) FROM runs WHERE status = 'open'),
    (SELECT count(*) FROM tasks WHERE status = 'pending' AND free = 1 AND due_at <= :now),
    (SELECT count(*) FROM tasks WHERE status = 'pending' AND free = 1),
    (SELECT at FROM place_events WHERE at IS NOT NULL ORDER BY id DESC LIMIT 1)"""

# Messages as they are shown.
_LOGGED = Rows(LoggedMessage, "messages m", "number received_at", message=MESSAGES)

# Prompts with their sizes: the last ones of runs, and those of some runs, the newest first; of the tries of a step the
# last. Their layers, calls and tools.
_SIZE = Columns(PromptSize, "tools=tool_tokens stable broken_by cause", "p")
_PROMPTS = Rows(SentSummary, "prompts p", "run_id step at model", agent="r.agent", size=_SIZE)
_OF_RUN = "JOIN runs r ON r.run_id = p.run_id WHERE"
_LAST_PROMPTS = f"{_OF_RUN} p.id IN (SELECT max(id) FROM prompts WHERE run_id IN (:runs) GROUP BY run_id)"
_SENT = f"""{_OF_RUN} p.run_id IN ({{}}) AND NOT EXISTS (
        SELECT 1 FROM prompts l WHERE l.run_id = p.run_id AND l.step = p.step AND l.id > p.id
    ) ORDER BY p.id DESC LIMIT :most"""

# Which runs are asked for.
_OF_RUNS = {
    "place": "r.place = :place",
    "status": "r.status = :status",
    "before": "r.id < (SELECT id FROM runs WHERE run_id = :before)",
    "ids": "r.run_id IN (:ids)",
    "fact": "r.run_id IN (SELECT c.run_id FROM recalled c JOIN facts f ON f.id = c.fact WHERE f.fact_id = :fact)",
}

# The days on which runs of a place began that have prompts.
_DAYS = """SELECT DISTINCT substr(r.began_at, 1, 10) FROM runs r
    WHERE r.place = :place AND EXISTS (SELECT 1 FROM prompts p WHERE p.run_id = r.run_id) ORDER BY 1 DESC"""

_OF_DAY = """SELECT r.run_id FROM runs r
    WHERE r.place = :place AND r.began_at >= :since AND r.began_at < :until"""
_SENT_LAYERS = """SELECT pl.prompt, l.name, pl.tokens, pl.instruction
    FROM prompt_layers pl JOIN layers l ON l.id = pl.layer
    WHERE pl.prompt IN (:prompts) ORDER BY pl.prompt, pl.position"""
_CALLS_OF_STEPS = f"""SELECT run_id, step, max(CASE status WHEN 'answered' THEN 3 WHEN 'stopped' THEN 2 ELSE 1 END),
        {_SPENT}
    FROM calls WHERE run_id IN (:runs) AND step IS NOT NULL GROUP BY run_id, step"""
_STATUS: Sequence[Any] = ("under way", "failed", "stopped", "answered")

# What there is, and who wrote the newest reply.
_STORED = Columns(DaySummary, "agent messages prompts facts episodes indexed")
_COUNTS = """SELECT (SELECT author FROM outbox WHERE author IS NOT NULL ORDER BY id DESC LIMIT 1),
    (SELECT coalesce(sum(messages), 0) FROM places), (SELECT count(*) FROM prompts),
    (SELECT count(*) FROM facts WHERE forgotten_at IS NULL), (SELECT count(*) FROM episodes WHERE stop > start),
    (SELECT coalesce(sum(indexed_to), 0) FROM search_places)"""

# The runs that began since a moment, and the answers of theirs that were sent.
_BEGAN_SINCE = "FROM places p CROSS JOIN runs r WHERE r.place = p.id AND r.began_at >= :since"  # in this order
_RUNS_SINCE = f"SELECT r.status, count(*) {_BEGAN_SINCE} GROUP BY r.status"
_SENT_SINCE = f"""SELECT coalesce(sum((
    SELECT count(*) FROM outbox o WHERE o.run_id = r.run_id AND o.status = 'sent')), 0) {_BEGAN_SINCE}"""
_UNREAD = "sum(CASE WHEN is_read = 0 THEN 1 ELSE 0 END)"
_UPDATES = Rows(UpdateCount, "updates", "", count="count(*)", unread=_UNREAD, last_at="max(at)")

# Replies of a place, but drafts; which of them follows.
_REPLIES = Rows(NumberedReply, "outbox", "order=id", item=REPLIES)
_OF_PLACE = "WHERE place = :place AND kind <> 'draft' AND "
_WITH_NAMES = f"{_OF_PLACE} outgoing_id IN (:replies) ORDER BY id DESC"
# the newest, of which those that were sent are found by their messages
_NEWEST = f"""{_OF_PLACE} id IN (
        SELECT id FROM outbox WHERE place = :place AND message_id IS NOT NULL
        UNION SELECT id FROM outbox WHERE place = :place AND status IN ('waiting', 'sending', 'doubtful', 'dropped')
    ) ORDER BY id DESC LIMIT :most"""

# How far runs have come.
_PROGRESS = Rows(RunProgress, "runs r", "order=id", run=RUNS)

# The messages with some ids, or with parts of these ids.
_WITH_IDS = """m.id IN (SELECT id FROM messages WHERE place = :place AND message_id IN (:ids)
    UNION SELECT message FROM message_parts WHERE place = :place AND message_id IN (:ids)) ORDER BY m.number"""
_TURNS = """SELECT m.message_id, t.turns FROM messages m JOIN turns t ON t.message = m.id
    WHERE m.id IN (:messages) AND m.hidden = 0"""

_MEASURED = 200  # runs whose seconds are read


class SqlInspection(InspectedMemory, InspectedLists):
    """Implements `engine.inspection.InspectionStore`."""

    @reading
    def blocked(self, database: Database) -> Collection[tuple[str, str]]:
        select = "SELECT a.platform, a.author_id FROM blocked_authors b JOIN authors a ON a.id = b.author"
        return frozenset((platform, author_id) for platform, author_id in database.all(select))

    @reading
    def places(self, database: Database, place: Place | None = None) -> Sequence[PlaceSummary]:
        row = find_place(database, place) if place else None
        listed = _PLACES.beside(database, _LAST, _LISTED, any=int(place is None), place=row)
        failed = RUNS.all(database, _FAILED, runs=[run for _, (run, _) in listed if run])
        by_place = {run.place.key: run for run in failed}
        last = dict(_messages(database, "m.id IN (:rows)", rows=[newest for _, (_, newest) in listed if newest]))
        return [replace(one, failed=by_place.get(one.place.key), last=last.get(newest)) for one, (_, newest) in listed]

    @reading
    def conversation(self, database: Database, place: Place, named: Named, *, most: int) -> StoredConversation:
        row = find_place(database, place)
        columns = f"events, messages, {conversation_start_column(place)}"
        event, count, beginning = read_counts(database, place, columns) or (0, 0, 0)
        newest = database.value("SELECT coalesce(max(id), 0) FROM place_events")
        values: dict[str, Any] = {"place": row, "most": most}
        if named.everything:
            numbers = {**values, "first": count - most}
            found = _messages(database, "m.place = :place AND m.number >= :first ORDER BY m.number", **numbers)
            runs = _progress(database, "", **values)
            replies = _REPLIES.all(database, _NEWEST, **values)
        else:
            runs = _progress(database, "AND r.run_id IN (:runs)", **values, runs=named.runs) if named.runs else []
            replies = _REPLIES.all(database, _WITH_NAMES, **values, replies=named.replies) if named.replies else []
            ids = [*named.messages, *(one.item.message_id for one in replies if one.item.message_id is not None)]
            found = _messages(database, _WITH_IDS, place=row, ids=ids) if ids else []
        decided = decisions.read(database, [one for one, _ in found])
        turns = database.all(_TURNS, messages=[one for one, _ in found])
        has_facts = named.everything or named.facts
        facts = select_facts(database, "f.place = :place", "f.id DESC LIMIT :most", **values) if has_facts else None
        return StoredConversation(
            cursor=str(newest),
            event=event,
            count=count,
            beginning=beginning,
            messages=tuple(replace(message, decisions=decided[one]) for one, message in found),
            turns={message_id: TURNS.loads(made) for message_id, made in turns},
            runs=tuple(runs),
            replies=tuple(replies[::-1]),
            facts=None if facts is None else tuple(facts[::-1]),
        )

    @reading
    def day(self, database: Database, day: date) -> DaySummary:
        since = day.isoformat()
        counts = dict[str, int](database.all(_RUNS_SINCE, since=since))
        updates = _UPDATES.beside(database, "platform", "WHERE at >= :since GROUP BY platform", since=since)
        times = "SELECT seconds, began_at FROM runs WHERE status = 'done' ORDER BY id DESC LIMIT :most"
        return _STORED.decode(
            database.all(_COUNTS)[0],
            done=counts.get("done", 0),
            failed=counts.get("failed", 0),
            sent=database.value(_SENT_SINCE, since=since),
            seconds=tuple(seconds for seconds, began_at in database.all(times, most=_MEASURED) if began_at >= since),
            updates={platform: count for count, (platform,) in updates},
        )

    @reading
    def figures(self, database: Database, since: datetime, *, now: datetime) -> Figures:
        values = {"since": format_time(since), "now": format_time(now)}
        return _NOW.decode(
            database.all(_FIGURES, **values)[0],
            runs=dict(database.all(_RUNS_SINCE, **values)),
            calls=_BY_STATUS.all(database, "WHERE ended_at >= :since GROUP BY 1, 2 ORDER BY 1, 2", **values),
            replies=dict(database.all("SELECT status, count(*) FROM outbox GROUP BY status")),
        )

    @reading
    def call_sums(self, database: Database, since: datetime, *, place: Place | None = None) -> Sequence[CallSum]:
        values: dict[str, Any] = {"since": since.astimezone(UTC).isoformat()}
        if place is None:
            rows = database.all(_CALLS_OF_ALL, **values)
        else:
            rows = database.all(_CALLS_OF_PLACE, place=find_place(database, place), **values)
        select = "SELECT id, platform, place_id, thread FROM places WHERE id IN (:places)"
        places = {row: key for row, *key in database.all(select, places=list({row[0] for row in rows if row[0]}))}
        return [
            _OF_HOUR.decode(
                row,
                place=tuple(places[place]) if place in places else None,
                hour=datetime.fromisoformat(f"{hour}:00:00+00:00"),
            )
            for place, hour, *row in rows
        ]

    @reading
    def call_times(self, database: Database, *, most: int) -> Sequence[Call]:
        return _TIMES.all(database, "ORDER BY id DESC LIMIT :most", most=most)

    @reading
    def messages(
        self,
        database: Database,
        place: Place,
        *,
        before: int | None = None,
        ids: Sequence[str] | None = None,
        people: bool = False,
        most: int,
    ) -> Sequence[LoggedMessage]:
        row = find_place(database, place)
        where = "m.place = :place AND m.number < :before"
        values: dict[str, Any] = {"place": row, "before": _ALL if before is None else before, "most": most}
        if ids is not None:
            where, values["ids"] = f"{where} AND m.message_id IN (:ids)", list(ids)
        if people:
            where = f"{where} AND m.own = 0"
        found = _messages(database, f"{where} ORDER BY m.number DESC LIMIT :most", **values)[::-1]
        decided = decisions.read(database, [one for one, _ in found])
        replies = "WHERE place = :place AND message_id IN (:ids) ORDER BY id DESC"
        names = [one.message.id for _, one in found]
        sent = {one.message_id: one for one in REPLIES.all(database, replies, place=row, ids=names)}
        return [
            replace(message, decisions=decided[one], delivery=sent.get(message.message.id)) for one, message in found
        ]

    @reading
    def runs(
        self,
        database: Database,
        *,
        place: Place | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        ids: Sequence[str] | None = None,
        fact: str | None = None,
        most: int,
    ) -> Sequence[RunSummary]:
        row = place and find_place(database, place)
        asked = {"place": place, "status": status, "before": before, "ids": ids, "fact": fact and clean(fact)}
        conditions = ["r.id > 0", *(_OF_RUNS[name] for name, value in asked.items() if value is not None)]
        which = f"WHERE {' AND '.join(conditions)} ORDER BY r.id DESC LIMIT :most"
        values = {**asked, "place": row, "ids": ids or (), "most": most}
        return _summaries(database, RUNS.all(database, which, **values))

    @reading
    def days(self, database: Database, place: Place) -> Sequence[date]:
        return [date.fromisoformat(day) for day in database.column(_DAYS, place=find_place(database, place))]

    @reading
    def sent(
        self,
        database: Database,
        *,
        place: Place | None = None,
        day: date | None = None,
        runs: Sequence[str] | None = None,
        most: int,
    ) -> Sequence[SentSummary]:
        if runs is not None:
            found = _prompts(
                database, _SENT.format("SELECT run_id FROM runs WHERE run_id IN (:runs)"), runs=runs, most=most
            )
        elif place is not None and day is not None:
            until = (day + timedelta(days=1)).isoformat()
            asked = {"place": find_place(database, place), "since": day.isoformat(), "until": until}
            found = _prompts(database, _SENT.format(_OF_DAY), **asked, most=most)
        else:
            raise InvalidValue("say which runs, or a place and a day")
        return _sent(database, found[::-1])

    @reading
    def tools(self, database: Database, runs: Sequence[str]) -> Mapping[str, Sequence[ToolRun]]:
        return select_tools(database, runs)

    @reading
    def replies(self, database: Database, runs: Sequence[str]) -> Sequence[OutboxItem]:
        return REPLIES.all(database, "WHERE run_id IN (:runs) ORDER BY id", runs=list(runs))

    @reading
    def tasks(self, database: Database, runs: Sequence[str]) -> Sequence[Task]:
        return select_tasks(database, "WHERE run_id IN (:runs) ORDER BY id", runs=list(runs))

    @reading
    def due_tasks(self, database: Database, *, most: int) -> Sequence[Task]:
        return select_tasks(database, f"WHERE {IS_FREE} ORDER BY due_at, id LIMIT :most", most=most)


def _messages(database: Database, where: str, **values: Any) -> list[tuple[int, LoggedMessage]]:
    """Return the messages of a condition, each with its row; hidden ones are placeholders."""
    found = _LOGGED.beside(database, "m.id, m.hidden", f"WHERE {where}", **values)
    reactions = current_reactions(database, [row for _, (row, hidden) in found if not hidden])
    return [
        (row, replace(one, message=placeholder_of(one.message)))
        if hidden
        else (row, replace(one, reactions=tuple(reactions.get(row, ()))))
        for one, (row, hidden) in found
    ]


def _progress(database: Database, which: str, **values: Any) -> list[RunProgress]:
    """Return how far runs of a place have come, the oldest first."""
    clause = f"WHERE r.place = :place {which} ORDER BY r.id DESC LIMIT :most"
    found = _PROGRESS.all(database, clause, **values)[::-1]
    ids = [one.run.id for one in found]
    steps, tools = select_steps(database, ids), select_tools(database, ids)
    return [
        replace(one, steps=tuple(steps.get(one.run.id, ())), tools=tuple(tools.get(one.run.id, ()))) for one in found
    ]


def _summaries(database: Database, runs: Sequence[Run]) -> list[RunSummary]:
    """Return runs with their targets, costs and last prompts, each read with one statement for all."""
    ids = [run.id for run in runs]
    targets = _targets(database, ids)
    spent = {run_id: _SPENT.decode(sums) for run_id, *sums in database.all(_CALLS_OF_RUNS, runs=ids)}
    prompts = {one.run_id: one for one in _prompts(database, _LAST_PROMPTS, runs=ids)}
    found = [RunSummary(run=run, target=targets.get(run.id), spent=spent.get(run.id, Spent())) for run in runs]
    return [
        replace(one, layers=last.layers, size=last.size) if (last := prompts.get(one.run.id)) else one for one in found
    ]


def _prompts(database: Database, which: str, **values: Any) -> list[SentSummary]:
    """Return prompts with their layers."""
    found = _PROMPTS.beside(database, "p.id", which, **values)
    layers: dict[int, list[Row]] = {}
    for prompt, *layer in database.all(_SENT_LAYERS, prompts=[row for _, (row,) in found]):
        layers.setdefault(prompt, []).append(tuple(layer))
    sent: list[SentSummary] = []
    for one, (row,) in found:
        names, tokens, instructions = zip(*layers[row], strict=True) if row in layers else ((), (), ())
        sent.append(replace(one, layers=names, size=replace(one.size, layers=tokens, instructions=instructions)))
    return sent


def _sent(database: Database, prompts: Sequence[SentSummary]) -> list[SentSummary]:
    """Return prompts with their targets, calls and tools, each read with one statement for all."""
    ids = list({one.run_id for one in prompts})
    targets, tools = _targets(database, ids), select_tools(database, ids)
    calls = {
        (run, step): (status, _SPENT.decode(sums))
        for run, step, status, *sums in database.all(_CALLS_OF_STEPS, runs=ids)
    }
    found: list[SentSummary] = []
    for one in prompts:
        status, spent = calls.get((one.run_id, one.step), (0, Spent()))
        after = tuple(tool.call.name for tool in tools.get(one.run_id, ()) if tool.step == one.step - 1)
        target = targets.get(one.run_id)
        found.append(replace(one, target=target, after=after, spent=spent, status=_STATUS[status]))
    return found


def _targets(database: Database, runs: Sequence[str]) -> dict[str, LoggedMessage]:
    """Return the messages that runs answer, by the ids of the runs."""
    select = """SELECT r.run_id, m.id FROM runs r JOIN messages m ON m.place = r.place AND m.message_id = r.target
        WHERE r.run_id IN (:runs)"""
    rows = dict[str, int](database.all(select, runs=list(runs)))
    found = dict(_messages(database, "m.id IN (:rows)", rows=list(rows.values())))
    return {run: found[row] for run, row in rows.items()}

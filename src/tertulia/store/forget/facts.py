"""Forgets facts: hides the messages that state them, and withdraws unsent replies, tasks and runs.

The first transaction marks the facts: from then on no read returns them, and nothing from before teaches them again.
What states them is then read in pages, found by the rules of memory outside of any transaction, and hidden in short
ones. A message that came or changed meanwhile is read after the others. The last transaction removes the facts, and is
refused where something has changed since the last read. A process that is killed leaves the marks; the next one begins
again with the first page, and finds what is not hidden yet.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from tertulia.memory.values import (
    ForgottenFact,
    OpenRun,
    SaidMessage,
    UnsentReply,
    UnsentTask,
    UnsentWork,
    Withdrawal,
)
from tertulia.store import chats, cursors, decisions
from tertulia.store.database import Database, Row
from tertulia.store.encoding import STRINGS, TASK, Columns, dumps
from tertulia.store.fact_rows import SAID_IN_GROUP, add_fact_changes
from tertulia.store.forget import removal, retraction
from tertulia.store.model_caches import drop_caches
from tertulia.store.prompts import layer_contents
from tertulia.store.tasks import select_tasks
from tertulia.store.threads import Access
from tertulia.tasks.task import FORGET_CONFIRMED, PlanRules

REASON = "it would have told what was forgotten since"
PAGE = 1_000  # messages that are read at once
AT_ONCE = 25  # messages that are hidden in one transaction

# Facts that are forgotten from now on, and are in no read any more.
_MARK = "UPDATE facts SET forgotten_at = :at WHERE id IN (:facts) AND forgotten_at IS NULL RETURNING about"

# Prompts with these facts that are not stored yet are outdated.
_OUTDATE = "UPDATE places SET changes = changes + 1, removed = changes + 1 WHERE id IN (:places)"

# The facts that are being forgotten.
_FACT = Columns(ForgottenFact, "row=id about text name at=forgotten_at")
_FORGOTTEN = f"""SELECT place, scope, CASE WHEN scope <> 'chat' OR {SAID_IN_GROUP} THEN 1 ELSE 0 END, {_FACT}
    FROM facts f WHERE forgotten_at IS NOT NULL ORDER BY id"""

# The places where people wrote, and whether these were direct chats.
_WROTE_IN = """SELECT DISTINCT n.author, m.place, t.direct FROM messages m JOIN names n ON n.id = m.name
    JOIN titles t ON t.id = m.title WHERE n.author IN (:people)"""

# The messages that facts were learned from.
_SOURCES = """SELECT m.id FROM fact_sources s JOIN messages m ON m.place = s.place AND m.message_id = s.message_id
    WHERE s.fact IN (:facts) ORDER BY m.id"""

# The runs that proposed to forget facts.
_PROPOSED = "SELECT DISTINCT run_id FROM proposals WHERE fact IN (:facts)"

# The messages that runs have taken, and those with their ids in the places of the others.
_TAKEN = """SELECT m.place, m.message_id, m.id, n.author, m.text FROM messages m JOIN names n ON n.id = m.name
    WHERE m.place IN (:places) AND m.message_id IN (:taken)"""

# The answers of the agent to messages.
_ANSWERS = """SELECT a.id FROM decisions d JOIN outbox o ON o.run_id = d.run_id
    JOIN messages a ON a.place = o.place AND a.message_id = o.message_id WHERE d.message IN (:messages)"""

# The runs that wrote messages of the agent.
_WRITTEN_BY = """SELECT a.id, o.run_id FROM messages a
    JOIN outbox o ON o.place = a.place AND o.message_id = a.message_id
    WHERE a.id IN (:messages) AND o.run_id IS NOT NULL"""

# What was said in a place by some people and by the agent, from a number on or changed since.
_MESSAGE = Columns(SaidMessage, "row author by_agent text turns reply_author")
_SAID = """SELECT m.id, n.author, CASE WHEN m.role = 'model' THEN 1 ELSE 0 END, m.text, coalesce(t.turns, ''),
    m.reply_author FROM messages m JOIN names n ON n.id = m.name LEFT JOIN turns t ON t.message = m.id
    WHERE m.place = :place AND m.hidden = 0 AND (n.author IN (:people) OR m.role = 'model') AND (
        (m.number >= :number AND m.number < :stop)
        OR m.id IN (SELECT c.message FROM message_changes c WHERE c.place = :place AND c.change > :changes)
    ) ORDER BY m.number"""

# The texts of messages.
_TEXTS = "SELECT id, text FROM messages WHERE id IN (:messages)"

# The open runs that knew one of some messages; the `+` keeps SQLite from reading all messages of the place.
_WINDOWS = """SELECT r.run_id FROM runs r
    WHERE r.status = 'open' AND r.place IN (SELECT place FROM messages WHERE id IN (:messages)) AND r.horizon > (
        SELECT min(m.number) FROM messages m WHERE m.id IN (:messages) AND +m.place = r.place)"""

# The runs of replies and tasks: what they were given, and whom they answer.
_RUNS = """SELECT r.run_id, n.author, r.place, r.message_ids FROM runs r
    LEFT JOIN messages m ON m.place = r.place AND m.message_id = r.target LEFT JOIN names n ON n.id = m.name
    WHERE r.run_id IN (:runs)"""

# The replies of places that may still be sent.
_UNSENT = """SELECT id, place, run_id, reply_id, text, turns FROM outbox
    WHERE place IN (:places) AND status IN ('waiting', 'sending', 'doubtful') ORDER BY id"""

# The layers of the last prompts of runs.
_LAST_LAYERS = """SELECT p.run_id, l.layer FROM prompt_layers l JOIN prompts p ON p.id = l.prompt
    WHERE p.id IN (SELECT max(id) FROM prompts WHERE run_id IN (:runs) GROUP BY run_id)
    ORDER BY l.prompt, l.position"""


class Seen(NamedTuple):
    """How far a place was read: its messages before this number, and their changes up to this one."""

    number: int = 0
    changes: int | None = None  # None: nothing was read yet, so changes do not matter


class Forgetting:
    """Forgets the facts that are marked."""

    def __init__(self, access: Access) -> None:
        self._writer, self._reader = access.writer, access.reader
        self._rules, self._plans = access.facts, access.plans
        self._lock = asyncio.Lock()  # who comes second finds nothing left to do

    async def finish(self) -> bool:
        """Hide and withdraw what states the marked facts, and remove them; return whether there were any."""
        any_facts = False
        async with self._lock:
            while facts := await self._reader.run(_read_forgotten):
                any_facts = True
                await self._withdraw(facts)
                await self._hide_related(facts, [])
                seen = dict.fromkeys({place for fact in facts for place in fact.places}, Seen())
                while await self._read_on(facts, seen) or not await self._withdraw(facts, seen):
                    pass
        return any_facts

    async def _read_on(self, facts: Sequence[ForgottenFact], seen: dict[int, Seen]) -> bool:
        """Hide what states a fact in the next page of each place; return whether there was any."""
        before = dict(seen)
        for place in seen:
            there = [fact for fact in facts if place in fact.places]
            people = {fact.about for fact in there}
            read = partial(_read_page, place=place, people=people, seen=seen[place])
            seen[place], messages = await self._reader.run(read)
            if messages:
                await self._hide_page(there, messages)
        return seen != before

    async def _hide_page(self, facts: Sequence[ForgottenFact], messages: Sequence[SaidMessage]) -> None:
        found = await asyncio.to_thread(self._rules.find_stating, facts, messages)
        stating = set(found.stating)
        if found.doubtful:
            questions = await self._reader.run(partial(_read_questions, answers=list(found.doubtful)))
            asked = [replace(one, question=questions[one.row]) for one in messages if one.row in questions]
            stating |= (await asyncio.to_thread(self._rules.find_stating, facts, asked)).stating
        if found.asking:
            await self._hide_related(facts, sorted(found.asking))
        await self._hide(facts, sorted(stating), [])

    async def _hide_related(self, facts: Sequence[ForgottenFact], asking: Sequence[int]) -> None:
        """Hide messages that ask to forget, and the answers to them; without *asking*, what the facts refer to."""
        sources, related = await self._reader.run(partial(_read_related, facts=facts, asking=asking))
        await self._hide(facts, related, sources)

    async def _hide(self, facts: Sequence[ForgottenFact], rows: Sequence[int], sources: Sequence[int]) -> None:
        def sentences(some: Sequence[Row]) -> dict[int, Sequence[str]]:
            return {row: self._rules.hidden_sentences(facts, text) for row, text in some}

        at = max(fact.at for fact in facts)
        texts = await self._reader.run(lambda database: database.all(_TEXTS, messages=rows))
        for start in range(0, len(texts), AT_ONCE):
            hidden = await asyncio.to_thread(sentences, texts[start : start + AT_ONCE])
            await self._writer.run(partial(_hide, sentences=hidden, at=at))
        if sources:
            await self._writer.run(lambda database: decisions.end_waiting(database, sources, "forgotten", at))

    async def _withdraw(self, facts: Sequence[ForgottenFact], seen: Mapping[int, Seen] | None = None) -> bool:
        """Withdraw what states the facts; return False if something has changed since it was read.

        With *seen*, the facts are removed then. Without it nothing was hidden yet, and prompts that were built before
        are outdated: what begins with one until then is an open run, which is found when it is withdrawn again.
        """
        unsent, exchanges = await self._reader.run(partial(_read_unsaid, facts=facts))
        found = await asyncio.to_thread(self._rules.find_withdrawn, facts, unsent)
        stated = await asyncio.to_thread(
            lambda: {text: self._rules.is_stated_by_name(facts, text) for text in exchanges}
        )
        at = max(fact.at for fact in facts)

        def withdraw(database: Database) -> bool:
            if seen is None:
                database.run(_OUTDATE, places=list({place for fact in facts for place in fact.places}))
            if _read_unsaid(database, facts) != (unsent, exchanges):
                return False
            if seen is not None and any(_read_state(database, place) != seen[place] for place in seen):
                return False
            _withdraw(database, found, self._plans)
            if any(stated.values()):
                chats.remove_exchanges_stating(database, stated.__getitem__, at)
            if seen is not None:
                drop_caches(database)
                retraction.remove(database, [fact.row for fact in facts], self._rules)
            return True

        return await self._writer.run(withdraw)


def mark(database: Database, facts: Sequence[int], at: datetime) -> None:
    """Mark facts as forgotten: from now on they are in no read, and nothing that was said before teaches them."""
    people = {about for (about,) in database.all(_MARK, facts=facts, at=at.isoformat())}
    add_fact_changes(database, facts, at=at)
    database.run(cursors.EXCLUDE_FACTS, facts=facts)
    retraction.remove_summaries(database, people)


def _read_forgotten(database: Database) -> list[ForgottenFact]:
    """Return the facts that are marked, each with the places where it may have been told."""
    rows = database.all(_FORGOTTEN)
    people = {row[4] for row in rows}
    wrote_in = database.all(_WROTE_IN, people=people)
    names = database.all("SELECT author, name FROM names WHERE author IN (:people)", people=people)
    found: list[ForgottenFact] = []
    for place, scope, elsewhere, *row in rows:
        _, about, _, name, _ = row
        told = {
            there for who, there, direct in wrote_in if who == about and elsewhere and (direct or scope == "everywhere")
        }
        called = tuple({name, *(one for who, one in names if who == about)})
        found.append(_FACT.decode(row, names=called, places=frozenset({place, *told})))
    return found


def _read_related(
    database: Database, facts: Sequence[ForgottenFact], asking: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the messages that *facts* were learned from, and these with requests to forget them and all answers.

    Requests are what the person said in the runs that proposed it, and in the one that confirmed it. With *asking*,
    these are the requests, and sources are none.
    """
    sources: list[int] = []
    found = set(asking)
    if not asking:
        rows = [fact.row for fact in facts]
        sources = [row for (row,) in database.all(_SOURCES, facts=rows)]
        runs = {run for (run,) in database.all(_PROPOSED, facts=rows)} | _confirming(database, rows)
        people = {fact.about for fact in facts}
        taken = [one for run in _read_runs(database, runs).values() for one in run.taken]
        found = {*sources, *(one.row for one in taken if one.author in people)}
    found |= {row for (row,) in database.all(_ANSWERS, messages=found)}
    return sources, sorted(found)


def _confirming(database: Database, facts: Sequence[int]) -> set[str]:
    """Return the runs in which somebody confirmed that facts are forgotten."""
    ids = {one for (one,) in database.all("SELECT fact_id FROM facts WHERE id IN (:facts)", facts=facts)}
    confirmed = select_tasks(database, "WHERE kind = :kind", kind=FORGET_CONFIRMED)
    return {task.made_by for task in confirmed if task.made_by and not ids.isdisjoint(task.args.get("facts", ()))}


def _read_page(database: Database, place: int, people: Collection[int], seen: Seen) -> tuple[Seen, list[SaidMessage]]:
    """Return the next messages of a place, with those that have changed, and how far it is read then."""
    now = _read_state(database, place)
    stop = min(seen.number + PAGE, now.number)
    changes = now.changes if seen.changes is None else seen.changes
    if stop <= seen.number and changes == now.changes:
        return now, []
    rows = database.all(_SAID, place=place, people=list(people), number=seen.number, stop=stop, changes=changes)
    return Seen(stop, now.changes), [_MESSAGE.decode(row) for row in rows]


def _read_state(database: Database, place: int) -> Seen:
    row = database.one("SELECT messages, changes FROM places WHERE id = :place", place=place)
    return Seen(*row) if row else Seen(0, 0)


def _hide(database: Database, sentences: Mapping[int, Sequence[str]], at: datetime) -> None:
    """Hide messages, and withdraw the runs that knew one of them."""
    windows = database.all(_WINDOWS, messages=list(sentences))
    _withdraw_runs(database, [run for (run,) in windows])
    retraction.hide_stating(database, sentences, at)


class _Taken(NamedTuple):
    """A message that a run has taken."""

    row: int
    author: int
    text: str


class _Run(NamedTuple):
    """A run: the author whom it answers, and the messages that it has taken."""

    asked_by: int | None = None
    taken: tuple[_Taken, ...] = ()

    @property
    def question(self) -> str:
        return " ".join(one.text for one in self.taken)


_NO_RUN = _Run()


def _read_runs(database: Database, runs: Iterable[str | None]) -> dict[str | None, _Run]:
    rows = [(*row, STRINGS.loads(taken)) for *row, taken in database.all(_RUNS, runs=[run for run in runs if run])]
    places, taken = {place for _, _, place, _ in rows}, {one for *_, ids in rows for one in ids}
    found = {(place, one): _Taken(*row) for place, one, *row in database.all(_TAKEN, places=places, taken=taken)}
    return {
        run: _Run(author, tuple(found[place, one] for one in ids if (place, one) in found))
        for run, author, place, ids in rows
    }


def _read_questions(database: Database, answers: Sequence[int]) -> dict[int, str]:
    """Return the questions that messages of the agent answer, by the rows of these."""
    written_by = dict[int, str](database.all(_WRITTEN_BY, messages=answers))
    runs = _read_runs(database, written_by.values())
    return {row: runs[run].question for row, run in written_by.items() if run in runs}


def _read_unsaid(database: Database, facts: Sequence[ForgottenFact]) -> tuple[UnsentWork, list[str]]:
    """Return what the agent has not said yet where the facts may be told, and the exchanges of chats with a name."""
    places = list({place for fact in facts for place in fact.places})
    unsent = UnsentWork(
        replies=tuple(_read_replies(database, places)),
        tasks=tuple(_read_tasks(database, places)),
        runs=tuple(_read_open_runs(database, places)),
    )
    return unsent, chats.read_texts(database)


def _read_replies(database: Database, places: Sequence[int]) -> Iterator[UnsentReply]:
    """Yield unsent replies. The parts of a split one count as a whole: all its parts together may state a fact."""
    rows = database.all(_UNSENT, places=places)
    runs = _read_runs(database, {run for _, _, run, *_ in rows})
    split = [reply_id for *_, reply_id, _, _ in rows if reply_id]
    parts: dict[str, list[str]] = {}
    select = "SELECT reply_id, text FROM outbox WHERE reply_id IN (:split) ORDER BY reply_id, part"
    for reply_id, text in database.all(select, split=split):
        parts.setdefault(reply_id, []).append(text)
    for row, place, name, reply_id, text, turns in rows:
        run = runs.get(name, _NO_RUN)
        yield UnsentReply(
            row=row,
            place=place,
            text=" ".join(parts[reply_id]) if reply_id else text,
            turns=turns,
            asked_by=run.asked_by,
            question=run.question,
        )


def _read_tasks(database: Database, places: Sequence[int]) -> Iterator[UnsentTask]:
    which = "SELECT place, body FROM tasks WHERE place IN (:places) AND status IN ('pending', 'running') ORDER BY id"
    found = [(place, TASK.loads(body)) for place, body in database.all(which, places=places)]
    runs = _read_runs(database, {task.run or task.made_by for _, task in found})
    for place, task in found:
        asked_in = runs.get(task.run or task.made_by, _NO_RUN)
        yield UnsentTask(id=task.id, place=place, args=dumps(task.args), asked_by=asked_in.asked_by)


def _read_open_runs(database: Database, places: Sequence[int]) -> Iterator[OpenRun]:
    """Yield open runs with their last prompts, their records and their tool runs."""
    select = "SELECT run_id, place FROM runs WHERE status = 'open' AND place IN (:places) ORDER BY id"
    runs = dict[str, int](database.all(select, places=places))
    texts: dict[str, list[str]] = {run: [] for run in runs}
    shown = database.all(_LAST_LAYERS, runs=[*texts])
    contents = layer_contents(database, {layer for _, layer in shown})
    for run, layer in shown:
        texts[run].append(contents[layer].decode())
    for table, columns in (("records", "turn"), ("tool_runs", "call, coalesce(result, '')")):
        select = f"SELECT run_id, {columns} FROM {table} WHERE run_id IN (:runs) ORDER BY id"
        for run, *said in database.all(select, runs=[*texts]):
            texts[run] += said
    for run, place in runs.items():
        yield OpenRun(id=run, place=place, texts=tuple(texts[run]))


def _withdraw(database: Database, found: Withdrawal, plans: PlanRules) -> None:
    """Empty unsent replies, cancel tasks and withdraw runs."""
    removal.empty_replies(database, found.replies, REASON)
    database.run("UPDATE outbox SET turns = '[]' WHERE id IN (:turns)", turns=found.turns)
    removal.cancel_tasks(database, "task_id IN (:tasks)", plans, REASON, tasks=found.tasks)
    _withdraw_runs(database, found.runs)


def _withdraw_runs(database: Database, runs: Sequence[str]) -> None:
    """Remove runs that were shown a fact, so that they begin again; those with a tool run only lose their prompts.

    A withdrawn run is deleted and its messages wait again. The next write of its worker is refused as outdated. A
    tool must not run twice, so a run that has started one stays without its prompts, and can only end as failed.
    """
    select = "SELECT DISTINCT run_id FROM prompts WHERE run_id IN (:runs)"  # others have lost theirs before
    runs = [run for (run,) in database.all(select, runs=runs)]
    begun = {run for (run,) in database.all("SELECT run_id FROM tool_runs WHERE run_id IN (:runs)", runs=runs)}
    removal.remove_runs(database, "run_id IN (:runs)", runs=runs)
    for run in runs:
        if run not in begun:
            decisions.release(database, run)
            database.run("DELETE FROM runs WHERE run_id = :run", run=run)

"""What has become of every message, tool and task of an engine that was killed, and what should not have."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, json
from msgspec.structs import asdict

from cli.command import tertulia
from engine.scripted_service import ScriptedService
from tertulia.engine.behavior import FAILED
from tertulia.engine.place_worker import GAVE_UP
from tertulia.store import Store
from tertulia.tasks.task import RETRY

Rows = list[dict[str, Any]]
COMMAND = asyncio.Lock()  # it has the standard streams to itself


class Result(Struct, frozen=True, kw_only=True):
    """What has become of everything; the faults, in words, are what should not have."""

    kind: str
    kills: int = 0
    lives: int = 0
    messages: int = 0  # that are for us
    asides: int = 0  # others
    replies: int = 0  # that people see
    doubled: int = 0  # messages that were answered twice
    lost: int = 0  # messages of whose reply nobody knows
    doubtful: int = 0  # replies, and what tasks say
    tool_doubles: int = 0  # of those that must not run twice
    unknown: int = 0  # outcomes of tools and tasks that were cut off, and not run again
    resumed: int = 0  # runs that were taken up again
    given_up: int = 0  # those that were cut off too often, and ended with an honest line
    fired: int = 0  # tasks
    seconds: float = 0.0
    faults: tuple[str, ...] = ()

    def counts(self) -> dict[str, str | int | float]:
        """All but the faults, by the name of each."""
        return {name: value for name, value in asdict(self).items() if name != "faults"}

    def plus(self, other: "Result") -> "Result":
        mine, others = asdict(self), asdict(other)
        return Result(kind=self.kind, **{name: mine[name] + others[name] for name in mine if name != "kind"})


class Kept(Struct, frozen=True, kw_only=True):
    """A store when all is over, and what happened outside of it."""

    service: ScriptedService
    tables: dict[str, Rows]
    deeds: Counter[str]

    @property
    def by_key(self) -> dict[str, dict[str, Any]]:
        return {row["outgoing_id"]: row for row in self.tables["outbox"]}

    @property
    def shown(self) -> Counter[str]:
        """How often people see each reply, by its key."""
        return Counter(one.key for one in self.service.sent)

    def replies(self) -> dict[str, Rows]:
        """The replies of the run that took it, by the name of each message that was to be answered."""
        of_run: dict[str, Rows] = defaultdict(list)
        for row in self.tables["outbox"]:
            of_run[row["run_id"] or ""].append(row)
        said = [row for row in self.tables["messages"] if row["role"] == "user"]
        taken = [(row["message_id"], one) for row in said for one in self.decisions[row["id"]]]
        return {name: of_run[one["run_id"] or "nobody"] for name, one in taken if one["reason"] != "not addressed"}

    @property
    def decisions(self) -> dict[int, Rows]:
        """The decisions about each message, by its row."""
        found: dict[int, Rows] = defaultdict(list)
        for row in self.tables["decisions"]:
            found[row["message"]].append(row)
        return found

    def known(self, fact: str) -> int:
        """How often a fact is remembered."""
        return sum(row.get("text") == fact for row in self.tables["facts"])

    def times(self, rows: Rows) -> int:
        return sum(self.shown[row["outgoing_id"]] for row in rows)


async def aftermath(path: Path, where: str, service: ScriptedService) -> Result:
    """All that can be counted, and every fault; the engine's file is at rest."""
    async with Store.open(where, beside=True) as store:
        tables: dict[str, Rows] = defaultdict(list)
        async for row in store.export():
            tables[row["table"]].append(row)
        prompts = [await store.prompts.sent(row["run_id"], row["step"]) for row in tables["prompts"]]
    did = path.with_suffix(".did")
    deeds = Counter(did.read_text().splitlines() if did.exists() else [])
    kept = Kept(service=service, tables=tables, deeds=deeds)
    faults = [
        *(f"{prompts.count(None)} prompts cannot be rebuilt" for _ in prompts[:1] if None in prompts),
        *_misplaced(kept),
        *_misspoken(kept),
        *_misdone(kept),
        *_mistimed(kept),
        *await _misjudged(where, kept),
    ]
    return _counted(kept, faults)


def _counted(kept: Kept, faults: list[str]) -> Result:
    replies = kept.replies()
    return Result(
        kind=kept.service.kind,
        messages=len(replies),
        asides=len(kept.service.messages) - len(replies),
        replies=sum(map(kept.times, replies.values())),
        doubled=sum(kept.times(rows) > 1 for rows in replies.values()),
        lost=sum(not kept.times(rows) and not _in_doubt(rows) for rows in replies.values()),
        doubtful=sum(row["status"] == "doubtful" for row in kept.tables["outbox"]),
        tool_doubles=sum(count > 1 for deed, count in kept.deeds.items() if not deed.startswith("look")),
        unknown=sum(map(_is_unknown, kept.tables["tool_runs"])) + sum(map(_is_cut, kept.tables["tasks"])),
        resumed=sum(row["resumes"] > 0 for row in kept.tables["runs"]),
        given_up=sum(map(_is_given_up, kept.tables["runs"])),
        fired=sum(row["status"] == "done" for row in kept.tables["tasks"]),
        faults=tuple(faults),
    )


def _misplaced(kept: Kept) -> Iterator[str]:
    """Messages and runs that are not where they belong."""
    received = [row["message_id"] for row in kept.tables["messages"] if row["role"] == "user"]
    if sorted(received) != sorted(message.id for message in kept.service.messages):
        yield f"received {sorted(received)}, written {[message.id for message in kept.service.messages]}"
    own = [(row["message_id"], bool(row["doubtful"])) for row in kept.tables["messages"] if row["role"] == "model"]
    logged = [row for row in kept.tables["outbox"] if row["kind"] in ("answer", "task")]  # no notice is in the log
    sent = [(row["message_id"], row["status"] == "doubtful") for row in logged if row["message_id"] is not None]
    if sorted(own) != sorted(sent):
        yield f"said {sorted(own)}, sent or in doubt {sorted(sent)}"
    yield from _misdecided(kept)
    taken = Counter(name for row in kept.tables["runs"] for name in row["message_ids"])
    yield from (f"{name} was taken {count} times" for name, count in taken.items() if count > 1)
    yield from (f"run {row['run_id']} is open" for row in kept.tables["runs"] if row["status"] == "open")
    failed = [row for row in kept.tables["runs"] if row["status"] == "failed" and not _is_given_up(row)]
    yield from (f"run {row['run_id']}: {row['why']}" for row in failed)


def _misdecided(kept: Kept) -> Iterator[str]:
    """Messages without the one decision that fits what has become of them."""
    asides = {message.id for message in kept.service.messages if " aside]" in message.text}
    late = {message.id for message in kept.service.messages if " late]" in message.text}
    runs = {row["run_id"]: row["message_ids"] for row in kept.tables["runs"]}
    for row in kept.tables["messages"]:
        name, found = row["message_id"], kept.decisions[row["id"]]
        if row["own"] or len(found) != 1:
            yield from [f"{name} has {len(found)} decisions"] * (len(found) != 1 - row["own"])
            continue
        why = tuple(found[0][column] for column in ("reason", "address"))
        expected = ("answered", "name" if name in late else "direct")
        wanted = ("not addressed", None) if name in asides else expected
        if why != wanted or found[0]["edited"] > (name in late):
            yield f"{name}: {why}"
        if name not in asides and name not in runs.get(found[0]["run_id"], ()):
            yield f"{name} was answered by {found[0]['run_id']}, which did not take it"


def _misspoken(kept: Kept) -> Iterator[str]:
    """Replies that people do not see once."""
    for name, rows in kept.replies().items():
        times = kept.times(rows)
        if times > 1 or len(rows) != 1:
            yield f"{name} was answered {times} times, with {len(rows)} replies"
        if times == 0 and not _in_doubt(rows):
            yield f"{name} was not answered, and nobody knows"
    for row in kept.tables["outbox"]:
        if row["status"] not in ("sent", "doubtful") or (
            row["status"] == "doubtful" and kept.service.kind == "with keys"
        ):
            yield f"reply {row['outgoing_id']} is {row['status']}"
        if row["status"] == "sent" and kept.shown[row["outgoing_id"]] != 1:
            yield f"reply {row['outgoing_id']} is seen {kept.shown[row['outgoing_id']]} times"
    texts = Counter(one.text for one in kept.service.sent if one.text != FAILED)
    yield from (f"people read {text!r} {count} times" for text, count in texts.items() if count > 1)
    yield from (f"nobody wrote {key}" for key in kept.shown if key not in kept.by_key)


def _misdone(kept: Kept) -> Iterator[str]:
    """Tools that ran too often, or not at all though they say so."""
    given_up = {row["run_id"] for row in kept.tables["runs"] if _is_given_up(row)}
    for row in kept.tables["tool_runs"]:
        name, args = row["call"]["name"], row["call"]["args"]
        times = kept.deeds[f"{name} {args.get('message')}"]
        if row["result"] is None and row["run_id"] not in given_up:
            yield f"{name} {args} never ended"
        if name == "book" and times != 1 and not (times == 0 and (_is_unknown(row) or row["run_id"] in given_up)):
            yield f"{name} {args} was done {times} times, and it says {row['result']}"
        if name == "look" and not times and row["run_id"] not in given_up:
            yield f"{name} {args} was not done"


def _mistimed(kept: Kept) -> Iterator[str]:
    """Tasks that did not happen once, or happened though they were called off."""
    for row in kept.tables["tasks"]:
        done, task = row["status"] == "done", row["body"]
        if row["status"] not in ("done", "cancelled") and not _is_cut(row):
            yield f"task {task} is {row['status']}"
        if row["kind"] == "ring" and kept.deeds[f"ring {task['args']['body']}"] != done and not _is_cut(row):
            yield f"task {task} did not ring once"
        if row["kind"] == "remember" and kept.known(task["args"]["facts"][0]) != done and not _is_cut(row):
            yield f"task {task} is not remembered once"
        if row["kind"] == "send" and [one["task_id"] for one in kept.tables["outbox"]].count(row["task_id"]) != done:
            yield f"task {task} was not said once"
    yield from (f"{deed}: {count} times" for deed, count in kept.deeds.items() if count > 1 and deed[:4] != "look")


async def _misjudged(where: str, kept: Kept) -> list[str]:
    """Where the commands say something else."""
    code, said = await command("db", "check", "--db", where)
    faults = [f"tertulia db check: {said}"] if code else []
    code, said = await command("outbox", "--json", "--db", where)
    if code:
        return [*faults, f"tertulia outbox: {said}"]
    listed = {row["id"] for row in json.decode(said)}
    doubtful = {key for key, row in kept.by_key.items() if row["status"] == "doubtful"}
    return faults if listed == doubtful else [*faults, f"tertulia outbox lists {listed}, not {doubtful}"]


async def command(*words: str) -> tuple[int, str]:
    """What the command `tertulia` ends with, and what it says."""
    async with COMMAND:
        ran = await asyncio.to_thread(tertulia, *words)
    return ran.returncode, ran.stdout or ran.stderr


def _in_doubt(rows: Rows) -> bool:
    return any(row["status"] == "doubtful" for row in rows)


def _is_unknown(row: dict[str, Any]) -> bool:
    return "unknown outcome" in str(row["result"])


def _is_cut(row: dict[str, Any]) -> bool:
    """Whether a task was cut off that must not run twice, or as often as one is tried at all."""
    task = row["body"]
    return bool(task.get("doubtful")) and (row["kind"] == "ring" or task["attempts"] >= RETRY.limit)


def _is_given_up(row: dict[str, Any]) -> bool:
    return bool(row["why"] == GAVE_UP.format(times=row["resumes"]))

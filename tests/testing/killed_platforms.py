"""Bots on the two platforms that are killed again and again: `killed_platforms.py 500` prints what became of all."""

import asyncio
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

import postgres
from lives import Lives, lives
from tertulia.engine.store_protocols import OutboxItem
from tertulia.messages import Author, Place, Reply
from tertulia.store import Store
from tertulia.store_url import is_url
from tertulia.testing.example_service import ExampleService
from testing.counting_service import CountingService
from testing.platform_child import Life, answer_to, platform_of

CHILD = Path(__file__).with_name("platform_child.py")
PLATFORMS = ("corner", "keyless")
MOST = {"written": 40, "sent": 4, "continued": 2}  # requests in one life, at most; most are edits of drafts
IDLE = 0.5  # seconds without a write after which a life ends all the same
OVERDUE = 60.0  # seconds after which the last life has to be over
ROUNDS = 50  # of the event loop, in which the service reads what a killed process has sent

Fate = Literal["answered", "doubtful", "waiting", "lost", "doubled"]


class Result(Struct, frozen=True, kw_only=True):
    """What became of the messages of one file: each has one fate."""

    platform: str
    kills: int = 0
    with_draft: int = 0  # kills while people saw the draft of an answer
    between_parts: int = 0  # kills while people saw some parts of an answer, and others were still to be sent
    messages: int = 0
    answered: int = 0  # every part is seen once, and known to be sent
    doubtful: int = 0  # something of the answer is listed as doubtful; the rest is seen once
    waiting: int = 0  # not answered yet
    lost: int = 0  # a part is not seen though it counts as sent, or nobody knows of it
    doubled: int = 0  # something is seen that no row of the outbox explains
    faults: tuple[str, ...] = ()


class Stored(Struct, frozen=True, kw_only=True):
    """What is stored when a process has ended."""

    outbox: Sequence[OutboxItem]
    open_runs: dict[str, str]  # the ids of their places, by the ids of the runs
    waiting: set[str]  # the ids of places in which messages wait


async def killed(folder: Path, platform: str, *, kills: int, seed: int) -> Result:
    """Kill a bot so often, at random moments, while people write; then let it finish, and look at everything."""
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    moments: Counter[str] = Counter()
    messages = 0
    async with CountingService(keys=platform == "corner") as service, lives(CHILD, folder / "log") as forked:
        life = Life(path=postgres.store_in(folder, "bot.db"), port=service.port, platform=platform)
        for _ in range(kills):
            for _ in range(chance.choice([0, 0, 1, 2]) if messages else 1):  # else no answer ever comes to its end
                person = Author(id=f"p{messages}", name="Ann")
                service.post(person.id, person, f"number {messages}!")
                messages += 1
            await kill(forked, life, service, chance)
            kept = await stored(life.path)
            moments["draft"] += is_draft_visible(kept, service)
            moments["parts"] += is_between_parts(kept, service)
        postgres.let_time_pass(life.path)
        child = await forked.begin(replace(life, messages=messages))
        code = await forked.end(child, timeout=OVERDUE)
        assert code == 0, forked.log()
        found = await aftermath(life, service, messages)
        return replace(found, kills=kills, with_draft=moments["draft"], between_parts=moments["parts"])


async def kill(forked: Lives, life: Life, service: CountingService, chance: random.Random) -> None:
    """Live one life, and end it after a random number of requests."""
    postgres.let_time_pass(life.path)
    child = await forked.begin(life)
    what = chance.choice([*MOST])
    await service.until(service.counts[what] + chance.randint(1, MOST[what]), what, patience=IDLE)
    await asyncio.sleep(chance.choice([0, chance.uniform(0, 0.01)]))
    assert await forked.kill(child) == -signal.SIGKILL, forked.log()
    for _ in range(ROUNDS):
        await asyncio.sleep(0)


async def killed_at(
    folder: Path, points: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[list[str], list[tuple[str, str]]]]:
    """Kill a bot at each of these points of a platform, one process after another; what is seen, and what doubtful."""
    async with lives(CHILD, folder / "log") as forked:
        return {
            (platform, point): await _killed_at(Path(tempfile.mkdtemp(dir=folder)), platform, point, forked)
            for platform, point in points
        }


async def _killed_at(folder: Path, platform: str, point: str, forked: Lives) -> tuple[list[str], list[tuple[str, str]]]:
    """Kill a bot within its answer in three parts, and let another finish."""
    async with CountingService(keys=platform == "corner") as service:
        life = Life(path=postgres.store_in(folder, "bot.db"), port=service.port, platform=platform, messages=1)
        service.post("p2", Author(id="p2", name="Ann"), "number 2!")
        for kill_at, wanted in ((point, -signal.SIGKILL), ("", 0)):
            postgres.let_time_pass(life.path)
            child = await forked.begin(replace(life, kill_at=kill_at))
            code = await forked.end(child, timeout=OVERDUE)
            assert code == wanted, (platform, point, code, forked.log())
        seen = [message["text"] for message in service.shown("p2")]
    kept = await stored(life.path)
    assert {row.status for row in kept.outbox} <= {"sent", "doubtful"}
    return seen, [(row.kind, row.reply.text) for row in kept.outbox if row.status == "doubtful"]


async def stored(where: str) -> Stored:
    """What is stored, read from a copy of a file: the next life finds it as the last one left it."""
    if is_url(where):
        async with Store.open(where, beside=True) as store:
            return await _stored(store)
    folder = Path(where).parent
    with tempfile.TemporaryDirectory(dir=folder) as copies:
        for name in ("bot.db", "bot.db-wal"):
            if (folder / name).exists():
                shutil.copy(folder / name, copies)
        async with Store.open(Path(copies, "bot.db"), durable=False) as store:
            return await _stored(store)


async def _stored(store: Store) -> Stored:
    return Stored(
        outbox=await store.outbox.listed(),
        open_runs={run.id: run.place.id for run in await store.runs.open()},
        waiting={place.id for place in await store.inbox.places()},
    )


def is_draft_visible(kept: Stored, service: ExampleService) -> bool:
    """Whether people see the draft of an answer that is being written."""
    drafts = [row for row in kept.outbox if row.kind == "draft" and row.run in kept.open_runs]
    return any(service.shown(row.reply.place.id) for row in drafts)


def is_between_parts(kept: Stored, service: ExampleService) -> bool:
    """Whether people see some part of a split answer, and another one is still to be sent."""
    replies: dict[str, list[tuple[bool, bool]]] = {}
    for row in kept.outbox:
        if row.reply_id:
            is_seen = any(message["text"] == row.reply.text for message in service.shown(row.reply.place.id))
            is_to_come = row.status in ("waiting", "sending") and not is_seen
            replies.setdefault(row.reply_id, []).append((is_seen, is_to_come))
    return any(all(map(any, zip(*parts, strict=True))) for parts in replies.values())


async def aftermath(life: Life, service: ExampleService, messages: int) -> Result:
    """The fate of every message, by what people see and what is stored."""
    kept = await stored(life.path)
    unfinished = kept.waiting.union(kept.open_runs.values())
    fates: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(messages):
        place = f"p{number}"
        rows = [row for row in kept.outbox if row.reply.place.id == place]
        shown = [(message["id"], message["text"]) for message in service.shown(place)]
        fate = fate_of(answer_parts(life.platform, number), rows, shown, is_unfinished=place in unfinished)
        fates[fate] += 1
        if fate not in ("answered", "doubtful"):
            told = [(row.kind, row.status, row.message_id, row.reply.text) for row in rows]
            faults.append(f"message {number} is {fate}: people see {shown}, the outbox has {told}")
    return Result(platform=life.platform, messages=messages, faults=tuple(faults), **fates)


def fate_of(
    parts: Sequence[str], rows: Sequence[OutboxItem], shown: Sequence[tuple[str, str]], *, is_unfinished: bool = False
) -> Fate:
    """What became of a message, whose answer has these *parts*.

    People see the rows of its answer in order: each that counts as sent once and under the id of its receipt, each
    doubtful one once or not at all. A draft that counts as sent is the first part by now.
    """
    drafts = [row for row in rows if row.kind == "draft" and row.status == "doubtful"]
    answer = sorted((row for row in rows if row.kind == "answer"), key=lambda row: row.part)
    if is_unfinished or any(row.status in ("waiting", "sending") for row in answer):
        return "waiting"
    receipts = {row.message_id for row in rows if row.status == "sent"}
    unexplained = deque(shown)
    is_lost = [row.reply.text for row in answer] != [*parts]
    for row in (*drafts, *answer):
        message_id, text = unexplained[0] if unexplained else (None, None)
        is_it = message_id == row.message_id if row.status == "sent" else message_id not in receipts
        if is_it and text == row.reply.text:
            unexplained.popleft()
        elif row.status != "doubtful":
            is_lost = True
    if is_lost or unexplained:
        return "lost" if is_lost else "doubled"
    return "doubtful" if any(row.status == "doubtful" for row in rows) else "answered"


@cache
def answer_parts(platform: str, number: int) -> Sequence[str]:
    """The messages that an answer is split into."""
    place = Place(platform=platform, id=f"p{number}", kind="direct")
    made = platform_of(Life(path="", port=0, platform=platform))
    return [part.text for part in made.split(Reply(place=place, text=answer_to(number)))]


async def main(kills: int) -> int:
    """Kill so often, half on each platform, and print what came of it."""

    async def one(platform: str) -> Result:
        with tempfile.TemporaryDirectory(prefix="tertulia-kills-") as folder:
            return await killed(Path(folder), platform, kills=kills // len(PLATFORMS), seed=1)

    results = await asyncio.gather(*map(one, PLATFORMS))
    rows = [{**asdict(result), "faults": len(result.faults)} for result in results]
    for cells in (
        [name.replace("_", " ") for name in rows[0]],
        ["---"] * len(rows[0]),
        *(row.values() for row in rows),
    ):
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(*(fault for result in results for fault in result.faults), sep="\n")
    return int(any(result.faults for result in results))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]))))

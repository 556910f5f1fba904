"""Engines that are killed again and again; `make torture` prints a table of what has become of every message."""

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import reduce
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import postgres
from engine.aftermath import Result, aftermath
from engine.engine_child import Life
from engine.scripted_service import Answering, Kind, ScriptedService
from lives import Lives, lives
from tertulia.sim.behaviours import Behaviour
from tertulia.sim.gemini import GeminiSim

CHILD = Path(__file__).with_name("engine_child.py")
EACH = 50  # kills of one file, after which it is looked into
MESSAGES = 6  # that are written in one life
EVENTS = 22  # that they lead to, more or less
IDLE = 1.0  # seconds without an event after which a life ends all the same
OVERDUE = 60.0  # seconds after which one that should have ended is ended
FIRST = {  # where a life must have ended before for a point to be reached
    "outbox.change doubtful": "within platform.send",
    "runs.resume": "after runs.begin",
}
BOTH: tuple[Kind, ...] = ("with keys", "without keys")


class Moment(Struct, frozen=True, kw_only=True):
    """When a life ends: so many seconds after so many events."""

    events: int
    seconds: float

    @classmethod
    def drawn(cls, chance: random.Random) -> "Moment":
        return cls(events=chance.randrange(EVENTS), seconds=chance.uniform(0, 0.02))


class Station:
    """One file with one engine at a time on it, its service and its deaths."""

    def __init__(
        self, folder: Path, service: ScriptedService, lives: Lives, model_url: str, *, agents: Sequence[str] = ()
    ) -> None:
        self.path = folder / "engine.db"
        self.store = postgres.store_in(folder, "engine.db")
        self.service = service
        self.kills = self.lives = 0
        self.log = lives.log
        self._lives = lives
        self._life = Life(
            path=str(self.path),
            store=self.store,
            model_url=model_url,
            port=service.port,
            platform=service.kind,
            agents=tuple(agents),
            remembers=300.0 if service.kind == "with keys" else 0.0,
        )

    async def die(self, moment: "Moment") -> None:
        """Live until a moment, in which some messages come."""
        self.service.begin(MESSAGES)
        child = await self._begin(self._life)
        await self.service.until(moment.events, "asked", patience=IDLE)
        await asyncio.sleep(moment.seconds)
        self._ended(await self._lives.kill(child), wanted=-signal.SIGKILL)

    async def die_full(self, room: int) -> None:
        """Live with so much room on the disk until there is none left, while messages come without end."""
        self.service.begin(float("inf"))
        child = await self._begin(replace(self._life, room=room))
        while not self.is_full():  # noqa: ASYNC110 (its log is a file)
            await asyncio.sleep(0.02)
        self._ended(await self._lives.kill(child), wanted=-signal.SIGKILL)

    def is_full(self) -> bool:
        """Whether an engine has said that there is no room."""
        return any(words in self.log() for words in ("there is no room left on the disk", "is it full?"))

    async def die_at(self, point: str) -> None:
        """Live until a named point is reached."""
        self.service.begin(float("inf"))
        child = await self._begin(replace(self._life, kill_at=point))
        self._ended(await self._lives.end(child, timeout=OVERDUE), wanted=-signal.SIGKILL)

    async def finish(self, messages: int = 0, *, room: int = 0) -> None:
        """Live until all is done, and so many more messages; the disk is full after so much *room*, for a moment."""
        self.service.begin(messages, ends=True)
        child = await self._begin(replace(self._life, room=room, finds_room=bool(room)))
        self._ended(await self._lives.end(child, timeout=OVERDUE), wanted=0)

    async def _begin(self, life: Life) -> int:
        postgres.let_time_pass(self.store)
        return await self._lives.begin(life)

    def _ended(self, code: int, *, wanted: int) -> None:
        self.lives += 1
        self.kills += code == -signal.SIGKILL
        assert code == wanted, f"a life ended with {code}\n{self.log()}"


@asynccontextmanager
async def station(
    folder: Path,
    kind: Kind,
    seed: int,
    *,
    script: type[ScriptedService] = ScriptedService,
    behaviour: Behaviour | None = None,
    agents: Sequence[str] = (),
) -> AsyncIterator[Station]:
    async with (
        script(kind, seed) as service,
        GeminiSim(behaviour=behaviour or Answering(), tell=lambda *_: service.count("asked")) as sim,
    ):
        async with lives(CHILD, folder / "engine.log") as forked:
            yield Station(folder, service, forked, sim.url, agents=agents)
        refused = [request.rule for request in sim.requests if request.rule]
        assert refused == [], refused


async def tortured(folder: Path, kind: Kind, *, kills: int, seed: int) -> Result:
    """What has become of everything in a file whose engine was killed so often, at random moments."""
    began = time.monotonic()
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    async with station(folder, kind, seed) as one:
        for _ in range(kills):
            await one.die(Moment.drawn(chance))
        await one.finish()
        return await told(one, began)


async def told(one: Station, began: float) -> Result:
    found = await aftermath(one.path, one.store, one.service)
    return replace(found, kills=one.kills, lives=one.lives, seconds=time.monotonic() - began)


async def at_points(folder: Path, kind: Kind, points: Sequence[str], *, seed: int) -> Result:
    """What has become of everything in a file whose engine was killed once at each of the named points."""
    began = time.monotonic()
    async with station(folder, kind, seed) as one:
        for point in points:
            if first := FIRST.get(point.split(" ", 1)[1]):
                await one.die_at(first)
            await one.die_at(point)
        await one.finish()
        return await told(one, began)


async def main(kills: int) -> int:
    """Kill so often, half on each kind of platform, and print what came of it."""
    room = asyncio.Semaphore(2 * (os.cpu_count() or 1))  # they wait more than they work
    sizes = [min(EACH, kills - start) for start in range(0, kills, EACH)]
    done: list[Result] = []

    async def batch(number: int, size: int) -> None:
        async with room:
            folder = Path(tempfile.mkdtemp(prefix="tertulia-torture-"))
            result = await tortured(folder, BOTH[number % 2], kills=size, seed=number)
            done.append(result)
            _progress(sum(one.kills for one in done), kills)
            if result.faults:
                print(f"{folder}: {len(result.faults)} faults", *result.faults, sep="\n  ", flush=True)
            else:
                shutil.rmtree(folder)

    async with asyncio.TaskGroup() as group:
        for number, size in enumerate(sizes):
            group.create_task(batch(number, size))
    print(table(done))
    return int(any(result.faults for result in done))


def table(results: Sequence[Result]) -> str:
    """The sums, a line for each kind of platform."""
    rows = []
    for kind in BOTH:
        total = reduce(Result.plus, (one for one in results if one.kind == kind), Result(kind=kind))
        rows.append([f"{value:.0f}" if isinstance(value, float) else str(value) for value in total.counts().values()])
    head = [name.replace("_", " ") for name in Result(kind="").counts()]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _progress(so_far: int, kills: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{so_far} of {kills} kills", end="" if so_far < kills else "\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]))))

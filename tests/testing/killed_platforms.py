"""Bots on the two platforms that are killed again and again: `killed_platforms.py 500` prints what became of all."""

import asyncio
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, json
from msgspec.structs import astuple, replace

from palaver.messages import Author, Place, Reply
from palaver.store import Store
from palaver.testing.example_service import ExampleService, Fault
from testing.platform_child import Life, answer_to, platform_of

HERE = Path(__file__).parent
PLATFORMS = ("corner", "keyless")
WRITES = 40  # of the bot's in one life, at most; most are edits of drafts
IDLE = 0.5  # seconds without a write after which a life ends all the same
OVERDUE = 60.0  # seconds after which the last life has to be over


class CountingService(ExampleService):
    """The service, with the writes of the bot counted."""

    def __init__(self, *, keys: bool) -> None:
        super().__init__(keys=keys)
        self.writes = 0
        self.written = asyncio.Event()

    def _written(self, request: dict[str, Any], fault: Fault | None) -> dict[str, Any] | None:
        answer = super()._written(request, fault)
        self.writes += 1
        self.written.set()
        return answer

    async def until(self, writes: int) -> None:
        """Wait until the bot has written so often, or nothing for a while."""
        with suppress(TimeoutError):
            while self.writes < writes:
                self.written.clear()
                await asyncio.wait_for(self.written.wait(), IDLE)


class Result(Struct, frozen=True, kw_only=True):
    """What became of the messages of one file."""

    platform: str
    kills: int
    with_draft: int  # kills while a draft could be seen
    between_parts: int  # kills when some parts of an answer could be seen, and not all
    messages: int
    shown: int
    doubtful: int
    faults: tuple[str, ...] = ()


class Lives:
    """Lives of a bot, one after another, forked from one process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        self._stdin, self._stdout = process.stdin, process.stdout

    async def begin(self, life: Life) -> int:
        self._stdin.write(json.encode(life) + b"\n")
        return int(await self._stdout.readline())

    async def end(self) -> int:
        """How the life ended."""
        code = int(await self._stdout.readline())
        self._stdin.write(b"\n")
        return code


@asynccontextmanager
async def lives(log: Path) -> AsyncIterator[Lives]:
    folders = [str(HERE.parent), str(HERE.parents[1] / "examples"), *sys.path]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(HERE / "platform_child.py"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        )
        try:
            yield Lives(process)
        finally:
            if process.stdin:
                process.stdin.close()
            await process.wait()


async def killed(folder: Path, platform: str, *, kills: int, seed: int) -> Result:
    """Kill a bot so often, at random moments, while people write; then let it finish, and look at everything."""
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    life = Life(path=str(folder / "bot.db"), port=0, platform=platform)
    messages = with_draft = between_parts = 0
    async with CountingService(keys=platform == "corner") as service, lives(folder / "log") as one:
        life = replace(life, port=service.port)
        for _ in range(kills):
            for _ in range(chance.choice([0, 0, 1, 2]) if messages else 1):  # else no answer ever comes to its end
                person = Author(id=f"p{messages}", name="Ann")
                service.post(person.id, person, f"number {messages}!")
                messages += 1
            child = await one.begin(life)
            await service.until(service.writes + chance.randrange(1, WRITES))
            await asyncio.sleep(chance.uniform(0, 0.01))
            os.kill(child, signal.SIGKILL)
            seen = [(service.shown(f"p{number}"), answer_parts(platform, number)) for number in range(messages)]
            with_draft += any(is_draft(shown, parts) for shown, parts in seen)
            between_parts += any(is_between(shown, parts) for shown, parts in seen)
            assert await one.end() == -signal.SIGKILL, (folder / "log").read_text()
        child = await one.begin(replace(life, messages=messages))
        try:
            code = await asyncio.wait_for(one.end(), OVERDUE)
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            raise AssertionError(f"the last life did not end\n{(folder / 'log').read_text()}") from None
        assert code == 0, (folder / "log").read_text()
        found = await aftermath(life, service, kills=kills, messages=messages)
        return replace(found, with_draft=with_draft, between_parts=between_parts)


async def killed_at(folder: Path, platform: str, point: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Kill a bot within its answer in three parts, and let another finish; what is seen, and what is doubtful."""
    life = Life(path=str(folder / "bot.db"), port=0, platform=platform, messages=1)
    async with CountingService(keys=platform == "corner") as service, lives(folder / "log") as one:
        service.post("p2", Author(id="p2", name="Ann"), "number 2!")
        for kill_at, wanted in ((point, -signal.SIGKILL), ("", 0)):
            await one.begin(replace(life, port=service.port, kill_at=kill_at))
            code = await asyncio.wait_for(one.end(), OVERDUE)
            assert code == wanted, (code, (folder / "log").read_text())
        seen = [message["text"] for message in service.shown("p2")]
    async with Store.open(life.path) as store:
        outbox = await store.outbox.listed()
    assert {row.status for row in outbox} <= {"sent", "doubtful"}
    return seen, [(row.kind, row.reply.text) for row in outbox if row.status == "doubtful"]


async def aftermath(life: Life, service: ExampleService, *, kills: int, messages: int) -> Result:
    """What people see, beside what they should see and what is listed as doubtful."""
    async with Store.open(life.path) as store:
        outbox = await store.outbox.listed()
        unfinished = await store.runs.open()
    doubtful = Counter(one.reply.place.id for one in outbox if one.status == "doubtful")
    faults = [f"{one.id} is {one.status}: {one.why}" for one in outbox if one.status not in ("sent", "doubtful")]
    faults += [f"run {run.id} is open" for run in unfinished]
    shown = 0
    for number in range(messages):
        seen = [message["text"] for message in service.shown(f"p{number}")]
        shown += len(seen)
        faults += faults_of(number, seen, answer_parts(life.platform, number), doubtful[f"p{number}"])
    total = sum(doubtful.values())
    return Result(
        platform=life.platform,
        kills=kills,
        with_draft=0,
        between_parts=0,
        messages=messages,
        shown=shown,
        doubtful=total,
        faults=tuple(faults),
    )


@cache
def answer_parts(platform: str, number: int) -> Sequence[str]:
    """The messages that an answer is split into."""
    place = Place(platform=platform, id=f"p{number}", kind="direct")
    made = platform_of(Life(path="", port=0, platform=platform))
    return [part.text for part in made.split(Reply(place=place, text=answer_to(number)))]


def is_draft(shown: Sequence[dict[str, Any]], parts: Sequence[str]) -> bool:
    """Whether people see the beginning of an answer, and nothing else of it."""
    return len(shown) == 1 and shown[0]["text"] not in parts


def is_between(shown: Sequence[dict[str, Any]], parts: Sequence[str]) -> bool:
    """Whether people see some parts of an answer, and not all."""
    return 0 < len({message["text"] for message in shown} & {*parts}) < len(parts)


def faults_of(number: int, seen: Sequence[str], parts: Sequence[str], doubtful: int) -> list[str]:
    """A part that is seen twice, in the wrong place, or not at all though nothing is doubtful there."""
    whole = [text for text in seen if text in parts]
    faults = [f"{number}: {text!r} is seen {times} times" for text, times in Counter(whole).items() if times > 1]
    if whole != [part for part in parts if part in whole]:
        faults.append(f"{number}: the parts are not in order")
    missing, odd = len(parts) - len(set(whole)), len(seen) - len(whole)
    if missing + odd > 2 * doubtful or missing > doubtful:
        faults.append(f"{number}: {missing} parts are missing and {odd} are odd, with {doubtful} doubtful: {seen}")
    return faults


async def main(kills: int) -> int:
    """Kill so often, half on each platform, and print what came of it."""

    async def one(platform: str) -> Result:
        with tempfile.TemporaryDirectory(prefix="palaver-kills-") as folder:
            return await killed(Path(folder), platform, kills=kills // len(PLATFORMS), seed=1)

    results = await asyncio.gather(*map(one, PLATFORMS))
    print("| platform | kills | with a draft | between parts | messages | shown | doubtful | faults |")
    print("|---|---|---|---|---|---|---|---|")
    for result in results:
        *values, faults = astuple(result)
        print(f"| {' | '.join(map(str, [*values, len(faults)]))} |", *faults, sep="\n  ", flush=True)
    return int(any(result.faults for result in results))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]))))

"""How long others wait while a person is forgotten: `bench/forget.py [MESSAGES …]`.

A store has messages of 40 people in four groups, a run for every tenth with the last 20 messages as its prompt, facts
and answers. One of the people, who has a direct chat too, is forgotten while somebody writes a message every 50 ms. The
floor, in the same run, is how long the writer takes to store 500 messages at once, the longest of five times: no job of
a forget may be longer. Both are measured by the clock, and in processor time: on a busy machine only that one says what
the jobs cost.
"""

import asyncio
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tertulia.memory.values import Fact, Subject
from tertulia.messages import Author, Message, Place
from tertulia.parts import Text
from tertulia.run.journal import Run
from tertulia.store import Store
from tertulia.store.threads import Job, Outcome
from tertulia.turns import Prompt, user

NOON = datetime(2025, 1, 15, 12, tzinfo=UTC)
GROUPS = [Place(platform="telegram", id=f"-{number}", kind="group", title=f"Group {number}") for number in range(4)]
PEOPLE = [Author(id=f"u{number}", name=f"Name{number}") for number in range(40)]
WORDS = [f"word{number}" for number in range(5_000)]
HER = PEOPLE[7]
HERS = [*GROUPS, Place(platform="telegram", id=HER.id, kind="direct", title=HER.name)]
WINDOW, EVERY = 20, 10  # messages in a prompt, messages between two runs
AT_ONCE = 500


def a_message(chance: random.Random, number: int) -> Message:
    text = " ".join(chance.choices(WORDS, k=chance.randint(3, 25)))
    author = chance.choice(PEOPLE)
    place = chance.choice(HERS if author is HER else GROUPS)
    return Message(id=f"m{number}", place=place, author=author, sent_at=NOON, parts=(Text(text=text),))


async def fill(store: Store, count: int) -> None:
    chance = random.Random(count)
    seen: dict[str, list[Message]] = {place.id: [] for place in HERS}
    for start in range(0, count, AT_ONCE):
        messages = [a_message(chance, number) for number in range(start, start + AT_ONCE)]
        await asyncio.gather(*(store.inbox.receive(message, at=NOON) for message in messages))
        for number, message in enumerate(messages, start):
            there = seen[message.place.id]
            there.append(message)
            if number % EVERY == 0:
                await answer(store, message, there)


async def answer(store: Store, message: Message, there: list[Message]) -> None:
    run = Run(id=f"r{message.id}", place=message.place, target=message.id, taken=(), began_at=NOON, horizon=len(there))
    prompt = Prompt.of(*(user(f"{one.author.name}: {one.text}") for one in there[-WINDOW:]), system="Be kind.")
    await store.runs.begin(run, prompt, at=NOON)
    done = Run(
        id=run.id, place=run.place, target=run.target, taken=(), began_at=NOON, horizon=run.horizon, status="done",
        ended_at=NOON,
    )  # fmt: skip
    await store.runs.end(done)
    if message.author is HER:
        subject = Subject(platform="telegram", id=HER.id, name=HER.name)
        text = f"likes {message.text.split()[0]}"
        fact = Fact(
            id=f"f{message.id}", subject=subject, text=text, place=message.place, sources=(message.id,), learned_at=NOON
        )
        await store.facts.learn([fact])


class Held(NamedTuple):
    """Seconds in which the writer did one thing."""

    clock: float
    processor: float

    @classmethod
    def of(cls, jobs: list["Held"]) -> "Held":
        return cls(*map(sum, zip(*jobs, strict=True)))


class Watch:
    """How long the writer was held: by messages that were stored, and by each other job."""

    def __init__(self, store: Store) -> None:
        self.stored: list[Held] = []
        self.held: list[Held] = []
        run_batch = store.writer.run_batch

        def watched(jobs: list[Job]) -> list[Outcome]:
            began, worked = time.perf_counter(), time.thread_time()
            found = run_batch(jobs)
            took = Held(time.perf_counter() - began, time.thread_time() - worked)
            are_messages = all(job.places for job in jobs)  # a job of a forget names no place
            (self.stored if are_messages else self.held).append(took)
            return found

        store.writer.run_batch = watched  # type: ignore[method-assign]


async def write(store: Store, waits: list[float]) -> None:
    """Write a message every 50 ms, and note how long each waits until it is stored."""
    number = 0
    while True:
        message = Message(id=f"w{number}", place=GROUPS[0], author=PEOPLE[1], sent_at=NOON, parts=(Text(text="hello"),))
        began = time.perf_counter()
        await store.inbox.receive(message, at=NOON)
        waits.append(time.perf_counter() - began)
        number += 1
        await asyncio.sleep(0.05)


async def measure(count: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        async with Store.open(Path(folder) / "s.db") as store:
            await fill(store, count)
            watch = Watch(store)
            chance = random.Random(0)
            floors = []
            for round_number in range(5):
                start = count + round_number * AT_ONCE
                messages = [a_message(chance, number) for number in range(start, start + AT_ONCE)]
                await asyncio.gather(*(store.inbox.receive(message, at=NOON) for message in messages))
                floors.append(Held.of(watch.stored))
                watch.stored.clear()
            waits: list[float] = []
            writing = asyncio.ensure_future(write(store, waits))
            await asyncio.sleep(0.2)
            watch.held.clear()
            waits.clear()
            began = time.perf_counter()
            await store.forget(platform="telegram", author_id=HER.id, at=NOON)
            took = time.perf_counter() - began
            writing.cancel()
            slowest = max(waits, default=took)
            columns = [
                f"{max(floor) * 1000:.0f} | {max(longest) * 1000:.0f} | {max(longest) / max(floor):.2f}"
                for floor, longest in zip(zip(*floors, strict=True), zip(*watch.held, strict=True), strict=True)
            ]
    return f"| {count:,} | {' | '.join(columns)} | {slowest * 1000:.0f} | {took:.1f} |"


async def main(counts: list[int]) -> None:
    by_clock, by_processor = (f"storing 500, {ms} | longest job, {ms} | ratio" for ms in ("ms", "ms of CPU"))
    print(f"| messages | {by_clock} | {by_processor} | a message waits at most, ms | forgetting, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for count in counts:
        print(await measure(count), flush=True)


if __name__ == "__main__":
    asyncio.run(main([int(one) for one in sys.argv[1:]] or [5_000, 20_000, 100_000]))

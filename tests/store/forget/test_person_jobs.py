"""No job of a forget does more in a larger store: others write to it meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from people import BOB, GROUP, NOON, a_message
from store.builders import a_run, an_outgoing, begin
from store.forget.test_person import HER, HOME
from tertulia.messages import Author, Place
from tertulia.store import Store
from tertulia.store.threads import Job, Outcome

STEP = 10  # instructions of the database that are counted at once
EVERY = 2  # messages between two runs


async def write(store: Store, place: Place, author: Author, most: int) -> None:
    """Let somebody write messages, which the agent answers sometimes."""
    messages = [a_message(f"word{n} said", id=f"{author.id}-{n}", author=author, place=place) for n in range(most)]
    await asyncio.gather(*(store.inbox.receive(message, at=NOON) for message in messages))
    for message in messages[::EVERY]:
        run = a_run(id=f"{place.id}-{message.id}", place=place, target=message.id, taken=())
        await begin(store, run)
        await store.runs.end(
            replace(run, status="done", ended_at=NOON), replies=[an_outgoing(id=f"o-{run.id}", status="sent")]
        )


async def forget_her(store: Store) -> None:
    await store.forget(platform="telegram", author_id=HER.id, at=NOON)


async def forget_facts(store: Store) -> None:
    await store.facts.forget([fact.id for fact in await store.facts.about(a_subject(HER), place=GROUP)][:4], at=NOON)


async def longest_job(path: Path, forget: Callable[[Store], Awaitable[None]], *, others: int, hers: int) -> int:
    """Return how many instructions of the database the longest job of a forget takes."""
    async with Store.open(path, durable=False) as store:
        await write(store, GROUP, BOB, others)
        await write(store, GROUP, HER, hers)
        await write(store, HOME, HER, hers)
        for number in range(12):
            fact = a_fact(f"likes word{number} said", about=HER, place=GROUP, sources=(f"{HER.id}-{number}",))
            await store.facts.learn([fact])
        ran, jobs, run_batch = count(), list[int](), store.writer.run_batch

        def counted(batch: list[Job]) -> list[Outcome]:
            before = next(ran)
            found = run_batch(batch)
            jobs.append(next(ran) - before)
            return found

        store.writer.database.set_progress_handler(lambda: next(ran) < 0, STEP)  # type: ignore[attr-defined]
        store.writer.run_batch = counted  # type: ignore[assignment, method-assign]
        await forget(store)
    return max(jobs) * STEP


@pytest.mark.parametrize("forget", [forget_her, forget_facts])
async def test_the_longest_job_is_as_long_in_a_store_that_is_ten_times_as_large(
    tmp_path: Path, forget: Callable[[Store], Awaitable[None]]
) -> None:
    usual = await longest_job(tmp_path / "usual.db", forget, others=200, hers=120)

    large = await longest_job(tmp_path / "large.db", forget, others=2_000, hers=120)
    of_many = await longest_job(tmp_path / "of-many.db", forget, others=200, hers=1_200)

    assert max(large, of_many) < usual * 1.1

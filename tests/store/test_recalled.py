"""What prompts showed from memory, by id; it goes with what it names, and with the prompts of its run."""

from datetime import timedelta

from msgspec.structs import replace

from memory.known import a_fact
from people import ALICE, BOB, GROUP, NOON, a_message
from store.builders import PROMPT, a_run
from tertulia.context.values import RecalledThing
from tertulia.store import Store

FACT = RecalledThing(kind="fact", id=a_fact().id, why="it is known of the author")
MESSAGE = RecalledThing(kind="message", id="1", place=GROUP, score=0.75, why="it says kayak")
GONE = RecalledThing(kind="episode", id="gone", score=0.5, why="it speaks of 80% of what the message does")


async def recalling(store: Store) -> None:
    """Answer Bob with a fact about Alice, a message of hers, and an episode that is gone."""
    await store.inbox.receive(a_message("I bought a kayak", id="1", author=ALICE), at=NOON)
    await store.inbox.receive(a_message("hm", id="2", author=BOB), at=NOON)
    fact = replace(a_fact(sources=("1",)), subject=replace(a_fact().subject, id=ALICE.id))
    await store.facts.learn([fact], reading=await store.cursors.next_range(GROUP))
    run = a_run(target="2", taken=("2",))
    await store.runs.begin(run, PROMPT, at=NOON, recalled=[FACT, MESSAGE, GONE])
    await store.runs.end(a_run(target="2", taken=("2",), status="done", ended_at=NOON))


async def test_what_was_recalled_is_stored_by_its_id() -> None:
    async with Store.open(":memory:") as store:
        await recalling(store)

        assert list(await store.runs.recalled("r1")) == [FACT, MESSAGE]
        assert await store.check() == []


async def test_it_goes_with_a_fact_that_is_forgotten_and_with_a_person() -> None:
    async with Store.open(":memory:") as store:
        await recalling(store)

        await store.facts.forget([FACT.id], at=NOON)
        left = list(await store.runs.recalled("r1"))
        await store.forget(platform="telegram", author_id=ALICE.id, at=NOON)

        assert FACT not in left
        assert list(await store.runs.recalled("r1")) == []


async def test_it_goes_with_old_prompts() -> None:
    async with Store.open(":memory:") as store:
        await recalling(store)

        async for _ in store.prompts.remove_old(NOON + timedelta(days=1), at=NOON):
            pass

        assert list(await store.runs.recalled("r1")) == []

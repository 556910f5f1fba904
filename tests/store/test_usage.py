"""Calls of services and their sums."""

from datetime import timedelta

from msgspec.structs import replace

from people import ALICE, GROUP, NOON, a_message
from store.builders import a_record, a_run
from tertulia.engine.limits import Spend
from tertulia.memory.values import Subject
from tertulia.models.base import Usage
from tertulia.models.calls import Call, SentMedia, SentRequest
from tertulia.models.openai.vendors import VENDORS
from tertulia.models.prices import Price
from tertulia.store import Store
from tertulia.turns import Prompt
from tertulia.wire.repair import Receipt

PROMPT = Prompt.of("hello")
REQUEST = SentRequest(
    sha256="5f",
    size=900,
    wire="openai",
    receipts=(Receipt(rule="call-without-result", where="messages[2]", action="a result was added"),),
    vendor=VENDORS["groq"],
    streamed=True,
)
ANSWERED = Call(
    model="m",
    answered_by="m-2026",
    run="r1",
    step=0,
    attempt=2,
    begun_at=NOON + timedelta(seconds=3),
    first_at=NOON + timedelta(seconds=4),
    ended_at=NOON + timedelta(seconds=5),
    waited=2.5,
    usage=Usage(input=100, cached=40, written=20, output=7, thought=3),
    price=Price(input=1.0, output=2.0),
    money=0.5,
    request=REQUEST,
    media=(
        SentMedia(sha256="ab", mime="image/jpeg"),
        SentMedia(uri="https://x/files/1", mime="image/png"),
        SentMedia(),
    ),
)
FAILED = Call(
    model="m", run="r1", step=0, begun_at=NOON, ended_at=NOON, status="failed", error="RateLimited", why="too many"
)


async def called(store: Store) -> None:
    """Answer a message of Alice's after one failed attempt, and summarise something for nobody."""
    await store.inbox.receive(a_message("hi", id="1"), at=NOON)
    await store.runs.begin(a_run(target="1", taken=("1",)), PROMPT, at=NOON)
    await store.runs.add_call(a_run(target="1", taken=("1",)), FAILED)
    await store.runs.add_record(a_run(target="1", taken=("1",)), 0, a_record(), call=ANSWERED)
    await store.usage.add(replace(FAILED, run=None, step=None, purpose="summary", status="stopped"), place=GROUP)


async def test_every_call_is_found_as_it_was_and_counted() -> None:
    async with Store.open(":memory:") as store:
        await called(store)

        stored = await store.usage.calls(most=9)
        person = Subject(platform="telegram", id=ALICE.id, name=ALICE.name)
        assert [(one.call, one.place, one.person) for one in stored] == [
            (FAILED, GROUP, person),
            (ANSWERED, GROUP, person),
            (replace(FAILED, run=None, step=None, purpose="summary", status="stopped"), GROUP, None),
        ]
        assert [one.call for one in await store.usage.calls(run="r1", failed=True, most=9)] == [FAILED]
        hers, nobodys = await store.usage.listed(NOON.date())
        spent = await store.usage.spent(NOON.date(), place=GROUP)
        assert (hers.calls, nobodys.calls, spent) == (2, 1, Spend(tokens=110, money=0.5))
        assert await store.check() == []


async def test_calls_that_are_removed_stay_in_the_sums() -> None:
    async with Store.open(":memory:") as store:
        await called(store)
        await store.runs.end(a_run(target="1", taken=("1",), status="done", ended_at=NOON))
        before = await store.usage.listed(NOON.date())

        async for _ in store.prompts.remove_old(NOON + timedelta(days=1), at=NOON):
            pass

        assert await store.usage.calls(most=9) == []
        assert await store.usage.listed(NOON.date()) == before


async def test_no_call_for_a_person_is_left_and_what_it_cost_is() -> None:
    async with Store.open(":memory:") as store:
        await called(store)

        await store.forget(platform="telegram", author_id=ALICE.id, at=NOON)

        assert [one.call.purpose for one in await store.usage.calls(most=9)] == ["summary"]
        assert await store.usage.spent(NOON.date()) == Spend(tokens=110, money=0.5)

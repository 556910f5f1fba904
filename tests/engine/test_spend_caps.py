import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.engines import ALICE, BOB, DIRECT, GROUP, engine_with, said, talked, with_clock
from media.media_files import image
from people import NOON, a_photo
from tertulia.engine.background import RealClock
from tertulia.engine.behavior import Behavior
from tertulia.engine.describers import by_model
from tertulia.engine.engine import Engine
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.limits import Cap, CurrentLimits, Limits, Spend
from tertulia.engine.memory import Memory
from tertulia.engine.memory.learner import EpisodeWriter
from tertulia.engine.spend_caps import MeteredModel, SpendTracker
from tertulia.errors import InvalidValue, SpendCapReached, TimedOut
from tertulia.media.descriptions import Description
from tertulia.messages import Place
from tertulia.models.base import Response, Usage
from tertulia.models.prices import Price
from tertulia.models.scripted import Scripted
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt, model, user

USAGE = Usage(input=750, cached=250, output=150, thought=100)
PRICE = Price(input=1000.0, cached=1000.0, output=1000.0)  # a dollar for each answer
DAY, TOMORROW = NOON.date(), NOON + timedelta(days=1)


def answers(count: int) -> Scripted:
    return Scripted(*[Response(turn=model(f"Answer {number}.", by="scripted"), usage=USAGE) for number in range(count)])


def capped(**caps: Any) -> dict[str, Any]:
    behavior = Behavior(debounce=0.0, prices={"scripted": PRICE})
    return {"behavior": behavior, "limits": Limits(**caps), "now": lambda: NOON}


async def test_what_is_spent_is_known_by_place_person_and_day(store: Store) -> None:
    async with engine_with(answers(3), store=store, **capped()) as engine:
        await talked(engine, said("one", 1), said("two", 2, author=BOB), said("Gryag, three", 3, place=GROUP))

    assert await store.usage.spent(DAY) == Spend(tokens=3000, money=3.0)
    assert await store.usage.spent(DAY, place=GROUP) == Spend(tokens=1000, money=1.0)
    assert await store.usage.spent(DAY, place=DIRECT, author=BOB) == Spend(tokens=1000, money=1.0)
    assert await store.usage.spent(DAY + timedelta(days=1)) == Spend()
    assert await store.check() == []


TALK = (
    said("one", 1),
    said("two", 2),
    said("Gryag, three", 3, place=GROUP, author=BOB),
    said("Gryag, four", 4, place=GROUP),
)
CAPS: list[tuple[dict[str, Cap], list[str]]] = [
    ({}, ["Answer 0.", "Answer 1.", "Answer 2.", "Answer 3."]),
    ({"total": Cap(tokens=2000)}, ["Answer 0.", "Answer 1.", ENGLISH.spent, ENGLISH.spent]),
    ({"total": Cap(money=1.5)}, ["Answer 0.", "Answer 1.", ENGLISH.spent, ENGLISH.spent]),
    ({"place": Cap(tokens=1000)}, ["Answer 0.", ENGLISH.spent, "Answer 1.", ENGLISH.spent]),
    ({"person": Cap(tokens=1000)}, ["Answer 0.", ENGLISH.spent, "Answer 1.", ENGLISH.spent]),
]


@pytest.mark.parametrize(("caps", "texts"), CAPS)
async def test_once_a_cap_is_reached_there_is_an_honest_line(caps: Any, texts: list[str]) -> None:
    platform = RecordedPlatform()

    async with engine_with(answers(4), platform, **capped(**caps)) as engine:
        await talked(engine, *TALK)

    assert platform.texts == texts


async def test_who_was_told_is_not_told_again_that_day(store: Store) -> None:
    platform = RecordedPlatform()

    async with engine_with(answers(1), platform, store=store, **capped(total=Cap(tokens=1))) as engine:
        await talked(engine, *(said("more", number) for number in range(4)))

    assert platform.texts == ["Answer 0.", ENGLISH.spent]
    assert await store.inbox.waiting(DIRECT) == []


async def test_who_was_told_is_not_told_again_by_the_next_process(tmp_path: Path) -> None:
    platform = RecordedPlatform()
    for number in range(3):
        async with (
            Store.open(tmp_path / "s.db") as store,
            engine_with(answers(1), platform, store=store, **capped(total=Cap(tokens=0))) as engine,
        ):
            await talked(engine, said("hi", number), said("hi", f"{number} of Bob", author=BOB))

    assert platform.texts == [ENGLISH.spent, ENGLISH.spent]  # each of them


READ = Response(turn=model('{"facts": []}', by="scripted"), usage=USAGE)


async def remembering(store: Store, reader: Scripted, **caps: Any) -> Scripted:
    """An engine whose memory reads what is said with *reader*; when it must wait, it is the next day."""
    days = [NOON]

    async def sleep(_: float) -> None:
        days.append(TOMORROW)

    given = capped(**caps) | {"now": lambda: days[-1]}
    memory = Memory(store, model=reader, clock=RealClock(now=given["now"], sleep=sleep))
    async with engine_with(answers(1), store=store, memory=memory, **given) as engine:
        await talked(engine, said("I live in Lviv.", 1))
        await asyncio.wait_for(memory.done(), 5)
    return reader


async def test_what_memory_asks_is_counted_for_the_place(store: Store) -> None:
    reader = await remembering(store, Scripted(READ))

    assert len(reader.prompts) == 1
    assert await store.usage.spent(DAY) == await store.usage.spent(DAY, place=DIRECT) == Spend(tokens=2000, money=2.0)
    assert await store.usage.spent(DAY, place=DIRECT, author=ALICE) == Spend(tokens=1000, money=1.0)


async def test_once_a_cap_is_reached_memory_waits_until_tomorrow(store: Store) -> None:
    reader = await remembering(store, Scripted(READ), place=Cap(tokens=1000))

    assert len(reader.prompts) == 1
    assert await store.usage.spent(DAY) == Spend(tokens=1000, money=1.0)
    assert await store.usage.spent(TOMORROW.date()) == Spend(tokens=1000, money=1.0)
    assert await store.cursors.unread() == []


async def test_episodes_wait_for_a_cap_and_are_not_told_without_the_model(store: Store) -> None:
    for number in range(3):
        at = NOON - timedelta(hours=9 - 4 * number)
        await store.inbox.receive(said(f"The ferry to Odesa leaves at {number}.", number, sent_at=at), at=at)
    usages = SpendTracker(store.usage, CurrentLimits(Limits(total=Cap(tokens=0))), now=lambda: NOON)
    episodist = EpisodeWriter(
        store.episodes,
        store.log,
        model=Scripted(),
        metered=lambda one, at, of: MeteredModel(one, usages, at, purpose=of),
    )

    with pytest.raises(SpendCapReached):
        await episodist.write(DIRECT)

    assert await store.episodes.listed(DIRECT) == []


async def test_a_model_that_only_drips_is_left_in_time() -> None:
    class Hanging(Scripted):
        async def respond(self, prompt: Prompt) -> Response:
            await asyncio.Event().wait()
            raise AssertionError

    async with Store.open(":memory:") as store:
        spend_tracker = SpendTracker(store.usage, CurrentLimits(), now=lambda: NOON)
        with pytest.raises(TimedOut):
            await MeteredModel(Hanging(), spend_tracker, DIRECT, purpose="facts", timeout=0.01).respond(
                Prompt.of(user("hi"))
            )


async def test_a_description_is_counted_for_who_sent_what_is_described(store: Store) -> None:
    seen = Response(turn=model("A cat.", by="eyes"), usage=USAGE)
    eyes = by_model(Scripted(seen, name="scripted"))
    async with engine_with(answers(1), store=store, describe=eyes, **capped()) as engine:
        await talked(engine, said("look", 1, parts=(a_photo(data=image("JPEG")),)))

    assert await store.descriptions.find(["p1"]) == {"p1": Description(words="A cat.")}
    assert await store.usage.spent(DAY, place=DIRECT, author=ALICE) == Spend(tokens=2000, money=2.0)


@pytest.mark.parametrize("who", ["memory", "describe"])
def test_a_cap_on_money_needs_the_price_of_every_model(store: Store, who: str) -> None:
    other = Scripted(name="unpriced")
    given: Any = {"memory": Memory(store, model=other)} if who == "memory" else {"describe": by_model(other)}
    with pytest.raises(InvalidValue, match="money is capped, but unpriced has no price"):
        Engine(store, Scripted(), [RecordedPlatform()], **with_clock(capped(total=Cap(money=1.0)) | given))


async def test_what_was_spent_is_known_to_the_next_process_and_tomorrow_is_another_day(tmp_path: Path) -> None:
    platform, now = RecordedPlatform(), NOON
    given = capped(total=Cap(tokens=1000)) | {"now": lambda: now}
    for number in range(3):
        async with (
            Store.open(tmp_path / "s.db") as store,
            engine_with(answers(1), platform, store=store, **given) as engine,
        ):
            await talked(engine, said("hi", number))
        now += timedelta(days=number)

    assert platform.texts == ["Answer 0.", ENGLISH.spent, "Answer 0."]


@pytest.mark.parametrize("place", [DIRECT, GROUP])
async def test_a_person_who_is_forgotten_leaves_numbers_behind(store: Store, place: Place) -> None:
    async with engine_with(answers(1), store=store, **capped()) as engine:
        await talked(engine, said("Gryag, hi", 1, place=place))

    await store.forget(platform="recorded", author_id=ALICE.id, at=NOON)

    assert await store.usage.spent(DAY) == Spend(tokens=1000, money=1.0)
    assert await store.usage.spent(DAY, place=place, author=ALICE) == Spend()
    assert await store.check() == []


def test_a_cap_on_money_needs_a_price(store: Store) -> None:
    with pytest.raises(InvalidValue, match="money is capped, but scripted has no price"):
        Engine(store, Scripted(), [RecordedPlatform()], limits=Limits(total=Cap(money=1.0)))


@pytest.mark.parametrize("who", ["model", "memory", "describe"])
def test_limits_that_are_set_later_need_the_price_of_every_model_too(store: Store, who: str) -> None:
    other = Scripted(name="unpriced")
    setups: dict[str, dict[str, Any]] = {
        "model": {"models": other},
        "memory": {"models": Scripted(), "memory": Memory(store, model=other)},
        "describe": {"models": Scripted(), "describe": by_model(other)},
    }
    engine = Engine(store, platforms=[RecordedPlatform()], **with_clock(capped() | setups[who]))

    with pytest.raises(InvalidValue, match="money is capped, but unpriced has no price"):
        engine.limits = Limits(total=Cap(money=1.0))
    assert engine.limits == Limits()
    engine.limits = Limits(total=Cap(tokens=1))
    assert engine.limits == Limits(total=Cap(tokens=1))


@pytest.mark.parametrize("cap", [{"tokens": -1}, {"money": -0.01}])
def test_a_cap_below_nothing_is_refused(cap: Any) -> None:
    with pytest.raises(InvalidValue):
        Cap(**cap)

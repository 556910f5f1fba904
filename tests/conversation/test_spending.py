from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from conversation.engines import ALICE, BOB, DIRECT, GROUP, engine_with, said, talked
from palaver.conversation.conduct import Conduct
from palaver.conversation.engine import Engine
from palaver.conversation.spending import SPENT, Cap, Caps, Spend
from palaver.errors import InvalidValue
from palaver.messages import Place
from palaver.models.base import Response, Usage
from palaver.models.prices import Price
from palaver.models.scripted import Scripted
from palaver.store import Store
from palaver.testing import RecordedPlatform
from palaver.turns import model
from people import NOON

USAGE = Usage(input=750, cached=250, output=150, thought=100)
PRICE = Price(input=1000.0, cached=1000.0, output=1000.0)  # a dollar for each answer
DAY = NOON.date()


def answers(count: int) -> Scripted:
    return Scripted(*[Response(turn=model(f"Answer {number}.", by="scripted"), usage=USAGE) for number in range(count)])


def capped(**caps: Any) -> dict[str, Any]:
    conduct = Conduct(burst=0.0, caps=Caps(**caps), prices={"scripted": PRICE})
    return {"conduct": conduct, "now": lambda: NOON}


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
    ({"total": Cap(tokens=2000)}, ["Answer 0.", "Answer 1.", SPENT, SPENT]),
    ({"total": Cap(money=1.5)}, ["Answer 0.", "Answer 1.", SPENT, SPENT]),
    ({"place": Cap(tokens=1000)}, ["Answer 0.", SPENT, "Answer 1.", SPENT]),
    ({"person": Cap(tokens=1000)}, ["Answer 0.", SPENT, "Answer 1.", SPENT]),
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

    assert platform.texts == ["Answer 0.", SPENT]
    assert await store.inbox.waiting(DIRECT) == []


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

    assert platform.texts == ["Answer 0.", SPENT, "Answer 0."]


@pytest.mark.parametrize("place", [DIRECT, GROUP])
async def test_a_person_who_is_forgotten_leaves_numbers_behind(store: Store, place: Place) -> None:
    async with engine_with(answers(1), store=store, **capped()) as engine:
        await talked(engine, said("Gryag, hi", 1, place=place))

    await store.forget(ALICE.id, "recorded", at=NOON)

    assert await store.usage.spent(DAY) == Spend(tokens=1000, money=1.0)
    assert await store.usage.spent(DAY, place=place, author=ALICE) == Spend()
    assert await store.check() == []


def test_a_cap_on_money_needs_a_price(store: Store) -> None:
    with pytest.raises(InvalidValue, match="money is capped, but no price of scripted is known"):
        Engine(store, Scripted(), [RecordedPlatform()], conduct=Conduct(caps=Caps(total=Cap(money=1.0))))


@pytest.mark.parametrize("cap", [{"tokens": -1}, {"money": -0.01}])
def test_a_cap_below_nothing_is_refused(cap: Any) -> None:
    with pytest.raises(InvalidValue):
        Cap(**cap)

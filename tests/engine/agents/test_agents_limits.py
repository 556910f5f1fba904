"""What agents may spend: each within its own caps, all together within those of the engine. And their own lines."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import BOB, DIRECT, GROUP, engine_with, said, talked
from engine.test_spend_caps import PRICE, answers, capped
from tertulia.engine.agents.agent import Agent
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.languages.ukrainian import UKRAINIAN
from tertulia.engine.limits import Cap, Limits
from tertulia.engine.store_protocols import PlaceCast
from tertulia.errors import InvalidValue, QuotaExhausted
from tertulia.models.scripted import Scripted
from tertulia.platform import Commanded
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

TALK = (
    said("Kant?", 1, place=GROUP),
    said("Kant?", 2, place=GROUP, author=BOB),
    said("Hume?", 3, place=GROUP),
    said("Kant?", 4),
    said("Kant?", 5, place=GROUP),
)


@pytest.mark.parametrize(
    ("of_kant", "of_all", "answered"),
    [
        ({}, {}, [1, 2, 3, 4, 5]),
        ({"total": Cap(tokens=1000)}, {}, [1, 3]),
        ({"total": Cap(money=1.5)}, {}, [1, 2, 3]),
        ({"place": Cap(tokens=2000)}, {}, [1, 2, 3, 4]),
        ({"person": Cap(tokens=1000)}, {}, [1, 2, 3]),
        ({"total": Cap(tokens=5000)}, {"total": Cap(tokens=2000)}, [1, 2]),
        ({}, {"place": Cap(tokens=3000)}, [1, 2, 3, 4]),
    ],
)
async def test_an_agent_spends_within_its_caps_and_those_of_the_engine(
    store: Store, of_kant: dict[str, Any], of_all: dict[str, Any], answered: list[int]
) -> None:
    kant, hume = Agent(name="Kant", limits=Limits(**of_kant) if of_kant else None), Agent(name="Hume")
    platform = RecordedPlatform()

    async with engine_with(answers(5), platform, store=store, agents=[kant, hume], **capped(**of_all)) as engine:
        await talked(engine, *TALK)

    assert [d.reply.reply_to or "4" for d in platform.deliveries if d.reply.text.startswith("Answer")] == list(
        map(str, answered)
    )
    told = [text for text in platform.texts if text == ENGLISH.spent]
    assert len(told) == len({(one.author.id, one.place) for one in TALK if int(one.id) not in answered})
    rows: dict[str, int] = {}
    for row in await store.usage.listed(capped()["now"]().date()):
        rows[row.agent] = rows.get(row.agent, 0) + row.calls
    assert rows == {name: count for name in ("Kant", "Hume") if (count := sum(by_id(one, name) for one in answered))}


def by_id(number: int, name: str) -> bool:
    return TALK[number - 1].text.startswith(name)


async def test_a_cap_on_money_needs_prices_of_the_models_that_it_is_for(store: Store) -> None:
    capped_agent = Agent(name="Kant", models=(Scripted(name="dear"),), limits=Limits(total=Cap(money=1.0)))

    with pytest.raises(InvalidValue, match=re.escape("money is capped, but dear has no price")):
        engine(store, capped_agent, prices={"scripted": PRICE})
    with pytest.raises(InvalidValue, match=re.escape("money is capped, but scripted has no price")):
        engine(store, Agent(name="Kant", limits=Limits(total=Cap(money=1.0))), prices={"dear": PRICE})
    engine(store, capped_agent, prices={"dear": PRICE})


def engine(store: Store, agent: Agent, **behavior: Any) -> Engine:
    return Engine(
        store, Scripted(), [RecordedPlatform()], agents=[agent, Agent(name="Hume")], behavior=Behavior(**behavior)
    )


async def test_people_are_answered_as_often_as_an_engine_answers_whoever_answers(store: Store) -> None:
    platform, limits = RecordedPlatform(), Limits(messages=2, seconds=60)
    agents = [Agent(name="Kant"), Agent(name="Hume")]

    async with engine_with(Scripted(*"abc"), platform, store=store, agents=agents, limits=limits) as engine:
        await talked(engine, said("Kant, Hume", 1, place=GROUP), said("Hume?", 2, place=GROUP))

    assert platform.texts == ["a", "b", ENGLISH.too_many]


async def test_an_agent_speaks_its_language_to_whom_speaks_an_unknown_one(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted(*[QuotaExhausted("no")] * 3)
    agents = [Agent(name="Kant"), Agent(name="Mavka", language="uk")]

    async with engine_with(model, platform, store=store, agents=agents) as engine:
        await talked(engine, said("Kant?", 1, place=GROUP), said("Mavka?", 2, place=GROUP))
        await talked(engine, said("Mavka?", 3, place=GROUP, author=replace(BOB, language="en")))
        await store.agents.set_cast(DIRECT, PlaceCast(default="Mavka"))
        await engine.inbox("recorded").apply([Commanded(message=said("/start", 4), name="start")], key="1")
        await engine.settled()

    assert platform.texts == [
        ENGLISH.quota_exhausted,
        UKRAINIAN.quota_exhausted,
        ENGLISH.quota_exhausted,
        UKRAINIAN.greeting.format(name="Mavka"),
    ]

"""People are the same people for all our accounts on one service."""

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, AT_ONCE, BOB, said, talked
from tertulia.engine.behavior import TOO_MANY, Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.limits import Limits
from tertulia.memory.values import Subject
from tertulia.messages import Author, Place
from tertulia.models import Scripted
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

FIRST = Place(platform="recorded:1", id="1", kind="direct")
SECOND = Place(platform="recorded:2", id="1", kind="direct")
ELSEWHERE = Place(platform="other", id="1", kind="direct")


class Account(RecordedPlatform):
    service = "recorded"

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = f"recorded:{number}"
        self.me = Author(id=f"bot{number}", name=f"Bot {number}")


class Other(RecordedPlatform):
    name = "other"


async def test_who_is_blocked_is_blocked_for_all_accounts_of_a_service_and_for_no_other(store: Store) -> None:
    first, second, other = Account(1), Account(2), Other()
    model = Scripted("Go away.\n\n# «block»", "Hello.", "Hello.")
    behavior = Behavior(debounce=0.0, model_may=frozenset({"block"}))

    async with Engine(store, model, [first, second, other], behavior=behavior) as engine:
        await talked(engine, *(said("hi", place=place) for place in (FIRST, SECOND, ELSEWHERE)))

    assert (first.texts, second.texts, other.texts) == (["Go away."], [], ["Hello."])
    assert await store.place_settings.blocked() == {("recorded", "1")}


async def test_the_limit_on_an_author_counts_what_they_write_to_all_accounts(store: Store) -> None:
    first, second, other = Account(1), Account(2), Other()
    limits = Limits(messages=1, seconds=60)

    async with Engine(store, Scripted("One.", "Two."), [first, second, other], limits=limits) as engine:
        await talked(engine, *(said("hi", place=place) for place in (FIRST, SECOND, ELSEWHERE)))

    assert (first.texts, second.texts, other.texts) == (["One."], [TOO_MANY], ["Two."])


async def test_who_is_forgotten_is_forgotten_on_all_accounts(store: Store) -> None:
    model = Scripted(*["Hm."] * 3)
    async with Engine(store, model, [Account(1), Account(2), Other()], behavior=AT_ONCE) as engine:
        await talked(engine, *(said("I am Alice.", place=place) for place in (FIRST, SECOND, ELSEWHERE)))

    report = await store.forget(platform="recorded", author_id="1")

    assert (report.places, report.messages) == (2, 2)
    assert [await store.log.count(place) for place in (FIRST, SECOND, ELSEWHERE)] == [0, 0, 2]


async def test_a_message_of_another_account_of_ours_is_our_own(store: Store) -> None:
    group = Place(platform="recorded:1", id="-1", kind="group")
    model = Scripted("Hello both.")
    async with Engine(store, model, [Account(1), Account(2)], behavior=AT_ONCE) as engine:
        other = replace(Author(id="bot2", name="Bot 2"), persona="Bot 2")
        await talked(engine, said("I am the second.", 1, place=group, author=other))
        await talked(engine, said("Bot 1, say hello", 2, place=group, author=BOB))

    (prompt,) = model.prompts
    assert [turn.role for turn in prompt.turns if "second" in turn.text] == ["model"]


@pytest.mark.parametrize("place", [FIRST, SECOND])
async def test_what_is_known_of_somebody_is_known_under_the_service(store: Store, place: Place) -> None:
    model = Scripted("Noted.\n\n# «remember»\n- Likes tea", "Hm.")
    async with Engine(store, model, [Account(1), Account(2)], behavior=AT_ONCE) as engine:
        await talked(engine, said("I like tea", place=place, author=ALICE))

    assert [fact.subject for fact in await store.facts.listed()] == [Subject(platform="recorded", id="1", name="Alice")]

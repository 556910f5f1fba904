"""What was forgotten is not learned again from what had been said until then."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from fakes import Meanwhile
from memory.known import a_fact, a_subject
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message
from store.builders import files_hold
from tertulia.engine.memory.learner import Learner
from tertulia.messages import Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store

HER, HIM = a_subject(ALICE), a_subject(BOB)
HIS = Place(platform="telegram", id=BOB.id, kind="direct")


async def say(store: Store, text: str, message_id: str = "m1", place: Place = GROUP) -> None:
    await store.inbox.receive(a_message(text, id=message_id, place=place), at=NOON)


async def read(store: Store, model: Scripted | None = None) -> Sequence[str]:
    """What is known, after all that is unread was read."""
    learner = Learner(store.facts, store.cursors, store.log, model=model, now=lambda: NOON)
    await learner.start()
    await learner.done()
    return [fact.text for fact in await store.facts.listed()]


@pytest.mark.parametrize("place", [GROUP, DIRECT])
async def test_what_was_unread_when_all_was_forgotten_is_not_learned(store: Store, place: Place) -> None:
    await say(store, "I live in Lviv.", place=place)

    await store.facts.forget_all(HER)

    assert await read(store) == []
    await say(store, "I live in Lviv.", "m2", place)
    assert await read(store) == ["Lives in Lviv."]


async def test_what_was_being_read_when_all_was_forgotten_is_not_learned(store: Store) -> None:
    claim = {"sources": [1], "about": ALICE.id, "key": "home", "text": "Lives in Lviv.", "confidence": 1}
    await say(store, "I live in Lviv.")

    assert await read(store, Meanwhile(partial(store.facts.forget_all, HER), json.dumps({"facts": [claim]}))) == []


async def test_what_waits_to_be_read_again_is_not_learned_once_all_was_forgotten(store: Store) -> None:
    await say(store, "I live in Lviv.")
    assert await read(store) == ["Lives in Lviv."]
    await store.inbox.edit(a_message("I live in Lviv!", id="m1"), at=NOON)

    await store.facts.forget_all(HER)

    assert await read(store) == []


async def test_of_others_it_is_learned_still_and_of_the_person_what_is_said_afterwards(store: Store) -> None:
    await say(store, "before")
    await store.facts.forget_all(HER)
    await say(store, "after", "m2")

    await store.facts.learn([a_fact("is tall"), a_fact("is shy", sources=("m1", "m2")), a_fact("is tall", about=BOB)])

    assert [(fact.subject, fact.text, fact.sources) for fact in await store.facts.listed()] == [
        (HER, "is shy", ("m2",)),
        (HIM, "is tall", ("m1",)),
    ]


async def test_a_forgotten_fact_is_not_learned_from_the_rest_of_its_message(store: Store) -> None:
    await say(store, "I live in Lviv. I love tea.")
    await read(store)
    (home, _) = await store.facts.listed()

    await store.facts.forget([home.id])
    await store.inbox.edit(a_message("I live in Lviv. I love coffee.", id="m1"), at=NOON)
    assert await read(store) == []  # it says so still, and stays hidden
    await store.inbox.edit(a_message("I love juggling.", id="m1"), at=NOON)
    assert await read(store) == ["Loves juggling."]

    await say(store, "I live in Lviv.", "m2")
    assert await read(store) == ["Loves juggling.", "Lives in Lviv."]


async def test_what_a_forgotten_fact_had_superseded_is_not_learned_again_either(store: Store) -> None:
    await say(store, "so")
    kyiv, lviv = (a_fact(f"lives in {town}", key="home") for town in ("Kyiv", "Lviv"))
    await store.facts.learn([kyiv, lviv])

    await store.facts.forget([lviv.id])

    assert await store.facts.learn([replace(kyiv, id="a", text="Alice lives in Kyiv."), replace(lviv, id="b")]) == []
    await say(store, "so", "m2")
    odesa = a_fact("lives in Odesa", key="home", sources=("m2",))
    assert await store.facts.learn([odesa]) == [odesa]


async def test_it_stays_forgotten_in_the_next_process_until_the_person_is_forgotten_too(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await say(store, "so")
        await store.facts.learn([a_fact("hides marmalade", id="one")])
        await store.facts.forget(["one"])
        await store.facts.forget_all(HER)

    async with Store.open(tmp_path / "s.db") as store:
        assert await store.facts.learn([a_fact("is tall")]) == []
        assert not files_hold(tmp_path, "marmalade")

        await store.forget(platform="telegram", author_id=ALICE.id)
        assert [row async for row in store.export() if row["table"] == "fact_exclusions"] == []
        assert await store.check() == []


async def test_new_messages_are_learned_from_though_others_are_removed_meanwhile(store: Store) -> None:
    await say(store, "so")
    await store.inbox.receive(a_message("so", id="m1", place=HIS, author=BOB), at=NOON)
    await store.facts.forget_all(HER)
    await store.forget(platform="telegram", author_id=BOB.id)
    await say(store, "so", "m2")

    fact = a_fact(sources=("m2",))
    assert await store.facts.learn([fact]) == [fact]

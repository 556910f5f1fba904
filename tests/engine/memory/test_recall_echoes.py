"""What came to mind echoes is known again: where it came to mind, and for a few answers."""

from typing import Any

from people import BOB, GROUP, NOON, a_context, a_message
from tertulia.context.values import Context, RecalledEpisode, RelevantMessage
from tertulia.engine.memory.recall import ANSWERS, PLACES, EchoFilter
from tertulia.memory.verify.statements import RecalledTexts
from tertulia.messages import Place
from tertulia.store import Store

ELSEWHERE = Place(platform="telegram", id="-5", kind="group")
NOTHING = RecalledTexts(texts=("",), names=("Alice",))


def reminded(place: Place = GROUP, **changes: Any) -> Context:
    return a_context(a_message(place=place), **changes)


async def test_what_came_to_mind_is_known_by_its_words_and_whom_it_is_about() -> None:
    said, edited = a_message("I bought a kayak", author=BOB), a_message("I bought a boat", author=BOB, edited_at=NOON)
    hits = (
        RelevantMessage(text="Bob: I bought a kayak", score=1.0, message_id="m1"),
        RelevantMessage(text="x", score=1.0, message_id="gone"),
    )
    episode = RecalledEpisode(topic="boats", summary="They spoke of boats.", start=0)
    async with Store.open(":memory:") as store:
        await store.inbox.receive(said, at=NOON)
        echoes = EchoFilter(store.log)
        echoes.add(
            reminded(
                memories=("Lives in Lviv.",), key_facts={"work": "Is a nurse."}, summary="A nurse.", episodes=(episode,)
            )
        )
        echoes.add(a_context(a_message(author=BOB), relevant=hits))
        await store.inbox.edit(edited, at=NOON)

        found, elsewhere = await echoes.recalled_in(GROUP), await echoes.recalled_in(ELSEWHERE)

    assert sorted(found.texts) == ["", "A nurse.", "Is a nurse.", "Lives in Lviv.", "They spoke of boats."]
    assert (sorted(found.names), found.messages, elsewhere) == (["Alice", "Bob"], (edited,), RecalledTexts())


async def test_after_a_few_answers_it_is_not_known_any_more() -> None:
    async with Store.open(":memory:") as store:
        echoes = EchoFilter(store.log)
        echoes.add(reminded(memories=("Lives in Lviv.",)))
        known = []
        for _ in range(ANSWERS):
            known.append("Lives in Lviv." in (await echoes.recalled_in(GROUP)).texts)
            echoes.add(reminded())

        assert (known, await echoes.recalled_in(GROUP)) == ([True] * ANSWERS, NOTHING)


async def test_of_many_places_the_last_are_known() -> None:
    places = [Place(platform="telegram", id=str(number), kind="group") for number in range(PLACES + 1)]
    async with Store.open(":memory:") as store:
        echoes = EchoFilter(store.log)
        for place in places:
            echoes.add(reminded(place))

        assert [await echoes.recalled_in(place) for place in (places[0], places[1])] == [RecalledTexts(), NOTHING]

"""MemoryContract: the tests of facts and who may see them, summaries, episodes, cursors, descriptions and the index."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.memory.values import Episode, Fact, IndexEntry, Subject, Summary, UnreadRange
from tertulia.messages import Author, Place
from tertulia.testing.store_world import (
    ALICE,
    BOB,
    GROUP,
    LATER,
    NOON,
    Opened,
    a_message,
    a_talk,
    check,
    check_restarts,
    receive,
)

HER, HIM = (Subject(platform="telegram", id=one.id, name=one.name) for one in (ALICE, BOB))
HERS, HIS = (Place(platform="telegram", id=one.id, kind="direct") for one in (ALICE, BOB))
ELSEWHERE = Place(platform="telegram", id="-5", kind="group", title="Elsewhere")


def a_fact(text: str = "likes tea", *, about: Author = ALICE, place: Place = GROUP, **changes: Any) -> Fact:
    subject = Subject(platform=place.platform, id=about.id, name=about.name)
    fields: dict[str, Any] = {
        "id": f"{about.id} {place.id} {text}", "subject": subject, "text": text, "place": place, "sources": ("m1",),
        "learned_at": NOON, "scope": "direct" if place.kind == "direct" else "chat",
    }  # fmt: skip
    return Fact(**fields | changes)


async def learn(store: StoreProtocol, *facts: Fact) -> list[Fact]:
    """Learn facts, after those they are about have said so."""
    for fact in facts:
        author = Author(id=fact.subject.id, name=fact.subject.name)
        await receive(store, *(a_message("so", id=one, place=fact.place, author=author) for one in fact.sources))
    return list(await store.facts.learn(facts))


async def known(store: StoreProtocol, place: Place = GROUP, about: Subject = HER, **how: Any) -> list[str]:
    return [fact.text for fact in await store.facts.about(about, place=place, **how)]


class MemoryContract:
    """What is known has its sources, is shown to those who may see it, and goes with what it came from."""

    @check
    async def test_a_fact_comes_back_as_it_was_learned(self, store: StoreProtocol) -> None:
        fact = a_fact(
            "Живе у Києві; '%s'",
            sources=("m2", "m1", "m9"),
            scope="everywhere",
            confidence=0.25,
            key="home",
            held_from=NOON - timedelta(days=400),
            held_until=LATER,
        )

        assert await learn(store, fact) == [fact]
        assert await store.facts.get(fact.id) == fact
        assert list(await store.facts.listed(HER, GROUP)) == [fact]
        assert [message.id for message in await store.facts.why(fact.id)] == ["m2", "m1", "m9"]
        assert (await known(store, at=NOON), await known(store, at=LATER)) == ([fact.text], [])

    @check
    async def test_nothing_is_known_of_nobody(self, store: StoreProtocol) -> None:
        found = [
            list(await store.facts.listed()),
            list(await store.facts.learn([])),
            await known(store),
            list(await store.facts.why("x")),
        ]

        assert found == [[], [], [], []]
        assert (await store.facts.get("x"), await store.facts.forget(["x"])) == (None, 0)

    @check
    async def test_a_fact_without_a_stored_source_is_not_learned(self, store: StoreProtocol) -> None:
        assert list(await store.facts.learn([a_fact()])) == []
        with pytest.raises(InvalidValue):
            await store.facts.learn([a_fact(text=" ")])

    @check
    async def test_new_facts_are_merged_with_those_that_are_known(self, store: StoreProtocol) -> None:
        old, new = a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", learned_at=LATER)
        await learn(store, old, a_fact("likes tea"))
        again = a_fact("Likes the tea.", id="other", sources=("m2",), learned_at=LATER)

        assert await learn(store, new) == [replace(old, held_until=LATER, superseded_by=new.id), new]
        assert await learn(store, again) == [a_fact("likes tea", sources=("m1", "m2"), learned_at=LATER)]
        assert sorted(await known(store)) == ["likes tea", "lives in Lviv"]

    @check
    async def test_who_may_see_a_fact(self, store: StoreProtocol) -> None:
        await learn(
            store,
            a_fact("is shy", place=HERS),
            a_fact("likes tea", scope="everywhere"),
            a_fact("likes gin"),
            a_fact("is tall", place=ELSEWHERE),
        )
        await receive(store, a_message(place=HIS, author=BOB))
        asked = [
            *((GROUP, one) for one in (None, HER, HIM)),
            *((HERS, one) for one in (None, HER, HIM)),
            *((HIS, one) for one in (None, HER, HIM)),
            (replace(GROUP, id="-9"), HER),
            (replace(GROUP, id="-9"), HIM),
        ]

        here, hers = {"likes tea", "likes gin"}, {"is shy", "likes tea", "likes gin", "is tall"}
        expected = [here, here, here, hers, hers, set(), set(), hers, set(), {"likes tea"}, set()]
        found = [set(await known(store, place, asked_by=asker)) for place, asker in asked]
        assert found == expected

    @check
    async def test_what_others_say_of_a_person_stays_where_it_was_said(self, store: StoreProtocol) -> None:
        await receive(store, a_message(id="own"), a_message(id="his", author=BOB), a_message(place=HERS))
        sources = {"own": ("own",), "hearsay": ("his",), "both": ("own", "his")}
        await store.facts.learn([a_fact(text, sources=by) for text, by in sources.items()])

        assert set(await known(store, HERS, asked_by=HER)) == {"own"}
        assert set(await known(store, GROUP, asked_by=HIM)) == set(sources)

    @check
    async def test_nobody_who_is_blocked_is_told_or_told_of(self, store: StoreProtocol) -> None:
        await learn(store, a_fact("likes tea"), a_fact("is loud", about=BOB, sources=("m2",)))
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=LATER)

        assert (await known(store, asked_by=HER), await known(store, asked_by=HIM)) == (["likes tea"], [])
        assert await known(store, about=HIM, asked_by=HER) == []

    @check
    async def test_a_fact_goes_with_its_last_source_and_frees_what_it_superseded(self, store: StoreProtocol) -> None:
        await learn(
            store,
            a_fact("lives in Kyiv", key="home"),
            a_fact("lives in Lviv", key="home", sources=("m2",), learned_at=LATER),
        )
        await store.inbox.delete(GROUP, "m2", at=LATER)

        assert await known(store) == ["lives in Kyiv"]
        assert len(list(await store.facts.listed())) == 1

    @check
    async def test_a_fact_is_forgotten_with_what_it_superseded(self, store: StoreProtocol) -> None:
        await learn(store, a_fact("lives in Kyiv", key="home"), a_fact("likes tea"))
        new = a_fact("lives in Lviv", key="home", sources=("m2",), learned_at=LATER)
        await learn(store, new)

        assert await store.facts.forget([new.id]) == 2
        assert [fact.text for fact in await store.facts.listed()] == ["likes tea"]

    @check
    async def test_everything_about_a_person_is_forgotten_and_not_learned_again(self, store: StoreProtocol) -> None:
        facts = [a_fact("likes tea"), a_fact("is shy", place=HERS)]
        await learn(store, *facts, a_fact(about=BOB, sources=("m2",)))

        assert await store.facts.forget_all(HER) == 2
        assert list(await store.facts.learn(facts)) == []
        assert [fact.subject.id for fact in await store.facts.listed()] == [BOB.id]

    @check
    async def test_unread_messages_are_read_once_and_again_after_an_edit(self, store: StoreProtocol) -> None:
        talk = a_talk(5)
        await receive(store, *talk)
        first = await store.cursors.next_range(GROUP, most=3)
        assert first == UnreadRange(place=GROUP, start=0, stop=3, changes=0)
        await store.facts.learn([], reading=first)
        second = await store.cursors.next_range(GROUP)
        assert second == UnreadRange(place=GROUP, start=3, stop=5, changes=0)
        await store.inbox.edit(replace(talk[1], parts=a_message("edited").parts, edited_at=LATER), at=LATER)

        again = await store.cursors.next_range(GROUP)
        assert again is not None
        assert (again.start, again.stop) == (1, 2)
        assert [place.key for place in await store.cursors.unread()] == [GROUP.key]

    @check
    async def test_a_summary_goes_with_the_facts_it_was_made_of(self, store: StoreProtocol) -> None:
        fact = a_fact()
        await learn(store, fact)
        summary = Summary(subject=HER, place=GROUP, text="Alice likes tea.", facts=1, digest="d", made_at=NOON)
        await store.facts.summarise(summary, made_of=[fact.id])
        before = [await store.facts.summary(HER, place=place) for place in (GROUP, ELSEWHERE)]
        await store.facts.forget([fact.id])

        assert before == [summary, None]
        assert await store.facts.summary(HER, place=GROUP) is None
        await store.facts.summarise(summary, made_of=[fact.id])
        assert await store.facts.summary(HER, place=GROUP) is None

    @check
    async def test_an_episode_is_stored_unless_its_messages_have_changed(self, store: StoreProtocol) -> None:
        talk = a_talk(4)
        await receive(store, *talk)
        seen = await store.episodes.cursor(GROUP)
        assert seen is not None
        people = (ALICE.id, BOB.id)
        episode = Episode(id="e1", place=GROUP, start=0, stop=3, topic="tea", summary="About tea.", people=people)

        assert await store.episodes.add(episode, seen=seen) is True
        assert list(await store.episodes.listed(GROUP)) == [episode]
        await store.inbox.delete(GROUP, "1", at=LATER)
        assert list(await store.episodes.listed(GROUP)) == []
        assert [place.key for place in await store.episodes.places()] == [GROUP.key]
        assert await store.episodes.add(replace(episode, id="e2"), seen=seen) is False

    @check
    async def test_an_episode_with_somebody_who_is_blocked_is_not_shown(self, store: StoreProtocol) -> None:
        await receive(store, *a_talk(3))
        seen = await store.episodes.cursor(GROUP)
        assert seen is not None
        await store.episodes.add(Episode(id="e1", place=GROUP, start=0, stop=3, people=(ALICE.id, BOB.id)), seen=seen)
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=LATER)

        assert list(await store.episodes.listed(GROUP)) == []
        assert [place.key for place in await store.episodes.places()] == [GROUP.key]

    @check_restarts
    async def test_what_is_indexed_is_found_also_by_the_next_process(self, opened: Callable[[], Opened]) -> None:
        async with opened() as store:
            await receive(store, *a_talk(3))
            batch = await store.index_writer.unindexed(GROUP, most=10)
            assert batch is not None
            entries = [
                IndexEntry(number=one.number, name=one.name, at=0, length=2, traits=0, words={"tea": 1, "teapot": 2})
                for one in batch.said
            ]
            assert await store.index_writer.add(batch, entries) is True
            assert await store.index_writer.unindexed(GROUP, most=10) is None
        async with opened() as store:
            view = await store.index_reader.view(GROUP, ALICE)
            assert view is not None
            wanted = [("tea", True), ("tea", False), ("gin", False)]
            found = await store.index_reader.postings(view, wanted)
            assert [sorted({number for _, number, _ in postings}) for postings in found] == [[0, 1, 2], [0, 1, 2], []]
            assert [len({term for term, _, _ in postings}) for postings in found] == [1, 2, 0]
            messages = await store.index_reader.messages(view, [0, 2])
            assert {number: message.id for number, message in messages.items()} == {0: "0", 2: "2"}

"""Facts as they are kept: with their sources, for those who may hear them, and gone when they must be."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from memory.known import a_fact, a_subject, taught
from memory.visibility import may_hear
from people import ALICE, BOB, DIRECT, GROUP, GRYAG, NOON, a_message, a_photo, a_talk
from sizes import EXAMPLES, size
from store.builders import add_own, an_access, cursor, files_hold, set_cursor
from stored_rows import on, read
from tertulia.context.values import Background
from tertulia.engine.memory.recall import KnownFacts
from tertulia.errors import InvalidValue
from tertulia.memory import rules
from tertulia.memory.facts import MAX_FACTS, MAX_SOURCES, facts_digest, facts_to_drop
from tertulia.memory.values import Episode, Fact, FactRules, Subject, Summary, UnreadRange
from tertulia.messages import Author, Place
from tertulia.store import Store
from tertulia.store.facts import SqlFacts

LATER = NOON + timedelta(days=1)
ELSEWHERE = Place(platform="telegram", id="-5", kind="group", title="Elsewhere")
HERS = Place(platform="telegram", id=ALICE.id, kind="direct")
HIS = Place(platform="telegram", id=BOB.id, kind="direct")
HER, HIM = a_subject(ALICE), a_subject(BOB)


def at_most(count: int) -> FactRules:
    """The rules of memory, with so many facts about a person from a place."""
    given = {name: getattr(rules, name) for name in rules.__all__}
    return cast("FactRules", SimpleNamespace(**given | {"facts_to_drop": partial(facts_to_drop, limit=count)}))


async def heard(store: Store, place: Place = GROUP, about: Subject = HER, **how: Any) -> list[str]:
    return [fact.text for fact in await store.facts.about(about, place=place, **how)]


async def test_a_fact_is_kept_as_it_is(store: Store) -> None:
    fact = a_fact(
        "Живе у Києві",
        sources=("m2", "m1", "m9"),
        scope="everywhere",
        confidence=0.25,
        key="home",
        held_from=NOON - timedelta(days=400),
        held_until=LATER,
    )

    assert await taught(store, [fact]) == [fact]
    assert await store.facts.get(fact.id) == fact
    assert await store.facts.listed() == [fact]
    assert await store.facts.about(HER, place=GROUP, at=NOON) == [fact]


async def test_nothing_is_known_of_nobody(store: Store) -> None:
    assert await store.facts.get("x") is None
    assert await store.facts.why("x") == []
    assert await store.facts.listed() == []
    assert await store.facts.about(HER, place=GROUP) == []
    assert await store.facts.learn([]) == []
    assert await store.facts.forget(["x"]) == 0
    assert await store.facts.summary(HER, place=GROUP) is None


async def test_the_same_fact_twice_is_one(store: Store) -> None:
    await taught(store, [a_fact("likes tea"), a_fact("Likes the tea.", sources=("m2",))])
    once = await taught(store, [a_fact("User likes tea!", sources=("m3",), learned_at=LATER)])

    assert once == await store.facts.listed() == [a_fact(sources=("m1", "m2", "m3"), learned_at=LATER)]
    assert await taught(store, once) == []


async def test_a_newer_fact_supersedes_the_older_which_is_kept(store: Store) -> None:
    old, new = a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", learned_at=LATER)
    past = replace(old, held_until=LATER, superseded_by=new.id)
    await taught(store, [old])

    assert await taught(store, [new]) == [past, new]
    assert await store.facts.listed() == [past, new]
    assert await heard(store) == ["lives in Lviv"]


async def said_of_her(store: Store, message_id: str, author: Author, town: str) -> None:
    await store.inbox.receive(a_message(town, id=message_id, author=author), at=NOON)
    at = NOON + timedelta(days=int(message_id[1:]))
    await store.facts.learn([a_fact(f"lives in {town}", id=town, key="home", sources=(message_id,), learned_at=at)])


async def test_what_somebody_else_says_of_a_person_waits_for_their_own_word_to_go(store: Store) -> None:
    await said_of_her(store, "m1", ALICE, "Lviv")
    await said_of_her(store, "m2", BOB, "Rome")
    assert await heard(store) == ["lives in Lviv"]

    await said_of_her(store, "m3", ALICE, "Kyiv")
    assert await heard(store) == ["lives in Kyiv"]

    await store.inbox.delete(GROUP, "m3", at=LATER)
    assert await heard(store) == ["lives in Lviv"]

    await store.inbox.delete(GROUP, "m1", at=LATER)
    assert [(fact.text, fact.hearsay) for fact in await store.facts.about(HER, place=GROUP)] == [
        ("lives in Rome", True)
    ]


async def test_a_persons_own_word_supersedes_what_was_said_of_them(store: Store) -> None:
    await said_of_her(store, "m2", BOB, "Rome")
    assert await heard(store) == ["lives in Rome"]

    await said_of_her(store, "m1", ALICE, "Lviv")
    assert await heard(store) == ["lives in Lviv"]


async def test_what_a_person_takes_back_is_only_hearsay_though_others_repeated_it(store: Store) -> None:
    await said_of_her(store, "m1", ALICE, "Lviv")
    await said_of_her(store, "m2", ALICE, "Rome")
    await store.inbox.receive(a_message("Alice lives in Rome", id="m3", author=BOB), at=NOON)
    await store.facts.learn([a_fact("lives in Rome", id="again", key="home", sources=("m3",), learned_at=LATER)])
    await all_read(store)

    await store.inbox.delete(GROUP, "m2", at=LATER)

    assert await heard(store) == ["lives in Lviv"]
    assert await store.cursors.next_range(GROUP) is not None  # what others said is read again


async def test_who_does_not_say_who_asks_hears_what_anybody_there_may(store: Store) -> None:
    await taught(store, [a_fact("is shy", place=HERS), a_fact("likes tea", scope="everywhere"), a_fact("likes gin")])
    await store.inbox.receive(a_message("hi", id="m1", place=HIS, author=BOB), at=NOON)

    assert await heard(store, HERS) == ["likes gin", "likes tea", "is shy"]
    assert await heard(store, HIS) == await heard(store, HIS, asked_by=HIM) == []
    assert await heard(store, HIS, asked_by=HER) == ["likes gin", "likes tea", "is shy"]
    assert await heard(store, ELSEWHERE) == []
    assert await heard(store, ELSEWHERE, asked_by=HER) == ["likes tea"]
    assert await heard(store, GROUP) == ["likes gin", "likes tea"]


async def test_a_direct_chat_in_which_somebody_else_wrote_is_nobodys_own(store: Store) -> None:
    await taught(store, [a_fact("is shy", place=HERS)])
    await store.inbox.receive(a_message("hi", id="m2", place=HERS, author=BOB), at=NOON)

    assert await heard(store, HERS) == []
    assert await heard(store, HERS, asked_by=HER) == ["is shy"]


async def test_the_most_useful_come_first_and_not_more_than_asked_for(store: Store) -> None:
    await taught(
        store, [a_fact("doubtful", confidence=0.5, learned_at=LATER), a_fact("old"), a_fact("new", learned_at=LATER)]
    )

    assert await heard(store) == ["new", "old", "doubtful"]
    assert [await heard(store, limit=limit) for limit in (2, 0, -1)] == [["new", "old"], [], []]


async def test_what_held_until_some_time_is_heard_until_then(store: Store) -> None:
    await taught(store, [a_fact("is in Rome", held_until=LATER)])

    assert await heard(store, at=LATER - timedelta(seconds=1)) == ["is in Rome"]
    assert await heard(store, at=LATER) == []


async def test_facts_are_listed_by_person_and_place(store: Store) -> None:
    hers, his, there = a_fact(), a_fact(about=BOB, sources=("m2",)), a_fact(place=ELSEWHERE)
    await taught(store, [hers, his, there])

    assert await store.facts.listed(HER) == [hers, there]
    assert await store.facts.listed(place=GROUP) == [hers, his]
    assert await store.facts.listed(HER, ELSEWHERE) == [there]
    assert await store.facts.listed(Subject(platform="telegram", id="\ud800")) == []
    assert await store.facts.listed(place=replace(GROUP, thread="1")) == []


async def test_any_text_can_be_a_fact(store: Store) -> None:
    for text in ("half \ud83d", "nul \0", "'; DROP TABLE facts; --", "  two\nlines "):
        await taught(store, [a_fact(text, id=text.encode(errors="replace").hex())])

    assert [fact.text for fact in await store.facts.listed()] == [
        "half \ufffd",
        "nul \ufffd",
        "'; DROP TABLE facts; --",
        "two\nlines",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"text": ""},
        {"sources": ()},
        {"sources": ("\0",)},
        {"id": "\ud800"},
        {"confidence": -1},
        {"learned_at": datetime(2025, 1, 1)},
        {"learned_at": datetime.fromisoformat("0001-01-01T00:00+02:00")},
        {"subject": Subject(platform="telegram", id="\0")},
    ],
)
async def test_what_cannot_be_kept_is_refused_and_nothing_is_learned(store: Store, changes: dict[str, Any]) -> None:
    await said(store, "so")

    with pytest.raises(InvalidValue):
        await store.facts.learn([a_fact("fine"), a_fact(**{"id": "odd", **changes})])

    assert await store.facts.listed() == []


async def test_the_least_useful_go_when_there_are_too_many(store: Store) -> None:
    store.facts = few = SqlFacts(an_access(store, facts=at_most(3)))
    await taught(store, [a_fact(f"thing {n}", learned_at=NOON + timedelta(hours=n)) for n in range(3)])
    await taught(store, [a_fact("elsewhere", place=ELSEWHERE), a_fact("his", about=BOB)])

    learned = await taught(store, [a_fact("doubtful", confidence=0.1), a_fact("sure", learned_at=LATER)])

    assert [fact.text for fact in learned] == ["sure"]
    assert sorted(fact.text for fact in await few.listed(HER, GROUP)) == ["sure", "thing 1", "thing 2"]
    assert len(await few.listed()) == 5


async def test_making_room_in_one_thread_does_not_revive_what_was_superseded_in_another(store: Store) -> None:
    store.facts = few = SqlFacts(an_access(store, facts=at_most(2)))
    thread = replace(HERS, thread="1")
    await taught(store, [a_fact("lives in Lviv", key="home", place=HERS)])
    await taught(store, [a_fact("lives in Kyiv", key="home", place=thread, learned_at=LATER)])

    await taught(store, [a_fact(f"thing {n}", place=thread, learned_at=LATER + timedelta(hours=n)) for n in (1, 2)])

    assert [fact.text for fact in await few.listed()] == ["thing 1", "thing 2"]


async def test_there_are_a_hundred_of_a_person_in_a_chat(store: Store) -> None:
    await taught(store, [a_fact(f"thing {n}", learned_at=NOON + timedelta(hours=n)) for n in range(MAX_FACTS + 5)])

    assert [fact.text for fact in await store.facts.listed()] == [f"thing {n}" for n in range(5, MAX_FACTS + 5)]


async def said(store: Store, *texts: str, author: Author = ALICE, place: Place = GROUP) -> None:
    for number, text in enumerate(texts, 1):
        await store.inbox.receive(a_message(text, id=f"m{number}", author=author, place=place), at=NOON)


async def test_the_reasons_are_the_messages_that_still_stand(store: Store) -> None:
    await said(store, "I like tea", "tea!", "no more tea")
    await store.facts.learn([a_fact(sources=("m3", "m1", "gone"))])

    assert [message.id for message in await store.facts.why(a_fact().id)] == ["m1", "m3"]


async def test_a_deleted_source_takes_along_what_was_learned_from_it_alone(store: Store) -> None:
    await said(store, "I like tea and live in Kyiv", "tea!")
    await store.facts.learn([a_fact("likes tea", sources=("m1", "m2")), a_fact("lives in Kyiv", sources=("m1",))])

    await store.inbox.delete(GROUP, "m1", at=LATER)

    assert await store.facts.listed() == [a_fact("likes tea", sources=("m2",))]


async def test_what_was_superseded_by_something_retracted_holds_again(store: Store) -> None:
    await said(store, "Kyiv", "Lviv", "Odesa")
    facts = [
        a_fact(f"lives in {n}", key="home", sources=(f"m{n}",), learned_at=NOON + timedelta(hours=n)) for n in (1, 2, 3)
    ]
    await store.facts.learn(facts)
    assert await heard(store) == ["lives in 3"]

    await store.inbox.delete(GROUP, "m2", at=LATER)
    known = await store.facts.listed()
    await store.inbox.delete(GROUP, "m3", at=LATER)

    assert [(fact.text, fact.superseded_by, fact.held_until) for fact in known] == [
        ("lives in 1", facts[2].id, facts[2].learned_at),
        ("lives in 3", None, None),
    ]
    assert await store.facts.listed() == [facts[0]]


async def all_read(store: Store, *facts: Fact) -> None:
    await store.facts.learn(facts, reading=await store.cursors.next_range(GROUP))
    assert (await store.cursors.next_range(GROUP), await store.cursors.unread()) == (None, [])


async def test_an_edited_message_is_read_again_and_it_alone(store: Store) -> None:
    await said(store, "hi", "I live in Kyiv", "bye")
    await all_read(store, a_fact("lives in Kyiv", sources=("m2",)))

    await store.inbox.edit(a_message("I live in Lviv", id="m2"), at=LATER)

    assert await store.facts.listed() == []
    assert await store.cursors.unread() == [GROUP]
    assert await store.cursors.next_range(GROUP) == UnreadRange(place=GROUP, start=1, stop=2, changes=1)
    await all_read(store, a_fact("lives in Lviv", sources=("m2",)))
    assert await store.facts.listed() == [a_fact("lives in Lviv", sources=("m2",))]


async def test_what_was_edited_is_read_before_what_is_new_and_once(store: Store) -> None:
    await said(store, "one", "two", "three")
    await all_read(store)
    for message in (a_message("1", id="m1"), a_message("3", id="m3"), a_message("new", id="m4")):
        await store.inbox.edit(message, at=LATER)
        await store.inbox.receive(message, at=LATER)

    stretches = []
    while reading := await store.cursors.next_range(GROUP):
        stretches.append((reading.start, reading.stop))
        await store.facts.learn([], reading=reading)

    assert stretches == [(0, 1), (2, 3), (3, 4)]


async def test_an_edit_that_changes_no_words_or_comes_before_the_reading_is_not_read_again(store: Store) -> None:
    await said(store, "hi", "I live in Kyiv")
    await store.inbox.edit(a_message("hello", id="m1"), at=LATER)
    await all_read(store, a_fact("lives in Kyiv", sources=("m2",)))

    await store.inbox.edit(a_message("I live in Kyiv", id="m2", author=replace(ALICE, name="Al")), at=LATER)

    assert len(await store.facts.listed()) == 1
    assert await store.cursors.next_range(GROUP) is None


@pytest.mark.parametrize("edited", [False, True])
async def test_what_was_deleted_is_looked_at_once_more_and_teaches_nothing(store: Store, edited: bool) -> None:
    await said(store, "I live in Kyiv")
    await all_read(store, a_fact())
    if edited:
        await store.inbox.edit(a_message("I live in Lviv"), at=LATER)

    await store.inbox.edit(a_message("I live in Lviv", deleted=True), at=LATER)

    assert await store.facts.listed() == []
    await all_read(store, a_fact())
    assert await store.facts.listed() == []


async def test_of_two_edits_the_last_is_learned_and_a_reading_of_the_first_is_void(store: Store) -> None:
    await said(store, "hi")
    await all_read(store)
    readings = []
    for text in ("I live in Kyiv", "I live in Lviv"):
        await store.inbox.edit(a_message(text, id="m1"), at=LATER)
        readings.append(await store.cursors.next_range(GROUP))

    kept = [
        await store.facts.learn([a_fact(text)], reading=reading)
        for text, reading in zip(("in Kyiv", "in Lviv", "again"), [*readings, readings[-1]], strict=True)
    ]

    assert kept == [[], [a_fact("in Lviv")], []]
    assert await store.cursors.next_range(GROUP) is None


async def test_what_says_so_again_after_two_edits_is_a_source_again(store: Store) -> None:
    await said(store, "tea!", "tea!")
    first, second = a_fact(id="first"), a_fact(id="second", sources=("m2",))
    await all_read(store, first, second)
    for text in ("hm", "tea!"):
        await store.inbox.edit(a_message(text, id="m1"), at=LATER)

    await all_read(store, first)
    both = await store.facts.listed()
    await store.inbox.delete(GROUP, "m2", at=LATER)

    assert (both, await store.facts.listed()) == ([replace(first, sources=("m2", "m1"))], [first])


async def test_an_edit_of_who_is_blocked_teaches_nothing(store: Store) -> None:
    await said(store, "hi")
    await all_read(store)
    await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)
    await store.inbox.edit(a_message("I live in Kyiv", id="m1"), at=LATER)

    await all_read(store, a_fact("lives in Kyiv"))

    assert await store.facts.listed() == []


async def test_nothing_is_learned_from_what_changed_while_it_was_read(store: Store) -> None:
    await said(store, "I live in Kyiv", "ok")
    reading = await store.cursors.next_range(GROUP)
    await store.inbox.edit(a_message("I live in Lviv", id="m1"), at=LATER)

    assert await store.facts.learn([a_fact("lives in Kyiv")], reading=reading) == []
    assert await store.facts.listed() == []
    assert (await cursor(store, GROUP)) == 0


async def test_a_stretch_is_read_once(store: Store) -> None:
    await said(store, "one", "two", "three")
    reading = await store.cursors.next_range(GROUP, most=2)
    assert reading == UnreadRange(place=GROUP, start=0, stop=2, changes=0)

    await store.facts.learn([a_fact()], reading=reading)

    assert await store.facts.learn([a_fact("again")], reading=reading) == []
    assert await store.cursors.next_range(GROUP) == UnreadRange(place=GROUP, start=2, stop=3, changes=0)
    assert [fact.text for fact in await store.facts.listed()] == ["likes tea"]


async def test_marks_are_kept_apart(store: Store) -> None:
    await said(store, "one", "two")
    await set_cursor(store, GROUP, 2, "episodes")

    assert (await cursor(store, GROUP), await cursor(store, GROUP, "episodes")) == (
        0,
        2,
    )
    assert await store.cursors.unread() == [GROUP]
    assert await store.cursors.next_range(ELSEWHERE) is None


@pytest.mark.parametrize(("given", "kept"), [(-7, 0), (0, 0), (1, 1), (2, 2), (10**30, 2)])
async def test_a_mark_is_within_the_place(store: Store, given: int, kept: int) -> None:
    await said(store, "one", "two")

    await set_cursor(store, GROUP, given)
    await set_cursor(store, ELSEWHERE, given)

    assert (await cursor(store, GROUP), await cursor(store, ELSEWHERE)) == (kept, 0)
    assert await heard(store, limit=10**30) == []


async def test_nothing_is_learned_from_what_nobody_said(store: Store) -> None:
    await said(store, "hi")

    assert await store.facts.learn([a_fact(sources=("m9",)), a_fact("is tall", place=ELSEWHERE)]) == []
    assert await store.facts.learn([a_fact(sources=("m9", "m1"))]) == [a_fact(sources=("m1",))]


async def test_nothing_is_learned_of_who_was_forgotten_while_it_was_read(store: Store) -> None:
    await said(store, "I am shy", place=HERS)
    await said(store, "I am shy")
    readings = [await store.cursors.next_range(place) for place in (HERS, GROUP)]
    await store.forget(platform="telegram", author_id=ALICE.id)

    for place, reading in zip((HERS, GROUP), readings, strict=True):
        assert await store.facts.learn([a_fact("is shy", place=place)], reading=reading) == []
        assert await store.facts.learn([a_fact("is shy", place=place)]) == []


async def test_nothing_is_learned_from_deleted_messages_nor_about_or_from_the_blocked(store: Store) -> None:
    await said(store, "I like tea", "really")
    await store.inbox.receive(a_message("Alice likes gin", id="his", author=BOB), at=NOON)
    await store.inbox.delete(GROUP, "m1", at=NOON)
    await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)

    await store.facts.learn(
        [
            a_fact("likes tea", sources=("m1",)),
            a_fact("drinks", sources=("m1", "m2")),
            a_fact("likes gin", sources=("his",)),
            a_fact("of Bob", about=BOB, sources=("m2",)),
        ]
    )

    assert await store.facts.listed() == [a_fact("drinks", sources=("m2",))]


async def test_the_blocked_are_neither_told_nor_told_of(store: Store) -> None:
    await taught(store, [a_fact("of Alice"), a_fact("of Bob", about=BOB, sources=("m2",))])
    await store.facts.summarise(a_summary())
    await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)

    assert (await heard(store), await heard(store, about=HIM, asked_by=HER)) == ([], [])
    assert await heard(store, asked_by=HIM) == []
    assert await heard(store, about=HIM) == ["of Bob"]
    assert await store.facts.summary(HER, place=GROUP) is None


async def test_what_she_says_of_him_in_private_stays_between_her_and_us(store: Store) -> None:
    await said(store, "Bob snores", place=HERS)
    await said(store, "hi", author=BOB, place=HIS)
    await store.facts.learn([a_fact("snores", about=BOB, place=HERS), a_fact("knows Bob", place=HERS)])

    assert {fact.text: fact.scope for fact in await store.facts.listed()} == {"snores": "chat", "knows Bob": "direct"}
    assert await heard(store, HIS, HIM) == []
    assert await heard(store, HERS, HIM, asked_by=HER) == ["snores"]
    assert await heard(store, HERS) == ["knows Bob"]


async def test_facts_are_forgotten_with_what_they_superseded(store: Store) -> None:
    kyiv, lviv = a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", learned_at=LATER)
    await taught(store, [kyiv, lviv, a_fact("likes tea")])

    assert await store.facts.forget([lviv.id, "nothing", lviv.id]) == 2
    assert await store.facts.listed() == [a_fact("likes tea")]


async def test_forgotten_facts_leave_the_file_while_it_is_in_use(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await taught(store, [a_fact("hides a marmalade jar", id="secret"), a_fact("likes tea")])
        await store.facts.forget(["secret"])

        assert not files_hold(tmp_path, "marmalade")
        assert await heard(store) == ["likes tea"]


def a_summary(**changes: Any) -> Summary:
    fields: dict[str, Any] = {
        "subject": HER,
        "place": GROUP,
        "text": "A tea drinker.",
        "facts": 1,
        "digest": facts_digest([a_fact()]),
        "made_at": NOON,
    }
    return Summary(**fields | changes)


async def test_a_summary_is_told_where_it_was_made_for_and_replaced_by_the_next(store: Store) -> None:
    await store.facts.summarise(a_summary())
    await store.facts.summarise(a_summary(text="Newer.", facts=2, made_at=LATER))

    assert await store.facts.summary(HER, place=GROUP) == a_summary(text="Newer.", facts=2, made_at=LATER)
    assert await store.facts.summary(HER, place=DIRECT) is None
    assert await store.facts.summary(HER, place=replace(GROUP, kind="direct")) is None
    assert await store.facts.summary(HIM, place=GROUP) is None


async def test_a_summary_goes_with_any_fact_it_may_be_made_of(store: Store) -> None:
    await said(store, "one", "two")
    await store.facts.learn([a_fact("likes tea", sources=("m1", "m2")), a_fact("has a cat")])
    for undo in (store.facts.forget([a_fact("has a cat").id]), store.inbox.delete(GROUP, "m2", at=LATER)):
        await store.facts.summarise(a_summary())
        await undo

        assert await store.facts.summary(HER, place=GROUP) is None


async def test_a_summary_goes_with_any_fact_that_is_superseded(store: Store) -> None:
    kyiv, lviv = a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", learned_at=LATER)
    await taught(store, [kyiv, a_fact("likes tea")])
    await store.facts.summarise(a_summary(), made_of=[kyiv.id])
    await taught(store, [a_fact("has a cat")])
    assert await store.facts.summary(HER, place=GROUP) == a_summary()

    await taught(store, [lviv])
    assert await store.facts.summary(HER, place=GROUP) is None
    await store.facts.summarise(a_summary(), made_of=[kyiv.id, lviv.id])
    assert await store.facts.summary(HER, place=GROUP) is None


async def test_a_summary_is_told_until_a_fact_no_longer_holds(store: Store) -> None:
    await taught(store, [a_fact("is in Rome", held_until=LATER)])
    for made_at, told in ((NOON, False), (LATER, True)):
        await store.facts.summarise(replace(a_summary(), made_at=made_at))

        assert bool(await store.facts.summary(HER, place=GROUP)) is told


async def test_an_episode_goes_with_a_deleted_message_and_the_newest_is_read_again(store: Store) -> None:
    for message in a_talk(9):
        await store.inbox.receive(message, at=NOON)
    for number, name in enumerate("abc"):
        seen = await store.episodes.cursor(GROUP)
        assert seen is not None
        episode = Episode(id=name, place=GROUP, start=3 * number, stop=3 * number + 3, topic="t", summary="s")
        assert await store.episodes.add(episode, seen=seen)

    await store.inbox.delete(GROUP, "1", at=NOON)
    assert await cursor(store, GROUP, "episodes") == 9
    await store.inbox.delete(GROUP, "6", at=NOON)
    assert await cursor(store, GROUP, "episodes") == 6

    assert await on(store, read, "episodes", "episode_id") == [("b",)]


async def test_the_background_is_what_may_be_heard(store: Store) -> None:
    await taught(
        store,
        [
            a_fact("lives in Kyiv", key="home", scope="everywhere", id="kyiv"),
            a_fact("lives in Lviv", key="home", place=DIRECT, learned_at=LATER),
            a_fact("plays chess", key="plays:chess", place=DIRECT),
            a_fact("plays go", key="plays:go", place=DIRECT),
            a_fact("has a cat", place=DIRECT),
        ],
    )
    await store.facts.summarise(a_summary(place=DIRECT))

    assert await KnownFacts(store.facts).background(a_message(id="now", place=DIRECT)) == Background(
        memories=("has a cat",),
        key_facts={"Home": "lives in Lviv", "Plays": "plays go; plays chess"},
        summary="A tea drinker.",
        fact_ids={
            "has a cat": ("u123 7 has a cat",),
            "Home": ("u123 7 lives in Lviv",),
            "Plays": ("u123 7 plays go", "u123 7 plays chess"),
        },
    )
    assert await KnownFacts(store.facts).background(a_message(id="now", place=GROUP)) == Background(
        key_facts={"Home": "lives in Kyiv"}, fact_ids={"Home": ("kyiv",)}
    )
    assert await KnownFacts(store.facts).background(a_message(id="now", place=DIRECT, author=BOB)) == Background()


async def test_what_somebody_said_in_a_group_is_known_in_their_direct_chat_and_nowhere_else(store: Store) -> None:
    for name, author, origin in (("a", ALICE, None), ("b", BOB, None), ("f", ALICE, BOB)):
        await store.inbox.receive(a_message(id=name, author=author, forwarded_from=origin), at=NOON)
    await store.inbox.receive(a_message(id="d", place=DIRECT), at=NOON)
    sources = {"own": "a", "hearsay": "b", "both": "ab", "forwarded": "f"}
    await store.facts.learn([a_fact(text, sources=tuple(by)) for text, by in sources.items()])
    await store.facts.learn([a_fact("private", place=DIRECT, sources=("d",))])
    elsewhere, his = replace(GROUP, id="-2"), replace(DIRECT, id=BOB.id)

    async def known(place: Place, asked_by: Subject | None = HER) -> set[str]:
        return {fact.text for fact in await store.facts.about(HER, place=place, asked_by=asked_by)}

    assert await known(DIRECT) == await known(DIRECT, None) == {"own", "private"}
    assert await known(GROUP) == await known(GROUP, HIM) == await known(GROUP, None) == set(sources)
    assert await known(elsewhere) == await known(his, HIM) == await known(his, None) == set()


PEOPLE = [Author(id=f"p{number}", name=f"Person{number}") for number in range(5)]
PLACES = [
    *(Place(platform="telegram", id=f"-{number}", kind="group") for number in range(3)),
    Place(platform="telegram", id="-1", kind="group", thread="t"),
    Place(platform="telegram", id="-9", kind="channel"),
    *(Place(platform="telegram", id=person.id, kind="direct") for person in PEOPLE),
    *(Place(platform="telegram", id=person.id, kind="direct", thread="t") for person in PEOPLE[:2]),
    Place(platform="discord", id="-0", kind="group"),
    Place(platform="discord", id="p0", kind="direct"),
    Place(platform="telegram", id="p0", kind="group"),  # which is a direct chat above
]
PROBES = size(2_000, full=max(10_000, EXAMPLES))
SEEDS, ROUNDS = 4, 20


def any_fact(chance: random.Random, number: int) -> Fact:
    place = chance.choice(PLACES)
    scopes = ["chat", "direct"] if place.kind == "direct" else ["chat", "direct", "everywhere"]
    return a_fact(
        f"secret{number} of {place.kind}" if chance.random() < 0.7 else f"lives in town{number % 7}",
        id=str(number),
        about=chance.choice(PEOPLE),
        place=place,
        scope=chance.choice(scopes),
        key=chance.choice(["", "home", "likes"]),
        confidence=chance.random(),
        sources=(f"m{number % 11}",),
        learned_at=NOON + timedelta(minutes=chance.randrange(1000)),
    )


def author_of(place: Place, number: int) -> Author:
    whose = [person for person in PEOPLE if person.id == place.id] or PEOPLE
    return whose[number % len(whose)]


def is_own(fact: Fact) -> bool:
    return all(author_of(fact.place, int(source[1:])).id == fact.subject.id for source in fact.sources)


async def said_everywhere(store: Store) -> None:
    """Eleven messages in each place, by the person whose it is or by all of them in turn."""
    for place in PLACES:
        for number in range(11):
            message = a_message("x", id=f"m{number}", place=place, author=author_of(place, number))
            await store.inbox.receive(message, at=NOON)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_nobody_hears_what_is_not_for_them(store: Store, seed: int) -> None:
    """`may_hear` is the oracle; what was said in a direct chat is in no answer for a group in any case."""
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    few = SqlFacts(an_access(store, facts=at_most(20)))
    await said_everywhere(store)
    told = 0
    for round_ in range(ROUNDS):
        await few.learn([any_fact(chance, round_ * 20 + number) for number in range(20)])
        await undone(store, chance)
        known = await few.listed()
        for _ in range(PROBES // (SEEDS * ROUNDS)):
            told += await probe(few, known, chance)
    assert told > PROBES // SEEDS  # the probes do find something


async def undone(store: Store, chance: random.Random) -> None:
    """Something is deleted, edited or forgotten."""
    place, number = chance.choice(PLACES), chance.randrange(11)
    if chance.random() < 0.3:
        await store.inbox.delete(place, f"m{number}", at=LATER)
    elif chance.random() < 0.5:
        message = a_message(f"y{chance.random()}", id=f"m{number}", place=place, author=author_of(place, number))
        await store.inbox.edit(message, at=LATER)
    elif known := await store.facts.listed():
        await store.facts.forget([chance.choice(known).id])


async def probe(facts: SqlFacts, known: Sequence[Fact], chance: random.Random) -> int:
    """How many facts somebody at random hears about somebody at random, none of which they must not."""
    place, about, listener = chance.choice(PLACES), chance.choice(PEOPLE), chance.choice(PEOPLE)
    listener = about if chance.random() < 0.6 else listener
    whom, ears = a_subject(about, place.platform), a_subject(listener, place.platform)

    found = await facts.about(whom, place=place, asked_by=ears, limit=10_000)

    expected = [
        fact
        for fact in known
        if (fact.subject.platform, fact.subject.id) == (whom.platform, whom.id)
        and fact.superseded_by is None
        and may_hear(fact, place, ears, own=is_own(fact))
    ]
    assert sorted(fact.id for fact in found) == sorted(fact.id for fact in expected)
    if place.kind != "direct":
        assert not [fact for fact in found if fact.place.kind == "direct"]
    if whom != ears:
        assert not [fact for fact in found if fact.place != place]
    return len(found)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(3))
async def test_no_byte_is_left_of_what_was_known_of_a_forgotten_person(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    async with Store.open(tmp_path / "s.db", durable=False) as store:
        await said_everywhere(store)
        for start in range(0, 300, 30):
            await store.facts.learn(
                [replace(fact, text=f"{fact.text} word{fact.subject.id}x{fact.id}x") for fact in learned(chance, start)]
            )
        left = [fact.text for fact in await store.facts.listed() if fact.subject.id != "p0"]
        assert files_hold(tmp_path, "wordp0x")

        await store.forget(platform="telegram", author_id="p0")
        await store.forget(platform="discord", author_id="p0")
        await store.vacuum()

        assert not files_hold(tmp_path, "wordp0x")
        assert not files_hold(tmp_path, "Person0")
        assert await store.facts.listed(a_subject(PEOPLE[0])) == []
        assert {fact.text for fact in await store.facts.listed()} <= set(left)
        assert await store.check() == []


def learned(chance: random.Random, start: int) -> list[Fact]:
    return [any_fact(chance, number) for number in range(start, start + 30)]


async def test_a_photo_of_a_source_is_no_reason_to_stumble(store: Store) -> None:
    await store.inbox.receive(a_message("", parts=(a_photo(),)), at=NOON)
    await store.facts.learn([a_fact()])

    assert [message.parts for message in await store.facts.why(a_fact().id)] == [(a_photo(),)]


async def test_what_the_agent_says_is_no_source_of_facts_about_people(store: Store) -> None:
    await add_own(store, a_message("You like tea!", author=GRYAG), [])
    await store.inbox.receive(a_message("yes", id="m2"), at=NOON)
    await store.facts.learn([a_fact("likes tea"), a_fact("agrees", sources=("m1", "m2")), a_fact("talks", about=GRYAG)])

    assert {fact.text: fact.sources for fact in await store.facts.listed()} == {"agrees": ("m2",), "talks": ("m1",)}


async def test_of_what_is_said_again_and_again_the_newest_sources_are_kept(store: Store) -> None:
    for number in range(100):
        await taught(store, [a_fact(id=str(number), sources=(f"m{number}",))])

    (fact,) = await store.facts.listed()
    assert (fact.id, fact.sources) == ("0", tuple(f"m{number}" for number in range(100 - MAX_SOURCES, 100)))

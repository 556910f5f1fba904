"""What a person said in groups is found in that person's direct chat: their own words, and nobody else's."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory.searching import Letters, a_search, a_store, hear, index
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message, a_photo, a_quote
from tertulia.context import sources
from tertulia.context.gather import gather
from tertulia.engine.memory.recall import EchoFilter, KnownFacts, MemorySources, MessageRecall
from tertulia.memory.embeddings import Embedder
from tertulia.messages import Author, Message, Place, Quote
from tertulia.store import Store

LETTERS = Letters()
CAROL = Author(id="u9", name="Carol")
PEOPLE = (ALICE, BOB, CAROL)
TOPIC, OTHER = replace(GROUP, thread="7"), replace(GROUP, id="-5", title="Others")
GROUPS = (GROUP, TOPIC, OTHER)


def letters(name: str) -> Embedder | None:
    return LETTERS if name in ("", LETTERS.id) else None


def chat_of(person: Author) -> Place:
    return replace(DIRECT, id=person.id)


async def found(store: Store, query: str, *, place: Place, author: Author) -> list[Message]:
    search = a_search(store, embedders=letters)
    results = await search.find(query, place=place, author=author, limit=50)
    assert all(one.message.place.kind == place.kind or not (one.before or one.after) for one in results)
    return [one.message for one in results]


def texts(messages: Sequence[Message]) -> set[str]:
    return {message.text for message in messages}


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with a_store() as opened:
        yield opened


async def test_ones_own_words_in_groups_are_found_in_ones_direct_chat(store: Store) -> None:
    quote = a_quote("a trombone, says Bob", author=BOB)
    mine = a_message("my xylophone is blue", id="1", reply_to=quote)
    await hear(
        store,
        mine,
        a_message("his xylophone is red", id="2", author=BOB),
        a_message("forwarded xylophone", id="3", forwarded_from=BOB),
        a_message("a xylophone of mine in the other group", id="1", place=OTHER),
        a_message("my secret xylophone", id="1", place=DIRECT),
        a_message("a xylophone? hello", id="1", place=chat_of(BOB), author=BOB),
    )
    await index(store, letters)

    here = await found(store, "xylophone", place=DIRECT, author=ALICE)
    assert texts(here) == {
        "my xylophone is blue", "a xylophone of mine in the other group", "my secret xylophone"
    }  # fmt: skip
    assert next(one for one in here if one.text == mine.text) == replace(mine, reply_to=None)
    assert await found(store, "trombone", place=DIRECT, author=ALICE) == []
    assert texts(await found(store, "xylophone", place=chat_of(BOB), author=BOB)) == {
        "his xylophone is red", "a xylophone? hello"
    }  # fmt: skip
    assert texts(await found(store, "xylophone", place=GROUP, author=ALICE)) == {
        "my xylophone is blue", "his xylophone is red", "forwarded xylophone"
    }  # fmt: skip
    assert texts(await found(store, "xylophone", place=replace(DIRECT, platform="discord"), author=ALICE)) == set()


async def test_they_are_found_before_anything_was_said_there_and_by_their_meaning(store: Store) -> None:
    await hear(store, *[a_message(f"the sea {at}", id=str(at)) for at in range(4)], a_message("xylophone", id="9"))
    await index(store, letters)

    view = await store.index_reader.own_view(DIRECT, ALICE)
    assert view is not None
    look = await a_search(store, embedders=letters).look_up("Alice: xylophone", view)
    assert look is not None
    assert look.cosines is not None
    assert look.cosines.argmax() == 4
    assert (await found(store, "a xylophone", place=DIRECT, author=ALICE))[0].text == "xylophone"


@pytest.mark.parametrize("change", ["deleted", "edited", "cleared", "blocked", "direct", "forgotten"])
async def test_what_is_not_recalled_in_its_group_is_not_recalled_in_a_direct_chat(store: Store, change: str) -> None:
    said = a_message("my xylophone is blue", id="1")
    await hear(store, said, a_message("a xylophone?", id="1", place=DIRECT))
    await index(store, letters)
    search = a_search(store, embedders=letters)
    before = await search.find("xylophone", place=DIRECT, author=ALICE)
    match change:
        case "deleted":
            await store.inbox.delete(GROUP, "1", at=NOON)
        case "edited":
            await store.inbox.edit(replace(said, parts=a_message("never mind").parts), at=NOON)
        case "cleared":
            await store.place_settings.clear(GROUP, 1, at=NOON)
        case "blocked":
            await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)
        case "direct":
            await hear(store, a_message("just us", id="2", place=replace(GROUP, kind="direct")))
        case _:
            await store.forget(platform="telegram", author_id=ALICE.id)
    await index(store, letters)

    after = await search.find("xylophone", place=DIRECT, author=ALICE)
    assert said.text in texts([one.message for one in before])
    assert said.text not in texts([one.message for one in after])


async def test_a_prompt_says_that_it_was_in_a_group_and_what_repeats_it_is_an_echo(store: Store) -> None:
    await hear(store, a_message("my xylophone is blue", id="new"))
    await index(store, letters)
    recall = MessageRecall(store.index_reader, embedders=letters, likely=0.0, now=lambda: NOON)
    knowledge = MemorySources(KnownFacts(store.facts), search=recall)
    target = a_message("which xylophone is mine?", id="new", place=DIRECT)

    context = await gather(target, [sources.relevant(knowledge)], NOON)
    echoes = EchoFilter(store.log)
    echoes.add(context)

    [hit] = context.relevant
    assert (hit.text, hit.place) == ("Alice, in a group (2025-01-15): my xylophone is blue", GROUP)
    assert [one.text for one in (await echoes.recalled_in(DIRECT)).messages] == ["my xylophone is blue"]


WORDS = st.lists(st.sampled_from("sea sun dog cat kayak harbour".split()), min_size=1, max_size=3).map(" ".join)
SAID = st.tuples(
    st.sampled_from(PEOPLE), st.sampled_from((*GROUPS, "direct")), WORDS, st.sampled_from(["", "quote", "forward"])
)


@given(st.lists(SAID, min_size=1, max_size=14))
@settings(deadline=None)
async def test_in_a_direct_chat_nobodys_words_but_ones_own_are_found_and_in_groups_nothing_private(
    said: list[tuple[Author, Place | str, str, str]],
) -> None:
    async with a_store() as store:
        for at, (author, where, words, how) in enumerate(said):
            place = where if isinstance(where, Place) else chat_of(author)
            other = PEOPLE[PEOPLE.index(author) - 1]
            quoted = Quote(message_id="q", author=other, parts=a_message(f"{words} quoted").parts)
            message = a_message(f"{words} no{at} by{author.id}", id=str(at), place=place, author=author)
            if how == "quote":
                message = replace(message, reply_to=quoted)
            if how == "forward":
                message = replace(message, forwarded_from=other, parts=a_message(f"{words} no{at} by{other.id}").parts)
            await hear(store, replace(message, sent_at=NOON + at * timedelta(minutes=1)))
        await index(store, letters)

        for person in PEOPLE:
            chat = chat_of(person)
            hits = await found(store, "sea sun dog cat kayak harbour quoted", place=chat, author=person)
            own = [f"{words} no{at} by{person.id}" for at, (by, _, words, how) in enumerate(said) if by == person]
            private = [one for one in hits if one.place == chat]
            assert [one for one in hits if one.author.id != person.id] == []
            assert texts([one for one in hits if one.place != chat]) <= set(own)
            assert not any(one.reply_to or one.forwarded_from for one in hits if one not in private)
            spoken = [one for one in own if "forward" not in said[int(one.split(" no")[1].split(" ")[0])][3]]
            assert set(spoken) <= texts(hits)
            for group in GROUPS:
                there = await found(store, "sea sun dog cat kayak harbour", place=group, author=person)
                assert {one.place.key for one in there} <= {group.key}


async def test_a_photo_that_one_posted_in_a_group_is_found_by_what_it_shows(store: Store) -> None:
    await hear(store, a_message(id="1", parts=(a_photo(),)))
    await store.descriptions.describe("p1", "a xylophone", by="m", at=NOON)
    await index(store, letters)

    [message] = await found(store, "xylophone", place=DIRECT, author=ALICE)
    assert message.parts == (replace(a_photo(), rendered_text="a xylophone"),)

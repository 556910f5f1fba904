"""The index in the file: what changes is found as it is now, what is gone is gone byte by byte."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory.searching import Letters, a_search, found, hear, index, no_embedder, talk
from people import ALICE, BOB, GROUP, NOON, a_message, a_photo
from store.builders import an_access, files_hold
from stored_rows import count, on, read, remove
from tertulia.memory.retrieval.index import index_entry
from tertulia.memory.retrieval.terms import terms
from tertulia.messages import Author, Place
from tertulia.parts import Text
from tertulia.store import Store
from tertulia.store.identities import place_key
from tertulia.store.index_reader import SqlIndexReader

HER = Author(id="u777001", name="Xanthippe")
HOME = Place(platform="telegram", id="u777001", kind="direct")
LETTERS = Letters()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with Store.open(path) as opened:
        yield opened


async def counts(store: Store, place: Place = GROUP) -> tuple[int, int, int]:
    """Postings, messages and vectors that are kept of a place."""

    row = [row for (row,) in await on(store, read, "places", "id", place_key=place_key(place))]
    terms, messages, vectors = [
        await on(store, count, f"search_{name}", place=row) for name in ("terms", "messages", "vectors")
    ]
    return terms, messages, vectors


async def test_an_edited_message_is_found_by_what_it_says_now(store: Store) -> None:
    await hear(store, *talk("the sea", "xylophone lessons", "the sun"))
    await index(store, lambda _: LETTERS)
    search = a_search(store, embedders=lambda _: LETTERS)
    before = await search.find("xylophone", place=GROUP, author=ALICE, limit=1)

    await store.inbox.edit(a_message("trumpet concert", id="1", author=BOB), at=NOON)
    gone = await search.find("xylophone", place=GROUP, author=ALICE, limit=3)
    assert await counts(store) == (2, 2, 2)
    await index(store)
    after = await search.find("trumpets", place=GROUP, author=ALICE, limit=3)

    assert (before[0].message.id, before[0].why) == ("1", "it says xylophone")
    assert (after[0].message.id, after[0].why) == ("1", "it says trumpets")
    assert not any("it says" in hit.why for hit in gone)
    assert await counts(store) == (4, 3, 2)
    await index(store, lambda _: LETTERS)
    assert await counts(store) == (4, 3, 3)


async def test_a_deleted_message_is_found_no_more(store: Store) -> None:
    await hear(store, *talk("the sea", "xylophone lessons", "the sun"))
    await index(store, lambda _: LETTERS)
    search = a_search(store)
    await search.find("xylophone", place=GROUP, author=ALICE, limit=1)

    await store.inbox.delete(GROUP, "1", at=NOON)

    assert await search.find("xylophone", place=GROUP, author=ALICE, limit=3) == []
    assert await counts(store) == (2, 2, 2)


async def test_nothing_of_a_forgotten_person_is_left_in_the_index(store: Store, path: Path) -> None:
    words = "quetzalcoatl", "zugzwang"
    await hear(store, *talk(f"i like {words[0]}", "me too", authors=[HER, BOB]))
    await hear(store, *talk(f"at home {words[1]}", place=HOME, authors=[HER]))
    await hear(store, a_message("", id="7", author=HER, parts=(a_photo(rendered_text="a yttrium bar"),)))
    await index(store, lambda _: LETTERS)
    assert all(files_hold(path.parent, word) for word in (*words, "yttrium"))

    await store.forget(platform="telegram", author_id=HER.id)

    for word in (*words, "quetzalcoatl"[:9], "yttrium", HER.name, "xanthipp", HER.id):
        assert not files_hold(path.parent, word), word
    assert await counts(store) == (0, 1, 1)
    assert await counts(store, HOME) == (0, 0, 0)
    assert await found(store, words[0], author=BOB) == []
    assert await store.check() == []


async def test_what_was_said_in_a_direct_chat_is_not_found_where_it_has_become_a_group(store: Store) -> None:
    group, home = replace(HOME, kind="group"), HOME
    search = a_search(store, embedders=lambda _: LETTERS)

    async def finds(place: Place, author: Author) -> list[str]:
        hits = await search.find("xylophone lessons", place=place, author=author, limit=9)
        return [one.id for hit in hits for one in (hit.message, *hit.before, *hit.after)]

    await hear(store, *talk("xylophone lessons", "the sea", place=home, authors=[HER]))
    await index(store, lambda _: LETTERS)
    assert set(await finds(home, HER)) == {"0", "1"}
    await hear(store, *talk("xylophone again", place=home, start=2, authors=[HER]))  # it is not indexed yet
    assert await finds(group, HER) == []

    await hear(store, *talk("no xylophone", "the sun", place=group, start=3, authors=[HER, BOB]))
    await index(store, lambda _: LETTERS)
    assert set(await finds(group, HER)) == set(await finds(group, BOB)) == {"3", "4"}
    assert await finds(home, HER) == []
    assert await finds(home, ALICE) == []


async def test_of_a_word_that_is_everywhere_the_newest_are_looked_at(store: Store) -> None:
    await hear(store, *talk(*["sea and seas"] * 6, *["seaside"] * 2))
    await index(store)
    seen = await store.index_reader.view(GROUP, ALICE)
    assert seen is not None

    whole, alike = await SqlIndexReader(an_access(store), most=3).postings(seen, [("sea", True), ("sea", False)])

    assert [number for _, number, _ in whole] == [5, 4, 3]
    assert [number for _, number, _ in alike] == [7, 6, 5]


async def test_what_changes_while_it_is_read_is_not_kept(store: Store) -> None:
    await hear(store, *talk("the sea", "xylophone lessons"))
    stretch = await store.index_writer.unindexed(GROUP, most=9)
    assert stretch is not None
    await store.inbox.edit(a_message("never mind", id="1", author=BOB), at=NOON)

    assert not await store.index_writer.add(stretch, [index_entry(one) for one in stretch.said])
    await index(store)
    assert await counts(store) == (3, 2, 0)
    assert await found(store, "xylophone") == []


async def test_vectors_of_what_was_said_before_an_edit_are_not_kept(store: Store) -> None:
    await hear(store, *talk("the sea", "xylophone lessons", "the sun"))
    await index(store)
    stretch = await store.index_writer.unembedded(GROUP, "letters", most=9)
    assert stretch is not None
    await store.inbox.edit(a_message("never mind", id="1", author=BOB), at=NOON)

    await store.index_writer.embed(stretch, "letters", {one.number: b"1234" for one in stretch.said})

    await index(store)
    again = await store.index_writer.unembedded(GROUP, "letters", most=9)
    assert again is not None
    assert [(one.number, one.whole) for one in again.said] == [(1, "Bob: never mind")]


async def test_what_a_photo_shows_is_indexed_also_if_it_is_told_while_its_message_is_read(store: Store) -> None:
    await hear(store, a_message(id="0", parts=(a_photo(),)))
    stretch = await store.index_writer.unindexed(GROUP, most=9)
    assert stretch is not None
    await store.descriptions.describe("p1", "a xylophone", by="m", at=NOON)

    assert not await store.index_writer.add(stretch, [index_entry(one) for one in stretch.said])
    await index(store)
    assert await found(store, "xylophone") == ["0"]


async def test_no_vector_is_missing_or_old_after_photos_were_described_while_messages_were_embedded(
    store: Store,
) -> None:
    photos = [a_message(id=str(at), parts=(a_photo(unique_id=f"p{at}"),)) for at in (1, 2)]
    await hear(store, *talk("the sea"), *photos)
    await index(store, lambda _: LETTERS)
    await store.inbox.edit(a_message("the sun", id="0", author=ALICE), at=NOON)  # so all is looked at again
    await store.descriptions.describe("p2", "a cat", by="m", at=NOON)
    await index(store)
    stretch = await store.index_writer.unembedded(GROUP, "letters", most=9)
    assert stretch is not None
    assert [one.number for one in stretch.said] == [0, 2]
    await store.descriptions.describe("p1", "a dog", by="m", at=NOON)  # takes a vector away
    await store.descriptions.describe("p2", "a black cat", by="m", at=NOON)  # changes what is being embedded

    await store.index_writer.embed(stretch, "letters", {one.number: b"1234" for one in stretch.said})

    await index(store)
    again = await store.index_writer.unembedded(GROUP, "letters", most=9)
    assert again is not None
    assert [(one.number, one.shown) for one in again.said] == [(1, "a dog"), (2, "a black cat")]


async def test_vectors_of_a_place_that_was_forgotten_meanwhile_are_not_kept(store: Store) -> None:
    await hear(store, *talk("the sea", place=HOME, authors=[HER]))
    stretch = await store.index_writer.unindexed(HOME, most=9)
    await index(store)
    vectors = await store.index_writer.unembedded(HOME, "letters", most=9)
    assert stretch is not None
    assert vectors is not None

    await store.forget(platform="telegram", author_id=HER.id)
    await store.index_writer.embed(vectors, "letters", {0: b"1234"})

    assert not await store.index_writer.add(stretch, [index_entry(one) for one in stretch.said])
    assert await counts(store, HOME) == (0, 0, 0)
    assert (await store.index_writer.progress("letters")).embedded == 0


UNSEEN = ["pea\u200bnuts?\u200f", "see you to\u00admorrow", "glad \u2764\ufe0f", "peanuts"]


async def test_what_is_said_or_asked_with_characters_that_nobody_sees_is_found(store: Store) -> None:
    await hear(store, *talk(*UNSEEN))
    await index(store)

    assert (await found(store, "peanuts"))[:2] == (await found(store, "pea\u200bnuts"))[:2] == ["0", "3"]


WORDS = st.lists(st.sampled_from("sea sun dog cat море книжка книжку 北京 2024 yesterday".split()), max_size=5).map(
    " ".join
)
NUMBERS = st.integers(0, 5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), WORDS),
        st.tuples(st.just("edit"), st.tuples(NUMBERS, WORDS)),
        st.tuples(st.just("delete"), NUMBERS),
        st.tuples(st.just("index"), st.booleans()),
        st.tuples(st.just("find"), WORDS),
    ),
    max_size=12,
)


@given(STEPS)
async def test_after_any_changes_the_index_is_that_of_what_is_said_now(steps: list[tuple[str, Any]]) -> None:
    async with Store.open(":memory:") as store:
        kept = a_search(store, embedders=lambda _: LETTERS)
        for at, (what, value) in enumerate(steps):
            match what:
                case "say":
                    await hear(store, *talk(value, start=await store.log.count(GROUP)))
                case "edit":
                    number, text = value
                    author = (ALICE, BOB)[number % 2]
                    edited = a_message(text, id=str(number), author=author)
                    await store.inbox.edit(edited, at=NOON + timedelta(seconds=at))
                case "delete":
                    await store.inbox.delete(GROUP, str(value), at=NOON)
                case "index":
                    await index(store, (lambda _: LETTERS) if value else no_embedder)
                case _:
                    await kept.find(value, place=GROUP, author=ALICE, limit=9)
        await index(store, lambda _: LETTERS)

        said = [one for one in await store.log.read(GROUP, 0, 99) if not one.deleted]
        held = {one.id: set(terms(part.text)) for one in said for part in one.parts if isinstance(part, Text)}
        wanted = set(terms("sea книжки"))
        fresh = a_search(store, embedders=lambda _: LETTERS)
        asked: dict[str, Any] = {"place": GROUP, "author": ALICE, "limit": 20}
        found_now = await fresh.find("sea книжки", **asked)

        assert await counts(store) == (sum(map(len, held.values())), len(said), len(said))
        ids = {hit.message.id for hit in found_now}
        assert {id for id, those in held.items() if those & wanted} <= ids <= {one.id for one in said}
        assert await kept.find("sea книжки", **asked) == found_now


async def test_an_index_that_is_made_anew_finds_nothing_until_then_and_the_same_after(store: Store) -> None:
    await hear(store, *talk("the sea", "xylophone", "the sun"))
    await index(store, lambda _: LETTERS)
    search = a_search(store, embedders=lambda _: LETTERS)
    before = await search.find("the sun", place=GROUP, author=ALICE)
    await on(store, remove, "search_messages", number=1)

    await store.index_writer.rebuild_broken()
    between = await search.find("the sun", place=GROUP, author=ALICE)
    await index(store, lambda _: LETTERS)

    assert (between, await search.find("the sun", place=GROUP, author=ALICE)) == ([], before)

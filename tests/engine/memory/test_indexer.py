"""What was said is indexed in the background, by the next process too; another embedder begins anew."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from threading import get_ident

import pytest

from memory.searching import FILL, Letters, a_search, a_store, found, hear, no_embedder, talk
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message
from stored_rows import on, remove
from tertulia.engine.memory import indexer
from tertulia.engine.memory.indexer import BATCH, CAUGHT_UP, EMBEDDED, LATE, Indexer
from tertulia.errors import Overloaded
from tertulia.memory.embeddings import Embedder, Embedders
from tertulia.memory.retrieval.features import Floats
from tertulia.memory.retrieval.index import index_entry
from tertulia.memory.values import IndexEntry, IndexProgress, MessageText
from tertulia.store import Store


class Stuck(Letters):
    """Embeds a first batch, and waits for ever in the second."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        if self.texts:
            self.reached.set()
            await asyncio.Event().wait()
        return await super().embed(texts, asking=asking)


class Flaky(Letters):
    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        if self.errors:
            raise self.errors.pop(0)
        return await super().embed(texts, asking=asking)


def only(*embedders: Letters) -> Embedders:
    """Those that can be used, by name; the first unless somebody chose."""

    def named(name: str) -> Embedder | None:
        return next((one for one in embedders if name in ("", one.id)), None)

    return named


def an_indexer(store: Store, embedders: Embedders = no_embedder, **changes: object) -> Indexer:
    return Indexer(store.index_writer, embedders=embedders, **changes)  # type: ignore[arg-type]


async def finish(indexer: Indexer) -> None:
    await indexer.start()
    await indexer.done()


async def test_what_was_said_is_indexed_soon_and_once() -> None:
    letters = Letters()
    async with a_store() as store:
        indexer = an_indexer(store, only(letters))
        await hear(store, *talk(*FILL))
        indexer.wake(GROUP)
        assert indexer.busy
        await indexer.done()
        await finish(indexer)

        assert not indexer.busy
        assert await store.index_writer.progress("letters") == IndexProgress(messages=7, indexed=7, embedded=7)
        assert letters.texts == [f"{('Alice', 'Bob')[at % 2]}: {text}" for at, text in enumerate(FILL)]
        assert (await found(store, "weather"))[0] == "0"


async def test_a_long_talk_is_indexed_in_batches_and_other_places_by_words_before_vectors() -> None:
    letters = Letters()
    async with a_store() as store:
        await hear(store, *talk(*["the sea"] * (BATCH + 1)), *talk("xylophone", place=DIRECT))
        indexer = an_indexer(store, only(letters))
        indexer.wake(GROUP)
        indexer.wake(DIRECT)
        await indexer.done()

        assert await store.index_writer.unread("letters") == []
        assert letters.texts[-1] == "Alice: xylophone"


async def test_the_next_process_indexes_what_this_one_did_not(tmp_path: Path) -> None:
    stuck, letters = Stuck(), Letters()
    async with a_store(tmp_path / "tertulia.db") as store:
        await hear(store, *talk(*["the sea"] * 40), *talk("xylophone", place=DIRECT))
        indexer = an_indexer(store, only(stuck))
        await indexer.start()
        await stuck.reached.wait()
        await indexer.close()
        before = await store.index_writer.progress("letters")

    async with a_store(tmp_path / "tertulia.db") as store:
        await finish(an_indexer(store, only(letters)))

        assert before.indexed == 41
        assert len(letters.texts) == 41 - before.embedded < 41
        assert await store.index_writer.progress("letters") == IndexProgress(messages=41, indexed=41, embedded=41)


async def test_nothing_is_indexed_of_a_place_that_is_not_wanted() -> None:
    async with a_store() as store:
        await hear(store, *talk("the sea"), *talk("the sun", place=DIRECT))
        indexer = an_indexer(store)
        await indexer.start(lambda place: place == DIRECT)
        await indexer.done()

        assert await store.index_writer.unread(None) == [GROUP]


async def test_an_edited_message_is_embedded_again() -> None:
    letters = Letters()
    async with a_store() as store:
        indexer = an_indexer(store, only(letters))
        await hear(store, *talk("the sea", "xylophone", "the sun"))
        await finish(indexer)
        letters.texts.clear()

        await store.inbox.edit(a_message("never mind", id="1", author=BOB), at=NOON)
        indexer.wake(GROUP)
        await indexer.done()

        assert letters.texts == ["Bob: never mind"]


async def test_vectors_that_are_missing_are_made_at_the_next_start() -> None:
    letters = Letters()
    async with a_store() as store:
        await hear(store, *talk(*FILL), *talk("xylophone", "piano", place=DIRECT))
        await finish(an_indexer(store, only(letters)))
        await on(store, remove, "search_vectors", number=[1, 4])
        letters.texts.clear()

        await finish(an_indexer(store, only(letters)))

        assert letters.texts == ["Bob: piano", f"Bob: {FILL[1]}", f"Alice: {FILL[4]}"]
        assert await store.check() == []


async def test_an_embedder_that_makes_other_vectors_than_before_begins_anew() -> None:
    before, now = Letters(width=32), Letters(width=16)
    async with a_store() as store:
        await hear(store, *talk("the sea", "xylophone", "the sun"))
        await finish(an_indexer(store, only(before)))
        search = a_search(store, embedders=only(now))
        await search.find("sea", place=GROUP, author=ALICE)
        await hear(store, *talk("the moon", start=3))
        await finish(an_indexer(store, only(now)))

        seen = await store.index_reader.view(GROUP, ALICE)
        assert seen is not None
        assert [len(vector) for _, vector in await store.index_reader.vectors(seen, "letters", 0)] == [16] * 4
        look = await search.look_up("moon", seen)
        assert look is not None
        assert look.cosines is not None
        assert look.cosines.argmax() == 3


async def test_all_is_embedded_anew_if_the_first_message_is_edited_when_vectors_have_another_length() -> None:
    before, now = Letters(width=32), Letters(width=16)
    async with a_store() as store:
        await hear(store, *talk("the sea", "xylophone", "the sun"))
        await finish(an_indexer(store, only(before)))
        await store.inbox.edit(a_message("the moon", id="0"), at=NOON)
        await finish(an_indexer(store, only(now)))

        assert now.texts == ["Alice: the moon", "Bob: xylophone", "Alice: the sun"]
        assert await store.check() == []


async def test_what_fails_is_logged_in_one_line_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with a_store() as store:
        await hear(store, *talk("the sea"))
        with caplog.at_level(logging.WARNING):
            await finish(an_indexer(store, only(Flaky(Overloaded("busy"), Overloaded("busy"))), sleep=sleep))

        assert slept == [5.0, 10.0]
        assert [record.getMessage() for record in caplog.records] == [
            "embedding in -100123 is retried in 5 s: busy",
            "embedding in -100123 is retried in 10 s: busy",
        ]
        assert (await store.index_writer.progress("letters")).embedded == 1


async def test_the_old_vectors_serve_until_another_embedder_is_done() -> None:
    old, new = Letters("old"), Stuck()
    new.id = "new"
    async with a_store() as store:
        await hear(store, *talk(*["the sea", "a dog"] * 40))
        await finish(an_indexer(store, only(old)))
        await store.index_writer.choose("new")
        indexer = an_indexer(store, only(new, old))
        await indexer.start()
        await new.reached.wait()
        search = a_search(store, embedders=only(new, old))
        old.texts.clear()

        assert len(await search.find("sea", place=GROUP, author=ALICE, limit=9)) == 9
        assert old.texts == ["sea"]
        await indexer.close()
        done = Letters("new")
        await finish(an_indexer(store, only(done, old)))
        await a_search(store, embedders=only(done, old)).find("sea", place=GROUP, author=ALICE, limit=9)
        assert (old.texts, done.texts[-1]) == (["sea"], "sea")
        assert (await store.index_writer.progress("old")).embedded == 0
        assert (await store.index_writer.progress("new")).embedded == 80


async def test_without_an_embedder_words_alone_are_searched() -> None:
    letters = Letters()
    async with a_store() as store:
        await hear(store, *talk("the sea"))
        await finish(an_indexer(store, only(letters)))
        await store.index_writer.choose("none")
        indexer = an_indexer(store, only(letters))
        indexer.wake(GROUP)
        await indexer.done()
        letters.texts.clear()

        assert await found(store, "sea", embedders=only(letters)) == ["0"]
        assert letters.texts == []
        assert (await store.index_writer.progress("letters")).embedded == 0


async def test_an_embedder_that_cannot_be_used_here_leaves_the_vectors_of_others() -> None:
    async with a_store() as store:
        await hear(store, *talk("the sea"))
        await finish(an_indexer(store, only(Letters())))
        await finish(an_indexer(store, no_embedder))
        an_indexer(store, no_embedder).wake(GROUP)

        assert (await store.index_writer.progress("letters")).embedded == 1


@pytest.mark.parametrize(("missing", "level"), [(2 * EMBEDDED, logging.INFO), (LATE, logging.WARNING)])
async def test_it_is_said_how_many_messages_have_no_vectors_yet(
    missing: int, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tertulia.engine.memory.indexer")
    behind: list[int] = []
    async with Store.open(":memory:") as store:
        for number in range(missing):
            await store.inbox.receive(a_message(f"letter {number}", id=str(number)), at=NOON)

        indexer = an_indexer(store, only(Letters()))
        indexer.behind = behind.append
        await finish(indexer)

    assert behind == [missing]
    told = f"{missing} messages have no vectors yet; until then they are found by their words alone"
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == [(level, told), (logging.INFO, CAUGHT_UP)]


async def test_long_messages_are_read_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def watched(said: MessageText) -> IndexEntry:
        threads.append(get_ident())
        return index_entry(said)

    monkeypatch.setattr(indexer, "index_entry", watched)
    async with a_store() as store:
        await hear(store, *talk("the sea", "the sun"))
        await finish(an_indexer(store))

    assert len(threads) == 2
    assert get_ident() not in threads

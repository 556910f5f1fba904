"""What bears on a message is recalled; what does not is left alone."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from memory.searching import a_store, hear, index, no_embedder, talk
from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message
from tertulia.engine.background import RealClock
from tertulia.engine.memory import Memory
from tertulia.engine.memory.recall import MessageRecall
from tertulia.messages import Message
from tertulia.parts import Text
from tertulia.store import Store

KAYAK = "I finally bought a kayak, a red one, at the boat fair in Odesa!"
CHATTER = (
    "how much was it", "the weather is fine", "I will cook soup", "see you", "hello again", "good morning",
    "the train was late", "I hate trains",
)  # fmt: skip


def a_chat(*, own: bool = False) -> list[Message]:
    """Days of chatter, and among it one thing that is worth recalling."""
    texts = [f"{one} number {at}" for at in range(20) for one in CHATTER]
    said = talk(*texts[:60], KAYAK, *texts[60:], authors=[GRYAG if own else ALICE, BOB])
    began = NOON - timedelta(days=40)
    return [replace(one, sent_at=began + timedelta(hours=2 * (at // 8), minutes=at)) for at, one in enumerate(said)]


def a_recall(store: Store, **changes: Any) -> MessageRecall:
    return MessageRecall(store.index_reader, embedders=no_embedder, now=lambda: NOON, **changes)


async def test_what_bears_on_a_message_is_recalled_with_who_said_it_and_when() -> None:
    async with a_store() as store:
        await hear(store, *a_chat())
        await index(store)

        hits = await a_recall(store).relevant(a_message("Where did Alice buy her kayak?", id="999", author=BOB))

        assert [(hit.said_by, hit.said_at, hit.text, hit.message_id, hit.place) for hit in hits] == [
            ("Alice", NOON - timedelta(days=40) + timedelta(hours=14, minutes=60), KAYAK, "60", GROUP)
        ]
        assert 0.4 <= hits[0].score <= 1


async def test_of_a_forward_it_is_recalled_whose_words_it_was() -> None:
    async with a_store() as store:
        chat = a_chat()
        kayak = next(one for one in chat if one.text == KAYAK)
        await hear(store, *(replace(one, forwarded_from=BOB) if one is kayak else one for one in chat))
        await index(store)

        hits = await a_recall(store).relevant(a_message("Where did Alice buy her kayak?", id="999", author=BOB))

        assert [(hit.said_by, hit.text) for hit in hits] == [("Alice, forwarded from Bob", KAYAK)]


async def test_nothing_is_recalled_for_what_nothing_bears_on() -> None:
    async with a_store() as store:
        await hear(store, *a_chat())
        await index(store)
        recall = a_recall(store)

        for text in ("ok", "lol", "", "What is the capital of Peru?", "дякую"):
            assert list(await recall.relevant(a_message(text, id="999"))) == [], text


async def test_own_words_are_recalled_only_where_they_surely_help_and_the_target_never() -> None:
    async with a_store() as store:
        target = a_message("Where did gryag buy the kayak?", id="999", author=BOB)
        await hear(store, *a_chat(own=True), target)
        await index(store)

        hits = await a_recall(store, likely=0.0).relevant(target)

        assert "999" not in {hit.message_id for hit in hits}
        assert all(hit.score >= 0.6 for hit in hits if hit.said_by == "gryag")


async def test_a_long_message_is_cut() -> None:
    async with a_store() as store:
        said = a_chat()
        said[60] = replace(said[60], parts=(Text(text=KAYAK + " wow" * 400),))
        await hear(store, *said)
        await index(store)

        hits = await a_recall(store, likely=0.0).relevant(a_message("Where did Alice buy her kayak?", id="999"))

        assert len(hits) == 8
        assert max(len(hit.text) for hit in hits) == 600


async def test_a_memory_indexes_what_it_hears_and_recalls_it() -> None:
    async with a_store() as store:
        await hear(store, *a_chat())
        memory = Memory(store, clock=RealClock(now=lambda: NOON))
        await memory.start()
        await memory.done()
        target = a_message("Where did Alice buy her kayak?", id="999", author=BOB)

        hits = await memory.knowledge.relevant(target)
        await memory.close()

        assert not memory.busy
        assert [hit.message_id for hit in hits] == ["60"]
        assert (await store.index_writer.progress(None)).indexed == 161

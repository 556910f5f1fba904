"""A search over all messages finds indexed ones by their words, and others by their text."""

from memory.searching import index
from people import BOB, GROUP, NOON, a_message
from tertulia.inspector.search import search
from tertulia.messages import Place
from tertulia.store import Store

OTHER = Place(platform="telegram", id="-200", kind="group", title="Kitchen")


async def test_messages_of_all_places_are_found_by_their_words(store: Store) -> None:
    for number, (text, place) in enumerate(
        [("the valve leaks", GROUP), ("купив вареники", OTHER), ("valves and pipes", OTHER), ("nothing", GROUP)]
    ):
        await store.inbox.receive(a_message(text, id=str(number), place=place), at=NOON)
    await index(store)

    found = await search(store, "Valve")
    both = await search(store, "leaking valve")
    ukrainian = await search(store, "вареників")

    assert [(hit.message.text, hit.place_key) for hit in found] == [
        ("valves and pipes", "telegram.-200"),
        ("the valve leaks", "telegram.-100123"),
    ]
    assert [hit.message.text for hit in both] == ["the valve leaks", "valves and pipes"]
    assert found[0].why == "it says valve"
    assert [hit.message.text for hit in ukrainian] == ["купив вареники"]
    assert await search(store, " ") == ()
    assert await search(store, "zebra") == ()


async def test_messages_without_an_index_are_found_by_their_text(store: Store) -> None:
    await store.inbox.receive(a_message("100% Їжак", id="1"), at=NOON)
    await store.inbox.receive(a_message("100 of them", id="2"), at=NOON)

    assert [hit.message.id for hit in await search(store, "їжак")] == ["1"]
    assert [hit.message.id for hit in await search(store, "100%")] == ["1"]


async def test_neither_hidden_nor_blocked_words_are_found(store: Store) -> None:
    await store.inbox.receive(a_message("a secret", id="1", author=BOB), at=NOON)
    await store.inbox.receive(a_message("a secret", id="2"), at=NOON)
    await index(store)
    await store.inbox.receive(a_message("a secret", id="3", author=BOB), at=NOON)
    await store.inbox.delete(GROUP, "2", at=NOON)
    await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)

    assert await search(store, "secret") == ()

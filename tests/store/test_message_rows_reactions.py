"""Reactions: to any part of a message, as they are shown now and as they were told."""

from datetime import timedelta
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from people import ALICE, BOB, GROUP, NOON, a_message
from store.builders import a_run, files_hold
from store.test_message_rows_parts import in_parts, send
from tertulia.context.edits import Reaction
from tertulia.messages import Author
from tertulia.platform import Change, PlaceMigrated, Reacted, Received
from tertulia.store import Store
from tertulia.store.message_rows import MAX_REACTIONS_SHOWN
from tertulia.turns import Prompt

KEYS = count()


def reacted(name: str, *emojis: str, author: Author = ALICE) -> Reacted:
    return Reacted(place=GROUP, message_id=name, author=author, emojis=emojis)


async def apply(store: Store, *changes: Change) -> None:
    key, keep = f"u{next(KEYS)}", timedelta(days=1)
    await store.updates.apply(GROUP.platform, changes, key=key, raw=None, at=NOON, keep=keep)


async def shown(store: Store) -> list[tuple[str, list[str]]]:
    """What is shown now."""
    rows = [row async for row in store.export() if row["table"] == "reactions"]
    return [(row["message_id"], row["emojis"]) for row in rows if row["current"]]


async def told(store: Store) -> list[tuple[int, int, str, tuple[str, ...]]]:
    changes = await store.log.changes(GROUP, 0)
    return [(one.number, one.position, one.author.id, one.emojis) for one in changes if isinstance(one, Reaction)]


async def test_a_reaction_to_any_part_of_a_split_reply_belongs_to_the_one_message(store: Store) -> None:
    await send(store, *await in_parts(store))

    await apply(store, reacted("s0", "👍"), reacted("s2", "🎉"), reacted("s1", "👀", author=BOB))
    await apply(store, Received(message=a_message(id="1")), reacted("s2"))

    assert await shown(store) == [("s0", ["👍"]), ("s1", ["👀"]), ("s2", [])]
    assert await told(store) == [
        (0, 1, ALICE.id, ("👍",)),
        (0, 1, ALICE.id, ("🎉",)),
        (0, 1, BOB.id, ("👀",)),
        (0, 2, ALICE.id, ()),
    ]


async def test_until_something_else_is_said_only_the_last_reaction_counts(store: Store) -> None:
    await apply(store, Received(message=a_message(id="1")))

    for emojis in (("👍",), ("🎉",), ("🎉",)):
        await apply(store, reacted("1", *emojis))
    assert await told(store) == [(0, 1, ALICE.id, ("🎉",))]

    await apply(store, reacted("1"))
    assert (await told(store), await shown(store)) == ([], [])


async def test_of_the_reactions_to_one_message_the_first_are_told_and_all_are_stored(store: Store) -> None:
    people = [Author(id=str(number), name="N") for number in range(MAX_REACTIONS_SHOWN + 3)]
    await apply(store, Received(message=a_message(id="1")), *(reacted("1", "👍", author=one) for one in people))
    before = await told(store)
    await apply(store, Received(message=a_message(id="2")), reacted("1", author=people[-1]))

    assert [author for _, _, author, _ in before] == [one.id for one in people[:MAX_REACTIONS_SHOWN]]
    assert (await told(store), len(await shown(store))) == (before, MAX_REACTIONS_SHOWN + 2)


async def test_a_reaction_makes_a_prompt_that_is_being_built_outdated(store: Store) -> None:
    await apply(store, Received(message=a_message(id="1")))
    snapshot = await store.inbox.snapshot(GROUP)

    await apply(store, reacted("unknown", "👍"))
    assert (await store.inbox.snapshot(GROUP)).changes == snapshot.changes

    await apply(store, reacted("1", "👍"))
    assert (await store.inbox.snapshot(GROUP)).changes == snapshot.changes + 1


async def test_in_a_place_that_moves_reactions_stay_where_they_were(store: Store) -> None:
    new = replace(GROUP, id="-200")
    await apply(store, Received(message=a_message(id="1")), Received(message=a_message(id="2")))
    there = a_message(id="1", place=new)
    await apply(store, Received(message=there), replace(reacted("1", "👍"), place=new))

    await apply(store, PlaceMigrated(old=GROUP, new=new))

    (change,) = await store.log.changes(new, 0)
    assert (change.number, change.position) == (2, 3)


async def test_of_somebody_who_only_reacted_nothing_is_left(tmp_path: Path) -> None:
    eve = Author(id="u-eve-1", name="Evelyn Quartz")
    async with Store.open(tmp_path / "s.db") as store:
        await apply(store, Received(message=a_message(id="1", author=BOB)), reacted("1", "👍", author=eve))
        line = "[#x] From: Evelyn Quartz (u-eve-1) — reacted 👍 to it"
        await store.runs.begin(a_run(target="1", taken=("1",)), Prompt.of(line), at=NOON)

        await store.forget(platform=GROUP.platform, author_id=eve.id)

        assert await told(store) == []
        assert await store.check() == []
    assert not files_hold(tmp_path, "Evelyn")
    assert not files_hold(tmp_path, "u-eve-1")


async def test_a_reaction_in_a_thread_is_found_where_the_service_does_not_name_the_thread(store: Store) -> None:
    topic = replace(GROUP, thread="7")
    await apply(store, Received(message=a_message(id="1", place=topic)), Received(message=a_message(id="2")))

    await apply(store, reacted("1", "👍"), reacted("2", "👀"), reacted("unknown", "🎉"))

    assert [one.emojis for one in await store.log.changes(topic, 0) if isinstance(one, Reaction)] == [("👍",)]
    assert await told(store) == [(0, 1, ALICE.id, ("👀",))]

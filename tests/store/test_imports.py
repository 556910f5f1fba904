"""Messages of other programs become the past of a place: once, in order, and without waking anybody."""

import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import ALICE, BOB, NOON, a_message
from store.builders import a_run, begin, cursor, rows, set_cursor
from stored_rows import add, on
from telegram_exports import chat, message, value
from tertulia.context.edits import Reaction
from tertulia.formats.imported import ImportedMessage, ImportedReaction
from tertulia.memory.episode_summary import build_episode
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Text
from tertulia.platform import Edited, PlaceMigrated, Reacted, Received
from tertulia.store import Store
from tertulia.store.imports import ImportCounts

PLACE = Place(platform="telegram-9", id="-1001", kind="group", title="Friends", service="telegram")
DIRECT = replace(PLACE, id="5", kind="direct", title="")
BOT = Author(id="9", name="Gryag", persona="Gryag")


def said(number: int, text: str = "", **changes: Any) -> Message:
    """Return a message with this number, sent so many minutes after noon."""
    sent_at = NOON + timedelta(minutes=number)
    fields: dict[str, Any] = {"id": str(number), "place": PLACE, "author": ALICE, "sent_at": sent_at}
    return a_message(text or f"number {number}", **fields | changes)


def imported(*numbers: int, **changes: Any) -> list[ImportedMessage]:
    return [ImportedMessage(message=said(number, **changes)) for number in numbers]


async def import_all(store: Store, items: Sequence[ImportedMessage], *, learn: bool = False) -> ImportCounts:
    counts = await store.imports.add(items)
    for place in {item.message.place for item in items}:
        await store.imports.finish(place, learn=learn)
    return counts


async def receive(store: Store, *messages: Message) -> None:
    for one in messages:
        await store.inbox.receive(one, at=NOON)


async def ids(store: Store, place: Place = PLACE) -> list[str]:
    assert await store.check() == []
    return [one.id for one in await store.log.read(place, 0, 999)]


async def test_messages_are_stored_as_they_were_sent_and_wake_nobody() -> None:
    photo = Media(media_kind="photo", unique_id="export-1", mime="image/jpeg", raw={"path": "photos/1.jpg"})
    first = said(1, author=BOB)
    second = replace(
        said(2, reply_to=Quote(message_id="1"), edited_at=NOON + timedelta(hours=1)), parts=(photo, Text(text="look"))
    )
    own = said(3, author=BOT)
    items = [ImportedMessage(message=first), ImportedMessage(message=second), ImportedMessage(message=own, own=True)]

    async with Store.open(":memory:") as store:
        counts = await import_all(store, items)

        assert counts == ImportCounts(added=3)
        assert await store.log.read(PLACE, 0, 99) == [first, second, replace(own, agent="")]
        assert (await store.inbox.snapshot(PLACE)).waiting == ()
        assert await store.inbox.places() == []
        assert await rows(store, "messages", "role", "own") == [("user", 0), ("user", 0), ("model", 1)]
        assert await rows(store, "decisions") == []
        assert await store.check() == []


async def test_a_second_import_adds_nothing() -> None:
    async with Store.open(":memory:") as store:
        await import_all(store, imported(1, 2, 3))
        before = [row async for row in store.export()]

        counts = await import_all(store, imported(1, 2, 3))

        assert counts == ImportCounts(known=3)
        assert [row async for row in store.export()] == before


async def test_an_update_of_an_imported_message_is_that_message() -> None:
    async with Store.open(":memory:") as store:
        await import_all(store, imported(1, 2))
        update = Received(message=said(2)), Edited(message=said(1, "better", edited_at=NOON + timedelta(hours=1)))

        await store.updates.apply("telegram-9", update, key="1", raw=None, at=NOON, keep=timedelta(1))

        assert [one.text for one in await store.log.read(PLACE, 0, 9)] == ["better", "number 2"]
        assert await store.inbox.places() == []


async def test_a_live_reply_finds_the_imported_message() -> None:
    async with Store.open(":memory:") as store:
        await import_all(store, imported(1))
        await receive(store, said(5, reply_to=Quote(message_id="1")))

        found = await store.log.get(PLACE, "1")

        assert found == said(1)


async def test_older_messages_stand_before_those_that_the_bot_received() -> None:
    async with Store.open(":memory:") as store:
        await receive(store, said(5), said(8))

        counts = await import_all(store, imported(1, 2, 5, 6, 9))

        assert counts == ImportCounts(added=4, known=1)
        assert await ids(store) == ["1", "2", "5", "6", "8", "9"]
        waiting = (await store.inbox.snapshot(PLACE)).waiting
        assert [(one.message.id, one.number) for one in waiting] == [("5", 2), ("8", 4)]


async def test_staged_messages_are_invisible_until_the_chat_is_read() -> None:
    async with Store.open(":memory:") as store:
        await receive(store, said(5))

        await store.imports.add(imported(1, 2))

        assert await ids(store) == ["5"]
        assert await store.cursors.unread() == [PLACE]
        await receive(store, said(2))  # it comes late, and twice
        await store.imports.finish(PLACE, learn=False)
        assert await ids(store) == ["1", "5", "2"]


async def test_everything_that_refers_to_a_number_follows_its_message() -> None:
    async with Store.open(":memory:") as store:
        await receive(store, said(10), said(11), said(12))
        await begin(store, a_run(place=PLACE, target="11", taken=("11",), horizon=2))
        edit = Edited(message=said(10, "changed", edited_at=NOON + timedelta(hours=2)))
        shown = Reacted(place=PLACE, message_id="11", author=BOB, emojis=("👍",), at=NOON)
        await store.updates.apply("telegram-9", (edit, shown), key="1", raw=None, at=NOON, keep=timedelta(1))
        await store.place_settings.clear(PLACE, 1, at=NOON)
        await set_cursor(store, PLACE, 2)
        await store.agents.join(PLACE, "Kant", at=NOON)
        await on(store, add, "presences", place=1, agent="Hume", since=0, until=2, joined_at=NOON.isoformat())

        old = imported(1, 2, 3)
        await import_all(
            store, [replace(old[0], reactions=(ImportedReaction(author=BOB, emojis=("🔥",), at=NOON),)), *old[1:]]
        )

        assert await ids(store) == ["1", "2", "3", "10", "11", "12"]
        assert await store.place_settings.beginning(PLACE) == 4
        assert await cursor(store, PLACE) == 5
        assert await rows(store, "runs", "horizon") == [(5,)]
        assert await rows(store, "message_changes", "number", "position") == [(3, 6)]
        assert sorted(await rows(store, "reactions", "message_id", "position")) == [("1", 1), ("11", 6)]
        assert await rows(store, "presences", "agent", "since", "until") == [("Hume", 0, 5), ("Kant", 6, None)]


async def test_an_episode_follows_its_messages_and_is_not_replaced_by_a_new_one() -> None:
    async with Store.open(":memory:") as store:
        await receive(store, said(10), said(11), said(12))
        seen = await store.episodes.cursor(PLACE)
        assert seen is not None
        live = await store.log.read(PLACE, 0, 2)
        await store.episodes.add(build_episode(live, PLACE, 0), seen=seen)

        await import_all(store, imported(1, 2))

        again = await store.episodes.cursor(PLACE)
        assert again is not None
        assert await store.episodes.missing_ranges(PLACE) == [(0, 2)]
        await store.episodes.add(build_episode(await store.log.read(PLACE, 0, 2), PLACE, 0), seen=again)
        assert [(one.start, one.stop) for one in await store.episodes.listed(PLACE)] == [(0, 2), (2, 4)]


async def test_reactions_of_imported_messages_are_shown_where_they_stand() -> None:
    reaction = ImportedReaction(author=BOB, emojis=("👍", "🔥"), at=NOON)
    async with Store.open(":memory:") as store:
        await import_all(store, [ImportedMessage(message=said(1), reactions=(reaction,)), *imported(2)])

        found = list(await store.log.changes(PLACE, 0))

        assert found == [Reaction(number=0, position=1, author=BOB, emojis=("👍", "🔥"), at=NOON)]


async def test_facts_are_learned_only_when_asked_for() -> None:
    async with Store.open(":memory:") as store:
        await import_all(store, imported(1, 2))
        assert await store.cursors.unread() == []

        await receive(store, said(5))
        unread = await store.cursors.next_range(PLACE)
        assert unread is not None
        assert (unread.start, unread.stop) == (2, 3)

        await import_all(store, imported(1, 2), learn=True)
        unread = await store.cursors.next_range(PLACE)
        assert unread is not None
        assert (unread.start, unread.stop) == (0, 3)


async def test_older_messages_are_not_learned_from_and_those_that_wait_still_are() -> None:
    async with Store.open(":memory:") as store:
        await receive(store, said(5), said(6))

        await import_all(store, imported(1, 2))

        unread = await store.cursors.next_range(PLACE)
        assert unread is not None
        assert (unread.start, unread.stop) == (2, 4)


async def test_of_a_chat_with_other_ids_only_what_is_older_than_the_bot_is_imported() -> None:
    def exported(*numbers: int) -> list[ImportedMessage]:
        return [
            replace(
                item, message=replace(item.message, id=f"export:{item.message.id}", place=DIRECT), has_bots_id=False
            )
            for item in imported(*numbers)
        ]

    async with Store.open(":memory:") as store:
        await import_all(store, exported(1, 2))
        await receive(store, said(5, id="1", place=DIRECT), said(6, id="2", place=DIRECT))

        counts = await import_all(store, exported(1, 2, 3, 4, 5, 6))

        assert counts == ImportCounts(added=2, known=4)
        assert await ids(store, DIRECT) == ["export:1", "export:2", "export:3", "export:4", "1", "2"]


async def test_what_is_imported_for_a_place_that_has_migrated_goes_where_it_is_now() -> None:
    old = replace(PLACE, id="-7")
    async with Store.open(":memory:") as store:
        await import_all(store, imported(1, 2, place=old))
        moved = (PlaceMigrated(old=old, new=PLACE),)
        await store.updates.apply("telegram-9", moved, key="1", raw=None, at=NOON, keep=timedelta(1))

        counts = await import_all(store, imported(1, 2, 3, place=old))

        assert counts == ImportCounts(added=1, known=2)
        assert await ids(store) == ["-7:1", "-7:2", "-7:3"]


async def test_two_imports_of_one_chat_are_one_log() -> None:
    async with Store.open(":memory:") as store:
        await import_all(store, imported(4, 5, 6))
        await import_all(store, imported(1, 2, 3, 4, 5, 6, 7))

        assert await ids(store) == [str(number) for number in range(1, 8)]
        assert await store.cursors.unread() == []


def split(items: Sequence[ImportedMessage], sizes: Iterable[int]) -> list[list[ImportedMessage]]:
    """Split items into batches of these sizes; the rest is the last."""
    batches, at = [], 0
    for size in sizes:
        batches.append(list(items[at : at + size]))
        at += size
    return [batch for batch in (*batches, list(items[at:])) if batch]


@settings(max_examples=60, deadline=None)
@given(
    live=st.sets(st.integers(1, 30), max_size=8),
    exported=st.sets(st.integers(1, 30), max_size=20),
    sizes=st.lists(st.integers(1, 6), max_size=6),
    ended=st.integers(0, 6),
)
async def test_a_broken_import_and_a_second_one_give_the_same_log(
    live: set[int], exported: set[int], sizes: list[int], ended: int
) -> None:
    items = imported(*sorted(exported))

    async with Store.open(":memory:") as store:
        await receive(store, *(said(number) for number in sorted(live)))
        for batch in split(items, sizes)[:ended]:  # and then the process is killed
            await store.imports.add(batch)
        await import_all(store, items)
        await store.imports.finish(PLACE, learn=False)

        assert await ids(store) == [str(number) for number in sorted(live | exported)]
        assert (await store.inbox.snapshot(PLACE)).count == len(live | exported)


POINTS = ("10", "INSERT INTO reactions", "150", "UPDATE places SET messages", "399", "DELETE FROM new_numbers")


async def test_an_import_that_is_killed_is_continued_to_the_same_store(tmp_path: Path) -> None:
    """Killed between and within its transactions, and within that which puts all messages in order."""
    shown = [{"type": "emoji", "count": 1, "emoji": "👍", "recent": [{"from": "Bo", "from_id": "user6"}]}]
    entries = [message(number, f"text {number}", reactions=shown if number == 90 else []) for number in range(1, 401)]
    export = tmp_path / "result.json"
    export.write_text(value(chat(entries)), encoding="utf-8")
    place = replace(PLACE, platform="telegram-4242", id="-1001234567890")
    for db in ("killed.db", "whole.db"):
        async with Store.open(tmp_path / db) as store:
            await receive(store, *(said(number, place=place) for number in (100, 300)))

    killed = run_imports(export, tmp_path / "killed.db", *POINTS)
    whole = run_imports(export, tmp_path / "whole.db")

    assert (killed, whole) == ([-signal.SIGKILL] * len(POINTS), [])
    async with Store.open(tmp_path / "killed.db") as one, Store.open(tmp_path / "whole.db") as other:
        assert await ids(one, place) == [str(number) for number in range(1, 401)]
        assert [row async for row in one.export()] == [row async for row in other.export()]


def run_imports(export: Path, db: Path, *points: str) -> list[int]:
    """Import in processes of their own, each killed at its point but for the last; return how each ended."""
    child = Path(__file__).with_name("import_child.py")
    command = [sys.executable, str(child), str(export), str(db), *points]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [int(line) for line in done.stdout.split()]

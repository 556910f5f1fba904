import asyncio
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from people import ALICE, DIRECT, GROUP, GRYAG, NOON, a_message, a_photo, a_quote, a_talk
from store.builders import PROMPT, a_cache, a_record, a_run, a_task, a_tool_run, add_own, an_outgoing, begin, names_in
from stored_rows import add, change, on, on_file, read, remove
from tertulia.context.values import RecalledThing
from tertulia.engine.orders import Order
from tertulia.engine.store_protocols import AddedAgent, DeliveryAttempt, OwnerSetting, PlaceCast
from tertulia.errors import InvalidValue, StoreRefused
from tertulia.media.descriptions import DescriptionFailure
from tertulia.media.values import FileForm, Handle, StoredFile
from tertulia.memory.values import Episode, Summary, WindowPast
from tertulia.models.base import Usage
from tertulia.models.calls import Call
from tertulia.platform import Commanded, PlaceMigrated, Reacted
from tertulia.run.chat_values import HistoryEntry, OpenExchange
from tertulia.store import Store
from tertulia.store.maintenance import NOT_EXPORTED
from tertulia.store.sqlite.migrating import tables
from tertulia.testing.store_world import a_guest, a_room
from tertulia.turns import model


async def _add_files(store: Store) -> None:
    file = await store.media.add("p1", b"a", StoredFile(sha256="", size=0, mime="image/png"), at=NOON)
    await store.media.add_form(file.sha256, "pages", FileForm(text="Hello"), at=NOON)
    handle = Handle(sha256=file.sha256, account="gemini", name="files/a", uri="https://g/a", mime="image/png")
    await store.media.add_handle(handle, at=NOON)
    ((place,), *_) = await on(store, read, "places", "id")
    await on(store, add, "description_positions", unique_id="p1", made_by="m", place=place, position=1)
    await store.descriptions.fail("p2", DescriptionFailure(why="", failures=1, retry_at=NOON), by="m")


async def fill(store: Store) -> None:
    """Something in every table."""
    for message in a_talk(5):
        await store.inbox.receive(message, at=NOON)
    await store.inbox.edit(a_message("edited", id="0", parts=(a_photo(),), reply_to=a_quote()), at=NOON)
    await add_own(store, a_message("Yes?", id="own", author=GRYAG), [model("Yes?")])
    part = an_outgoing(author=GRYAG, reply_id="o0", id="o0", status="sent", message_id="s0")
    await store.outbox.put(part)
    await store.place_settings.delimiter(GROUP)
    await store.place_settings.block(platform="telegram", author_id="u666", at=NOON)
    limit = {"messages": 3, "seconds": 60.0}
    await store.owner_settings.put(OwnerSetting(name="limit", value=limit, replaced=limit, at=NOON))
    await store.agents.add(AddedAgent(name="Kant", text="You doubt.", at=NOON, service="telegram", who=ALICE.id))
    await store.agents.set_cast(GROUP, PlaceCast(agents=("Kant",)))
    await store.agents.join(GROUP, "Kant", at=NOON)
    ((group,), *_) = await on(store, read, "places", "id")
    await on(store, add, "agent_cursors", place=group, agent="Kant", run=1)
    await store.orders.add(Order(id="order-1", kind="drop reply", subject="o1", who="owner", at=NOON))
    await store.rooms.add(a_room(), key="k")
    await store.rooms.join(a_guest(), key="k", cookie="c")
    await remember(store)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOON)
    await _add_files(store)
    await store.model_caches.add(a_cache())
    shown = [RecalledThing(kind="fact", id=a_fact().id, why="it is known of the author")]
    await store.runs.begin(a_run(), PROMPT, at=NOON, recalled=shown)
    await store.proposals.propose(a_run().id, a_fact().id, now=NOON, until=NOON + timedelta(hours=1), most=9)
    call = Call(model="gpt-5", usage=Usage(input=5, output=1), money=0.01, begun_at=NOON, ended_at=NOON)
    await store.runs.add_record(a_run(), 0, a_record(), call=call)
    await store.usage.add_notice(a_message("hi", id="0"), NOON.date())
    await store.chats.write("a chat", 0, [HistoryEntry(record=a_record())], OpenExchange(run_id="r1"), edition=None)
    await store.runs.begin_tool(a_run(), a_tool_run())
    await store.runs.end(a_run(status="done", ended_at=NOON), replies=[an_outgoing()], tasks=[a_task()])
    attempt = DeliveryAttempt(number=1, begun_at=NOON)
    await store.outbox.change(an_outgoing(status="sending", attempts=1, attempt=attempt))
    await store.updates.apply(
        "telegram",
        [
            Reacted(place=GROUP, message_id="1", author=ALICE, emojis=("👍",)),
            Commanded(message=a_message("/help", id="c1"), name="help"),
            PlaceMigrated(old=DIRECT, new=GROUP),
        ],
        key="u1",
        raw=b"{}",
        at=NOON,
        keep=timedelta(days=1),
    )


async def remember(store: Store) -> None:
    """A fact, a forgotten one, a summary, an episode and the past of a window; all messages were read for facts."""
    learned = [a_fact(sources=("3",)), a_fact("likes gin", id="forgotten", sources=("3",))]
    await store.facts.learn(learned, reading=await store.cursors.next_range(GROUP))
    await store.facts.forget(["forgotten"])
    summary = Summary(subject=a_subject(), place=GROUP, text="A tea drinker.", facts=1, digest="d", made_at=NOON)
    await store.facts.summarise(summary)
    seen = await store.episodes.cursor(GROUP)
    assert seen is not None
    episode = Episode(id="e1", place=GROUP, start=0, stop=5, topic="tea", people=("u123",), tags=("tea",))
    assert await store.episodes.add(episode, seen=seen)
    await store.window_pasts.add(GROUP, WindowPast(since=0, start=4, text="They met."), seen=seen)


async def exported(store: Store) -> list[dict[str, Any]]:
    return [row async for row in store.export()]


@pytest.mark.parametrize("path", [":memory:", "s.db"])
async def test_everything_is_exported_as_plain_values(tmp_path: Path, path: str) -> None:
    async with Store.open(path if path == ":memory:" else tmp_path / path) as store:
        await fill(store)

        rows = await exported(store)

    assert json.loads(json.dumps(rows)) == rows
    assert list(dict.fromkeys(row["table"] for row in rows)) == [
        table.name for table in tables() if table.name not in NOT_EXPORTED
    ]
    assert Counter(row["table"] for row in rows)["messages"] == 7
    (layer,) = [row["layer"] for row in rows if row["table"] == "layers" and row["name"] == "static"]
    assert layer == {"name": "static", "instruction": "Be kind."}
    first = next(row for row in rows if row["table"] == "messages")
    assert (first["message_id"], first["number"], first["parts"][0]["kind"]) == ("0", 0, "media")


async def test_what_is_named_as_left_out_of_exports_are_tables(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db"):
        pass

    assert all(
        on_file(tmp_path / "s.db", lambda database, table: database.columns(table), name) for name in NOT_EXPORTED
    )


async def test_what_tells_our_markup_from_peoples_is_not_exported(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await fill(store)
        delimiter = await store.place_settings.delimiter(GROUP)

        rows = await exported(store)

    assert delimiter not in json.dumps(rows)
    assert [row["place_id"] for row in rows if row["table"] == "places"] == [GROUP.id]


async def test_an_export_shows_one_moment(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await fill(store)
        before = await exported(store)

        rows = store.export()
        first = await anext(rows)
        await store.inbox.receive(a_message(id="late"), at=NOON)
        await store.tasks.add([a_task(id="late")])

        assert [first, *[row async for row in rows]] == before
        assert (
            len(await exported(store)) == len(before) + 5
        )  # a message with its decision, a task, and an event of each


async def test_a_backup_is_a_store_as_it_was(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await fill(store)
        writing = [asyncio.ensure_future(store.inbox.receive(a_message(id=f"n{n}"), at=NOON)) for n in range(50)]
        rows = await exported(store)
        await asyncio.gather(*writing)

        await store.backup(tmp_path / "copy.db")

        async with Store.open(tmp_path / "copy.db") as copy:
            assert await copy.check() == []
            assert await exported(copy) == await exported(store)
            assert len(rows) <= len(await exported(copy))
    assert names_in(tmp_path) == ["copy.db", "copy.db-media", "s.db", "s.db-media"]
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


async def test_a_backup_replaces_no_file(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    async with Store.open(tmp_path / "s.db") as store:
        for path in (tmp_path / "precious", tmp_path / "s.db"):
            with pytest.raises(InvalidValue, match="is there already; a backup replaces no file"):
                await store.backup(path)
        with pytest.raises(StoreRefused, match="could not be written: No such file"):
            await store.backup(tmp_path / "no" / "copy.db")
        assert await store.check() == []
    assert (tmp_path / "precious").read_text() == "x"
    assert names_in(tmp_path) == ["precious", "s.db"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (("messages", {"number": 1}, {"parts": '[{"kind":"hologram"}]'}), "message 2: it holds"),
        (("messages", {"number": 1}, {"parts": "{"}), "message 2: it holds"),
        (("messages", {"number": 1}, {"sent_at": "yesterday"}), "message 2: Invalid isoformat"),
        (("messages", {"number": 3}, {"number": 17}), "place 1 should have 7 messages"),
        (("places", {}, {"messages": 99}), "place 1 should have 99 messages"),
        (("records", {}, {"turn": "x"}), "turn of row 1 of records: it holds"),
        (("prompts", {}, {"settings": "[]"}), "settings of row 1 of prompts: it holds"),
        (("prompts", {}, {"left_out": "{}"}), "left_out of row 1 of prompts: it holds"),
        (("layers", {"id": 1}, {"suffix": "{}"}), "layer 1 is no longer what it was"),
        (("facts", {}, {"learned_at": "once"}), "fact u123 -100123 likes tea: Invalid isoformat"),
        (("fact_sources", {}, {}), "fact u123 -100123 likes tea: a fact needs a message that says so"),
        (("episodes", {}, {"people": "{"}), "people of row 1 of episodes: it holds"),
        (("window_pasts", {}, {"people": "{"}), "people of row 1 of window_pasts: it holds"),
        (("tasks", {}, {"free": 0}), "task t1 is kept as if it were another"),
        (("tasks", {}, {"run_id": "r7"}), "task t1 is kept as if it were another"),
        (("tasks", {}, {"place": 99}), "row 1 of tasks refers to a row of places that is not there"),
        (("messages", {"number": 3}, {"title": 99}), "row 4 of messages refers to a row of titles that is not there"),
        (("facts", {}, {"title": 99}), "row 1 of facts refers to a row of titles that is not there"),
    ],
)
async def test_a_check_names_what_is_wrong(
    tmp_path: Path, damage: tuple[str, dict[str, Any], dict[str, Any]], said: str
) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await fill(store)
        assert await store.check() == []
    table, where, columns = damage
    if columns:
        on_file(tmp_path / "s.db", change, table, where, **columns)
    else:
        on_file(tmp_path / "s.db", remove, table)

    async with Store.open(tmp_path / "s.db") as store:
        found = await store.check()

    assert len(found) == 1
    assert found[0].startswith(said)


async def test_an_export_that_is_left_early_holds_nobody_up(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await fill(store)
        rows = store.export()
        await anext(rows)
        await rows.aclose()  # type: ignore[attr-defined]

        await store.forget(platform="telegram", author_id="u123")
        assert await store.log.count(GROUP) == 7


async def test_rows_are_counted_without_deleted_messages(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        for message in a_talk(3):
            await store.inbox.receive(message, at=NOON)
        await store.inbox.delete(GROUP, "1", at=NOON)
        await store.outbox.put(an_outgoing())

        assert await store.count_rows() == {"places": 1, "messages": 2, "runs": 0, "replies": 1, "tasks": 0, "files": 0}


async def test_an_author_is_found_by_id_with_the_names_on_each_platform(tmp_path: Path) -> None:
    elsewhere = replace(GROUP, platform="discord")
    async with Store.open(tmp_path / "s.db") as store:
        for number, (name, place) in enumerate([("Alice", GROUP), ("Al", GROUP), ("Alice", GROUP), ("Bo", elsewhere)]):
            author = replace(ALICE, name=name)
            await store.inbox.receive(a_message(id=str(number), author=author, place=place), at=NOON)

        assert await store.names_by_platform(ALICE.id) == {"discord": ["Bo"], "telegram": ["Alice", "Al"]}
        assert [await store.names_by_platform(other) for other in ("nobody", "", "\ud800")] == [{}, {}, {}]


async def test_a_column_that_only_an_export_reads_is_checked_too(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await begin(store, a_run())
    on_file(tmp_path / "s.db", change, "runs", message_ids="{")

    async with Store.open(tmp_path / "s.db") as store:
        faults = await store.check()

    assert [fault.partition(": ")[0] for fault in faults] == ["message_ids of row 1 of runs"]

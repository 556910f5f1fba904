"""Files of media in a store: found by media, kept while something refers to them, collected when nothing does."""

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from memory.known import a_fact
from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message
from store.builders import a_run, a_task, a_tool_run, add_own, an_outgoing
from tertulia.errors import InvalidValue, StoreBusy, StoreRefused
from tertulia.media.descriptions import DescriptionFailure
from tertulia.media.values import FetchFailure, FileForm, Handle, StoredFile, file_key
from tertulia.messages import Place, Quote, Reply
from tertulia.parts import Media, ToolResult
from tertulia.platform import PlaceMigrated
from tertulia.store import Store
from tertulia.store.sqlite.connection import SqliteDatabase
from tertulia.turns import Prompt, Turn, model, user

CAT, DOG = b"\xff\xd8 a cat", b"\xff\xd8 a dog"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONG_AGO = NOON - 30 * DAY
TOMORROW = NOON + DAY


def a_file(data: bytes = CAT, **changes: Any) -> StoredFile:
    fields: dict[str, Any] = {"sha256": sha256(data).hexdigest(), "size": len(data), "mime": "image/jpeg"}
    return StoredFile(**fields | changes)


def a_handle(data: bytes = CAT, **changes: Any) -> Handle:
    fields: dict[str, Any] = {
        "sha256": sha256(data).hexdigest(),
        "account": "gemini-1f",
        "name": "files/p-1",
        "uri": "https://files.example/p-1",
        "mime": "image/jpeg",
        "expires_at": NOON + 2 * DAY,
    }
    return Handle(**fields | changes)


def a_picture(unique_id: str = "cat", data: bytes = CAT) -> Media:
    return Media(media_kind="photo", unique_id=unique_id, sha256=sha256(data).hexdigest())


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "bot.db", durable=False) as opened:
        yield opened


async def add(store: Store, unique_id: str = "cat", data: bytes = CAT, *, at: datetime = NOON) -> StoredFile:
    return await store.media.add(unique_id, data, a_file(data), at=at)


async def sweep(store: Store, at: datetime = TOMORROW) -> int:
    return await store.media.sweep(unused_since=LONG_AGO, at=at)


def on_disk(store: Store) -> set[str]:
    return store.media.folder.names()


async def test_a_file_is_found_by_its_media_and_by_its_hash(store: Store) -> None:
    facts = a_file(width=640, height=480, seconds=2.5, pages=3)
    stored = await store.media.add("cat", CAT, facts, at=NOON)
    await store.media.fail("dog", FetchFailure(why="too large", failures=2, retry_at=TOMORROW), at=NOON)

    assert stored == facts
    assert await store.media.find(["cat", "dog", "hen"]) == {
        "cat": facts,
        "dog": FetchFailure(why="too large", failures=2, retry_at=TOMORROW),
    }
    assert await store.media.get([facts.sha256, "0" * 64]) == {facts.sha256: facts}
    assert await store.media.read(facts.sha256, at=NOON) == CAT
    assert await store.media.find([]) == await store.media.get([]) == {}


async def test_a_file_is_beside_the_store(tmp_path: Path, store: Store) -> None:
    assert not (tmp_path / "bot.db-media").exists()

    stored = await add(store)

    assert (tmp_path / "bot.db-media" / stored.sha256[:2] / stored.sha256).read_bytes() == CAT


async def test_the_hash_and_the_size_are_those_of_the_bytes(store: Store) -> None:
    assert await store.media.add("cat", CAT, a_file(DOG), at=NOON) == a_file(CAT)


async def test_a_later_success_replaces_a_failure_and_no_failure_a_file(store: Store) -> None:
    await store.media.fail("cat", FetchFailure(why="no answer"), at=NOON)
    await add(store)
    await store.media.fail("cat", FetchFailure(why="no answer"), at=NOON)

    assert await store.media.find(["cat"]) == {"cat": a_file()}


async def test_media_with_the_same_bytes_have_one_file(store: Store) -> None:
    await add(store, "cat")
    await add(store, "the same cat")

    assert on_disk(store) == {a_file().sha256}
    assert await store.media.find(["cat", "the same cat"]) == {"cat": a_file(), "the same cat": a_file()}


async def test_a_damaged_file_is_to_be_fetched_again(store: Store) -> None:
    stored = await add(store)
    await store.media.add_handle(a_handle(), at=NOON)
    path = store.media.folder.locate(stored.sha256)
    assert path
    path.write_bytes(b"?")

    assert await store.media.read(stored.sha256, at=NOON) is None
    assert await store.media.find(["cat"]) == {}
    assert await store.media.unwanted_handles() == [a_handle()]
    assert await add(store) == stored
    assert await store.media.read(stored.sha256, at=NOON) == CAT


async def test_forms_of_a_file_are_found_by_their_name(store: Store) -> None:
    source = (await add(store)).sha256
    await store.media.add_form(source, "small", FileForm(file=a_file(DOG)), data=DOG, at=NOON)
    await store.media.add_form(source, "text", FileForm(text="three pages"), at=NOON)
    await store.media.add_form(source, "still", FileForm(failure="no picture in it"), at=NOON)

    assert [await store.media.form(source, form) for form in ("small", "text", "still", "wav")] == [
        FileForm(file=a_file(DOG)),
        FileForm(text="three pages"),
        FileForm(failure="no picture in it"),
        None,
    ]
    assert await store.media.read(a_file(DOG).sha256, at=NOON) == DOG


async def test_no_form_is_stored_of_a_file_that_is_gone(store: Store) -> None:
    await store.media.add_form("0" * 64, "small", FileForm(file=a_file(DOG)), data=DOG, at=NOON)

    assert await store.media.form("0" * 64, "small") is None
    assert await store.media.get([a_file(DOG).sha256]) == {}


async def test_the_newest_handle_of_a_file_is_used_and_the_older_one_unwanted(store: Store) -> None:
    await add(store)
    old, new, other = a_handle(), a_handle(name="files/p-2"), a_handle(account="gemini-2e")
    for handle in (old, other, new):
        await store.media.add_handle(handle, at=NOON)

    assert await store.media.handle(a_file().sha256, "gemini-1f") == new
    assert await store.media.handle(a_file().sha256, "gemini-2e") == other
    assert await store.media.unwanted_handles() == [old]
    await store.media.remove_handle(old)
    await store.media.remove_handle(new)  # it is wanted
    assert await store.media.unwanted_handles() == []
    assert await store.media.handle(a_file().sha256, "gemini-1f") == new


@pytest.mark.parametrize("name", ["files/p-1", "https://files.example/p-1"])
async def test_a_handle_that_the_service_no_longer_has_is_dropped(store: Store, name: str) -> None:
    await add(store)
    await store.media.add_handle(a_handle(), at=NOON)

    assert not await store.media.drop_handle("gemini-2e", name)
    assert await store.media.drop_handle("gemini-1f", name)
    assert await store.media.handle(a_file().sha256, "gemini-1f") is None


async def test_a_handle_of_a_file_that_went_meanwhile_is_unwanted(store: Store) -> None:
    await store.media.add_handle(a_handle(), at=NOON)

    assert await store.media.handle(a_file().sha256, "gemini-1f") is None
    assert await store.media.unwanted_handles() == [a_handle()]


async def test_a_file_that_nothing_refers_to_goes_with_its_forms_and_its_handles_are_unwanted(store: Store) -> None:
    source = (await add(store)).sha256
    await store.media.add_form(source, "small", FileForm(file=a_file(DOG)), data=DOG, at=NOON)
    await store.media.add_handle(a_handle(), at=NOON)
    await store.media.add_handle(a_handle(DOG, name="files/p-2"), at=NOON)

    assert await sweep(store) == 2

    assert on_disk(store) == set()
    assert await store.media.find(["cat"]) == {}
    assert await store.media.form(source, "small") is None
    assert await store.media.unwanted_handles() == [a_handle(), a_handle(DOG, name="files/p-2")]


async def test_a_form_that_somebody_also_sent_stays(store: Store) -> None:
    source = (await add(store)).sha256
    await store.media.add_form(source, "small", FileForm(file=a_file(DOG)), data=DOG, at=NOON)
    await add(store, "dog", DOG)
    await store.inbox.receive(a_message(parts=(a_picture("dog", DOG),)), at=NOON)

    assert await sweep(store) == 1
    assert on_disk(store) == {a_file(DOG).sha256}


async def test_a_file_of_a_message_stays_until_the_message_is_deleted(store: Store) -> None:
    await add(store)
    await store.inbox.receive(a_message(parts=(a_picture(),)), at=NOON)

    assert await sweep(store) == 0
    await store.inbox.delete(GROUP, "m1", at=NOON)
    assert await sweep(store) == 1


async def test_a_file_stays_when_its_place_migrates_and_goes_with_its_message_there(store: Store) -> None:
    new = Place(platform="telegram", id="-100456", kind="group")
    await add(store)
    await store.inbox.receive(a_message(parts=(a_picture(),)), at=NOON)
    changes = [PlaceMigrated(old=GROUP, new=new)]
    await store.updates.apply("telegram", changes, key="u1", raw=None, at=NOON, keep=DAY)

    assert await sweep(store) == 0
    await store.inbox.delete(new, f"{GROUP.id}:m1", at=NOON)
    assert await sweep(store) == 1


async def test_a_file_of_two_messages_stays_until_both_are_deleted(store: Store) -> None:
    await add(store)
    for number in ("1", "2"):
        await store.inbox.receive(a_message(id=number, parts=(a_picture(),)), at=NOON)

    await store.inbox.delete(GROUP, "1", at=NOON)
    assert await sweep(store) == 0
    await store.inbox.delete(GROUP, "2", at=NOON)
    assert await sweep(store) == 1


async def test_a_file_in_a_quote_stays(store: Store) -> None:
    await add(store, 'a "cat"')
    await add(store, "dog", DOG)
    quote = Quote(message_id="0", author=BOB, parts=(a_picture('a "cat"'),))
    await store.inbox.receive(a_message(reply_to=quote), at=NOON)

    assert await sweep(store) == 1
    assert on_disk(store) == {a_file(CAT).sha256}


async def test_a_file_in_the_quote_of_a_hidden_message_goes(store: Store) -> None:
    await add(store)
    quote = Quote(message_id="0", author=BOB, parts=(a_picture(),))
    await store.inbox.receive(a_message("I live in Kyiv", reply_to=quote), at=NOON)
    await store.facts.learn([a_fact("lives in Kyiv", id="home")])

    await store.facts.forget(["home"])

    assert await sweep(store) == 1


async def test_a_file_in_the_turns_of_an_answer_stays_until_the_answer_is_deleted(store: Store) -> None:
    await add(store)
    shown = Turn(role="user", parts=(ToolResult(name="look", id="a", media=(a_picture(),)),))
    await add_own(store, a_message("A cat.", id="2", author=GRYAG), [shown, model("A cat.")])

    assert await sweep(store) == 0
    await store.inbox.delete(GROUP, "2", at=NOON)
    assert await sweep(store) == 1


async def test_a_file_of_an_open_run_stays_until_it_ends(store: Store) -> None:
    await add(store, "cat", CAT)
    await add(store, "dog", DOG)
    await store.inbox.receive(a_message(), at=NOON)
    run = a_run()
    await store.runs.begin(run, prompt=Prompt.of(user(a_picture())), at=NOON)
    shown = ToolResult(name="look", id="a", media=(a_picture("dog", DOG),))
    await store.runs.begin_tool(run, a_tool_run())
    await store.runs.end_tool(run, a_tool_run(result=shown, ended_at=NOON))

    assert await sweep(store) == 0
    await store.runs.end(a_run(status="done", ended_at=NOON), replies=[], tasks=[])
    assert await sweep(store) == 2


async def test_a_file_of_a_reply_that_is_not_sent_stays(store: Store) -> None:
    await add(store)
    await store.outbox.put(an_outgoing(reply=Reply(place=GROUP, text="", media=(a_picture(),))))

    assert await sweep(store) == 0
    await store.outbox.change(an_outgoing(status="dropped"))
    assert await sweep(store) == 1


async def test_a_file_of_a_task_that_waits_stays(store: Store) -> None:
    await add(store)
    await store.tasks.add([a_task(args={"media": [{"sha256": a_file().sha256}]})])

    assert await sweep(store) == 0
    await store.tasks.cancel("t1", why="never mind")
    assert await sweep(store) == 1


async def test_a_file_that_was_used_within_the_hour_stays(store: Store) -> None:
    await add(store)

    assert await sweep(store, NOON + HOUR) == 0
    assert await sweep(store, NOON + 2 * HOUR) == 1


async def test_a_file_that_was_not_used_for_long_goes_though_a_message_has_it(store: Store) -> None:
    await add(store)
    await add(store, "dog", DOG)
    await store.inbox.receive(a_message(parts=(a_picture(), a_picture("dog", DOG))), at=NOON)
    later = NOON + 40 * DAY
    assert await store.media.read(a_file(DOG).sha256, at=later) == DOG

    assert await store.media.sweep(unused_since=NOON + 10 * DAY, at=later) == 1
    assert on_disk(store) == {a_file(DOG).sha256}


async def test_a_file_is_used_by_its_media_its_handles_and_its_forms(store: Store) -> None:
    names = ("cat", "dog", "hen")
    for name in names:
        await store.inbox.receive(a_message(id=name, parts=(a_picture(name, name.encode()),)), at=NOON)
        await add(store, name, name.encode())
    cat, dog, hen = (a_file(name.encode()).sha256 for name in names)
    await store.media.add_form(hen, "small", FileForm(file=a_file(b"egg")), data=b"egg", at=NOON)
    await store.media.add_handle(a_handle(b"dog"), at=NOON)
    later = NOON + 40 * DAY

    await store.media.find(["cat"], at=later)
    await store.media.handle(dog, "gemini-1f", at=later)
    await store.media.read(a_file(b"egg").sha256, at=later)

    assert await store.media.sweep(unused_since=NOON + 10 * DAY, at=later) == 0
    assert on_disk(store) == {cat, dog, hen, a_file(b"egg").sha256}


async def test_use_is_stored_once_a_day(store: Store) -> None:
    await add(store)
    writes: list[str] = []
    cast("SqliteDatabase", store.writer.database).set_trace_callback(writes.append)

    for hours in (1, 23):
        await store.media.read(a_file().sha256, at=NOON + hours * HOUR)
    assert writes == []
    await store.media.read(a_file().sha256, at=NOON + 25 * HOUR)
    assert [text.split(" SET")[0] for text in writes if text.startswith("UPDATE")] == ["UPDATE files"]


async def test_handles_that_have_expired_are_removed(store: Store) -> None:
    await store.media.add_handle(a_handle(), at=NOON)

    await sweep(store, NOON + 3 * DAY)

    assert await store.media.unwanted_handles() == []


async def test_failures_go_with_their_messages_or_when_they_are_old(store: Store) -> None:
    failure = FetchFailure(why="too large")
    for name in ("sent", "unsent"):
        await store.media.fail(name, failure, at=NOON)
    await store.inbox.receive(a_message(parts=(a_picture("sent"),)), at=NOON)

    later = DescriptionFailure(why="busy", failures=1, retry_at=NOON)
    await store.descriptions.fail("sent", later, by="m")

    await sweep(store)
    assert await store.media.find(["sent", "unsent"]) == {"sent": failure}
    assert await store.descriptions.failures(["sent"], by="m") == {"sent": later}
    await store.media.sweep(unused_since=TOMORROW, at=TOMORROW)
    assert await store.media.find(["sent"]) == {}
    assert await store.descriptions.failures(["sent"], by="m") == {}


async def test_a_file_that_is_added_while_others_are_swept_does_not_vanish(store: Store) -> None:
    pictures = {f"p{number}": f"picture {number % 7}".encode() for number in range(70)}

    async def keep_adding() -> None:
        for name, data in pictures.items():
            await add(store, name, data, at=NOON)

    async def keep_sweeping() -> None:
        while not adding.done():
            await sweep(store)

    adding = asyncio.ensure_future(keep_adding())
    await asyncio.gather(adding, keep_sweeping())

    found = await store.media.find(list(pictures))
    files = {file.sha256 for file in found.values() if isinstance(file, StoredFile)}
    assert files == on_disk(store)


async def test_a_file_that_was_used_by_a_clock_that_was_ahead_goes_all_the_same(store: Store) -> None:
    await add(store, at=NOON + 400 * DAY)

    assert [await sweep(store, NOON), await sweep(store, NOON + 2 * HOUR)] == [0, 1]
    assert on_disk(store) == set()


async def test_a_fetch_that_ends_after_its_person_was_forgotten_leaves_nothing(store: Store) -> None:
    await store.inbox.receive(a_message("", author=BOB, parts=(a_picture("bobs"),)), at=NOON)
    await store.forget(platform=a_message("").place.platform, author_id=BOB.id, at=NOON)

    with pytest.raises(StoreRefused):
        await add(store, "bobs")
    await store.media.fail("bobs", FetchFailure(why="late"), at=NOON)
    assert on_disk(store) == set()
    assert await store.media.find(["bobs"]) == {}

    await store.inbox.receive(a_message("", id="9", parts=(a_picture("bobs"),)), at=NOON)
    assert await add(store, "bobs") == a_file()  # somebody else sends it


@pytest.mark.parametrize("ends", ["done", "cancelled"])
async def test_a_form_that_is_written_while_its_person_is_forgotten_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    await store.inbox.receive(a_message("", author=BOB, parts=(a_picture("bobs"),)), at=NOON)
    source = (await add(store, "bobs")).sha256
    write = store.media.folder.write
    writing, go_on, written = (threading.Event() for _ in range(3))

    def slow_write(data: bytes) -> str:
        writing.set()
        go_on.wait()
        name = write(data)
        written.set()
        return name

    monkeypatch.setattr(store.media.folder, "write", slow_write)
    form = asyncio.ensure_future(store.media.add_form(source, "small", FileForm(file=a_file(DOG)), data=DOG, at=NOON))
    await asyncio.to_thread(writing.wait)
    await store.forget(platform="telegram", author_id=BOB.id, at=NOON)
    if ends == "cancelled":
        form.cancel()
    go_on.set()
    await asyncio.to_thread(written.wait)
    await asyncio.wait([form])
    await store.media.add_form(source, "text", FileForm(text="of Bob"), at=NOON)

    assert on_disk(store) == set()
    assert {row["table"] async for row in store.export()} & {"files", "file_forms", "media_files"} == set()


async def test_what_is_fetched_of_a_quote_after_its_author_was_forgotten_leaves_nothing(store: Store) -> None:
    quote = Quote(
        message_id="0", author=BOB, parts=(a_picture("bobs"), Media(media_kind="photo", unique_id="", file_id="x"))
    )
    keys = [file_key(part) for part in quote.parts if isinstance(part, Media)]
    told = a_message("look", reply_to=quote)
    await store.inbox.receive(a_message("hi", id="0", author=BOB), at=NOON)
    await store.inbox.receive(told, at=NOON)
    await store.forget(platform="telegram", author_id=BOB.id, at=NOON)

    for key in keys:
        with pytest.raises(StoreRefused):
            await add(store, key)
        await store.media.fail(key, FetchFailure(why="late"), at=NOON)
        await store.descriptions.describe(key, "late words", by="m", at=NOON, message=told)
        await store.descriptions.fail(key, DescriptionFailure(why="late", failures=1, retry_at=NOON), by="m")

    assert on_disk(store) == set()
    written = {"files", "media_files", "descriptions", "description_failures"}
    assert {row["table"] async for row in store.export()} & written == set()


async def test_media_that_somebody_else_quotes_are_fetched_though_their_sender_was_forgotten(store: Store) -> None:
    await store.inbox.receive(a_message("", author=BOB, parts=(a_picture("cat"),)), at=NOON)
    await store.forget(platform="telegram", author_id=BOB.id, at=NOON)
    quote = Quote(message_id="0", author=ALICE, parts=(a_picture("cat"),))
    await store.inbox.receive(a_message("look", id="2", reply_to=quote), at=NOON)

    assert await add(store, "cat") == a_file()


async def test_files_without_a_row_are_removed_by_a_sweep(store: Store) -> None:
    store.media.folder.write(CAT)

    await sweep(store)

    assert on_disk(store) == set()


async def test_what_an_earlier_process_left_is_removed_when_the_store_is_opened(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "bot.db") as store:
        await add(store)
        store.media.folder.write(DOG)
    inside = tmp_path / "bot.db-media" / a_file().sha256[:2]
    (inside / ".part-1").write_bytes(CAT[:3])

    async with Store.open(tmp_path / "bot.db", beside=True) as beside:
        assert on_disk(beside) == {a_file().sha256, a_file(DOG).sha256}
        assert (inside / ".part-1").exists()
    async with Store.open(tmp_path / "bot.db") as store:
        assert on_disk(store) == {a_file().sha256}
        assert [path.name for path in inside.iterdir()] == [a_file().sha256]


async def test_a_store_that_is_opened_beside_reads_files_and_changes_none(tmp_path: Path, store: Store) -> None:
    await add(store)
    path = store.media.folder.locate(a_file().sha256)
    assert path
    async with Store.open(tmp_path / "bot.db", beside=True) as beside:
        assert await beside.media.read(a_file().sha256, at=NOON + 9 * DAY) == CAT
        with pytest.raises(StoreBusy, match="only by the process that has the store"):
            await add(beside, "dog", DOG)
        with pytest.raises(StoreBusy, match="only by the process that has the store"):
            await sweep(beside)
        path.write_bytes(b"?")
        assert await beside.media.read(a_file().sha256, at=NOON) is None
    assert path.exists()
    assert await store.media.find(["cat"]) == {"cat": a_file()}


async def test_the_named_folder_is_remembered_and_files_move_to_another_one(tmp_path: Path) -> None:
    db, first, second = tmp_path / "bot.db", tmp_path / "first", tmp_path / "second"
    async with Store.open(db) as store:
        await add(store)
    for folder in (first, second):
        async with Store.open(db, media_folder=folder) as store:
            assert await store.media.read(a_file().sha256, at=NOON) == CAT
            assert store.media.folder.path == folder
    async with Store.open(db) as store, Store.open(db, beside=True) as beside:
        assert store.media.folder.path == beside.media.folder.path == second
        assert await beside.media.read(a_file().sha256, at=NOON) == CAT
    async with Store.open(db, media_folder=f"{db}-media") as store:
        assert await store.media.read(a_file().sha256, at=NOON) == CAT
    assert [folder.exists() for folder in (first, second)] == [False, False]


async def test_a_check_names_files_that_are_missing_or_damaged(tmp_path: Path, store: Store) -> None:
    for name in ("cat", "dog", "hen"):
        await add(store, name, name.encode())
    assert await store.check() == []
    cat, dog = (store.media.folder.locate(a_file(name).sha256) for name in (b"cat", b"dog"))
    assert cat
    assert dog
    cat.unlink()
    dog.write_bytes(b"god")

    faults = [
        f"the file {name} in {tmp_path}/bot.db-media is missing or damaged" for name in sorted([cat.name, dog.name])
    ]
    assert await store.check() == faults
    assert dog.exists()


async def test_a_backup_has_the_files_too(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "bot.db", media_folder=tmp_path / "photos") as store:
        await add(store)
        await add(store, "dog", DOG)
        gone = store.media.folder.locate(a_file(DOG).sha256)
        assert gone
        gone.unlink()
        await store.backup(tmp_path / "copy.db")
    async with Store.open(tmp_path / "copy.db") as copy:
        assert copy.media.folder.path == tmp_path / "copy.db-media"
        assert await copy.media.find(["cat", "dog"]) == {"cat": a_file()}
        assert await copy.media.read(a_file().sha256, at=NOON) == CAT


async def test_a_backup_replaces_no_files(tmp_path: Path, store: Store) -> None:
    (tmp_path / "copy.db-media").mkdir()
    (tmp_path / "copy.db-media" / "mine").write_text("mine")

    with pytest.raises(InvalidValue, match=r"copy\.db-media is there already; a backup replaces no file"):
        await store.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()

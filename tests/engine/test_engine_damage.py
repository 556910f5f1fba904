"""A file that turns out to be damaged while an engine uses it: nobody waits for ever, and nothing said is lost."""

import logging
from pathlib import Path
from typing import Any

import pytest

from engine.engines import DIRECT, engine_with, said
from people import NOON
from stored_rows import change, on_file
from tertulia.engine.background import RealClock
from tertulia.engine.memory import Memory
from tertulia.errors import StoreBroken
from tertulia.messages import Message, Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform

BROKEN, MENDED = "{", '[{"kind":"text","text":"hi"}]'  # the parts of a message
OTHER = Place(platform="recorded", id="8", kind="direct")


async def never(seconds: float) -> None:
    raise AssertionError(f"tried again in {seconds} s")


def changed(path: Path, parts: str) -> None:
    on_file(path, change, "messages", {"id": 1}, parts=parts)


async def a_store_with(path: Path, *messages: Message) -> None:
    async with Store.open(path) as store:
        for message in messages:
            await store.inbox.receive(message, at=NOON)


async def test_a_damaged_place_says_so_and_others_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, platform = tmp_path / "s.db", RecordedPlatform()
    await a_store_with(path, said("hi"))
    changed(path, BROKEN)

    with caplog.at_level(logging.ERROR, "tertulia"):
        async with (
            Store.open(path) as store,
            engine_with(Scripted("Hello!"), platform, store=store, sleep=never) as engine,
        ):
            with pytest.raises(StoreBroken, match=r"s\.db: it holds something that cannot be read"):
                await engine.settled()
            assert await engine.receive(said("and here?", 2, place=OTHER))
            with pytest.raises(StoreBroken):
                await engine.settled()

    assert platform.texts == ["Hello!"]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["StoreBroken"]


async def test_what_could_not_be_read_is_answered_once_the_file_is_mended(tmp_path: Path) -> None:
    path, platform = tmp_path / "s.db", RecordedPlatform()
    await a_store_with(path, said("hi"))
    changed(path, BROKEN)

    async with Store.open(path) as store, engine_with(Scripted(), platform, store=store, sleep=never) as engine:
        assert await engine.receive(said("are you there?", 2))
        with pytest.raises(StoreBroken):
            await engine.settled()
    changed(path, MENDED)
    async with Store.open(path) as store, engine_with(Scripted("Hello!", "Yes."), platform, store=store) as engine:
        await engine.settled()
        kept = await store.log.get(DIRECT, "2")

    assert platform.texts in (["Hello!"], ["Hello!", "Yes."])
    assert kept is not None


@pytest.mark.parametrize(
    ("room", "method"),
    [
        ("runs", "begin"),
        ("runs", "add_record"),
        ("runs", "end"),
        ("inbox", "snapshot"),
        ("outbox", "change"),
        ("log", "in_snapshot"),
    ],
)
async def test_a_run_that_meets_the_damage_ends_and_is_taken_up_with_the_next_message(
    tmp_path: Path, room: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = RecordedPlatform()
    model = Scripted(*["Hello!"] * 4)
    async with Store.open(tmp_path / "s.db") as store, engine_with(model, platform, store=store, sleep=never) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(getattr(store, room), method, broken)
            await engine.receive(said("hi"))
            with pytest.raises(StoreBroken, match="malformed"):
                await engine.settled()
    async with Store.open(tmp_path / "s.db") as store, engine_with(model, platform, store=store) as engine:
        await engine.settled()
        await engine.receive(said("and?", 2))
        await engine.settled()

    assert platform.texts == ["Hello!", "Hello!"]


async def broken(*_: Any, **__: Any) -> Any:
    raise StoreBroken("the store s.db: the file is damaged (database disk image is malformed)")


async def test_an_open_run_is_taken_up_before_the_next_message_of_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = RecordedPlatform()
    model = Scripted("Hello!", "Hello!", "And more.")
    async with Store.open(tmp_path / "s.db") as store, engine_with(model, platform, store=store, sleep=never) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(store.runs, "add_record", broken)
            await engine.receive(said("hi"))
            with pytest.raises(StoreBroken):
                await engine.settled()
        await engine.receive(said("and?", 2))
        with pytest.raises(StoreBroken):
            await engine.settled()

    assert platform.texts == ["Hello!", "And more."]


async def test_who_receives_is_told_that_nothing_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Store.open(":memory:") as store, engine_with(Scripted(), store=store, sleep=never) as engine:
        monkeypatch.setattr(store.inbox, "receive", broken)
        with pytest.raises(StoreBroken, match="malformed"):
            await engine.receive(said("hi"))


@pytest.mark.parametrize("method", ["next_due", "take", "end"])
async def test_tasks_that_cannot_be_read_or_ended_hold_nobody_up(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Store.open(":memory:") as store:
        monkeypatch.setattr(store.tasks, method, broken)
        async with engine_with(Scripted(), store=store, sleep=never) as engine:
            task = Task(id="t", kind="send", place=DIRECT, args={"text": "Now!"}, due_at=NOON)
            await engine.schedule([task])
            with pytest.raises(StoreBroken, match="malformed"):
                await engine.settled()
            await engine.schedule([task])
            with pytest.raises(StoreBroken, match="malformed"):
                await engine.settled()


async def test_memory_that_meets_the_damage_says_so_and_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    platform = RecordedPlatform()
    async with Store.open(":memory:") as store:
        memory = Memory(store, clock=RealClock(sleep=never))
        monkeypatch.setattr(store.facts, "learn", broken)
        with caplog.at_level(logging.ERROR, "tertulia"):
            async with engine_with(Scripted("Good."), platform, store=store, memory=memory) as engine:
                await engine.receive(said("I live in Kyiv."))
                await engine.settled(learned=False)
                with pytest.raises(StoreBroken, match="malformed"):
                    await engine.settled()

    assert platform.texts == ["Good."]
    assert [record.getMessage() for record in caplog.records] == [
        "learning in 7: the store s.db: the file is damaged (database disk image is malformed)"
    ]

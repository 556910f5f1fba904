"""Old prompts and raw updates are removed, while everything that is needed stays."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

import stored_rows
from engine.engines import AT_ONCE, engine_with, said, talked, until
from people import GROUP, NOON, a_message
from store.builders import PROMPT, a_record, a_run, prompt_sent
from stored_rows import on
from tertulia.engine.behavior import Behavior
from tertulia.engine.retention import INTERVAL, Retention
from tertulia.errors import InvalidValue, PromptRemoved, StoreFull
from tertulia.media.values import MediaOptions, StoredFile
from tertulia.models.scripted import Scripted
from tertulia.parts import Media
from tertulia.platform import Received
from tertulia.run.journal import Run, SentPrompt
from tertulia.store import Store
from tertulia.store.prompts import remove_prompts
from tertulia.testing import Clock
from tertulia.turns import Layer, Prompt, user

DAY = timedelta(days=1)
LONG_AGO = NOON - 40 * DAY
HISTORY = "what was said before. " * 50


async def ended(store: Store, name: str, prompt: Prompt = PROMPT, *, at: datetime = LONG_AGO) -> Run:
    """A run with one prompt that ended at that time."""
    run = a_run(id=name, target=name, taken=(name,), began_at=at, horizon=1)
    await store.inbox.receive(a_message(id=name), at=at)
    await store.runs.begin(run, prompt, at=at)
    await store.runs.add_record(run, 0, a_record(at=at))
    await store.runs.end(replace(run, status="done", ended_at=at))
    return run


def growing(number: int) -> Prompt:
    """A prompt that begins like the one before."""
    said = user(HISTORY + " ".join(f"message {one}" for one in range(number)))
    return Prompt(layers=(Layer(name="static", instruction="Be kind."), Layer(name="buffered", turns=(said,))))


async def removed(store: Store, *, before: datetime = NOON - 30 * DAY) -> int:
    return sum([count async for count in store.prompts.remove_old(before, at=NOON)])


async def count(store: Store, table: str) -> int:
    return await on(store, stored_rows.count, table)


async def test_prompts_of_runs_that_ended_long_ago_are_removed(store: Store) -> None:
    await ended(store, "old")
    await ended(store, "new", at=NOON - 29 * DAY)

    assert await removed(store) == 1

    gone = "the prompts of run 'old' were removed on 2025-01-15: they were older than Behavior.keep_prompts"
    with pytest.raises(PromptRemoved, match=gone):
        await store.prompts.sent("old", 0)
    assert await prompt_sent(store, "new", 0) == PROMPT
    assert await store.prompts.sent("nobody's", 0) is None
    assert await store.check() == []
    assert await removed(store) == 0


async def test_the_age_of_a_prompt_is_that_of_the_end_of_its_run_in_any_zone(store: Store) -> None:
    await ended(store, "old", at=datetime.fromisoformat("2025-01-15T13:59:00+02:00"))
    await ended(store, "new", at=datetime.fromisoformat("2025-01-15T11:01:00-01:00"))

    assert await removed(store, before=NOON) == 1

    assert await prompt_sent(store, "new", 0) == PROMPT


async def test_a_run_that_has_not_ended_keeps_its_prompts_and_is_resumed(store: Store) -> None:
    run = a_run(began_at=LONG_AGO)
    await store.runs.begin(run, PROMPT, at=LONG_AGO)
    await store.runs.ask(run, 1, growing(1), at=LONG_AGO)

    assert await removed(store) == 0

    journal = await store.runs.journal(run.id)
    assert journal
    assert (journal.prompt, journal.step) == (growing(1), 1)
    assert await store.runs.open() == [run]


async def test_what_remains_is_whole_after_every_transaction(store: Store) -> None:
    for number in range(10):
        await ended(store, f"r{number}", growing(number), at=LONG_AGO + number * DAY)

    left = []
    async for _ in store.prompts.remove_old(LONG_AGO + 7 * DAY, at=NOON, page=3, at_once=2):
        assert await store.check() == []
        assert await prompt_sent(store, "r9", 0) == growing(9)
        left.append(await count(store, "prompts"))

    assert left == [8, 7, 5, 4, 3]
    assert await count(store, "layers") == 4  # the static one, and a history for each prompt
    assert [await prompt_sent(store, f"r{number}", 0) for number in (7, 8, 9)] == [growing(n) for n in (7, 8, 9)]


async def test_layers_of_other_places_stay(store: Store) -> None:
    await ended(store, "old", growing(1))
    elsewhere = a_run(id="new", place=replace(GROUP, id="-2"))
    await store.runs.begin(elsewhere, growing(1), at=NOON)

    await removed(store)

    assert await prompt_sent(store, "new", 0) == growing(1)


async def test_new_prompts_are_stored_whole_where_those_they_began_like_are_gone(store: Store) -> None:
    await ended(store, "r1", growing(1))
    await removed(store)

    await ended(store, "r2", growing(1), at=NOON)
    await ended(store, "r3", growing(2), at=NOON)

    assert [await prompt_sent(store, name, 0) for name in ("r2", "r3")] == [growing(1), growing(2)]
    assert await store.check() == []


async def test_a_kill_between_two_transactions_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        for number in range(4):
            await ended(store, f"r{number}", growing(number))
        await store.writer.run(lambda database: remove_prompts(database, ["r0", "r2"], NOON))

    async with Store.open(tmp_path / "s.db") as store:
        assert await store.check() == []
        assert [await prompt_sent(store, name, 0) for name in ("r1", "r3")] == [growing(1), growing(3)]
        assert await removed(store) == 2
        assert (await count(store, "layers"), await count(store, "prompt_layers")) == (0, 0)


async def test_a_running_engine_removes_at_its_start(store: Store) -> None:
    clock = Clock()
    await ended(store, "old")
    await store.updates.apply("recorded", (), key="u1", raw=b"{", at=clock.now() - 8 * DAY, keep=30 * DAY)

    async def is_removed() -> bool:
        return await count(store, "prompts") == 0 and not await store.updates.unread("recorded")

    async with engine_with(Scripted("Hello!"), store=store, now=clock.now) as engine:
        await until(is_removed)
        await talked(engine, said("hello"))

        assert await count(store, "prompts") == 1


async def test_how_long_they_are_kept_is_a_setting(store: Store) -> None:
    await ended(store, "old")
    kept, gone = (
        Retention(store.prompts, store.updates, store.media, Behavior(keep_prompts=days * DAY), now=lambda: NOON)
        for days in (41, 39)
    )

    assert [await kept.remove_old(), await gone.remove_old()] == [0, 1]


async def test_files_that_are_not_used_or_that_nothing_refers_to_are_removed(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    photos = [Media(media_kind="photo", unique_id=name) for name in ("old", "new")]
    await store.inbox.receive(a_message(parts=tuple(photos)), at=NOON)
    for name, at in (("old", LONG_AGO), ("new", NOON - DAY), ("nobody's", NOON - DAY)):
        await store.media.add(name, name.encode(), StoredFile(sha256="", size=0, mime="image/png"), at=at)
    caplog.set_level(logging.INFO, logger="tertulia")

    options = MediaOptions(keep=39 * DAY)
    retention = Retention(store.prompts, store.updates, store.media, AT_ONCE, options=options, now=lambda: NOON)
    await retention.remove_old()

    assert list(await store.media.find(["old", "new", "nobody's"])) == ["new"]
    assert "2 files of media were not used for 39 days, 0:00:00, or nothing refers to them: removed" in caplog.text


@pytest.mark.parametrize("days", [-1, 36_501])
@pytest.mark.parametrize("field", ["keep_prompts", "keep_updates"])
def test_a_time_that_cannot_be_is_refused(field: str, days: int) -> None:
    with pytest.raises(InvalidValue, match="keep_updates and keep_prompts are 0 to 36500 days"):
        Behavior(**{field: days * DAY})  # type: ignore[arg-type]


async def test_every_day_again_also_after_a_day_without_room(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    clock, passes = Clock(), []

    class Full:
        async def sent(self, run_id: str, step: int) -> SentPrompt | None:
            return None

        async def remove_old(self, before: datetime, *, at: datetime) -> AsyncIterator[int]:
            passes.append(at)
            if len(passes) == 1:
                raise StoreFull("there is no room")
            yield 1

        async def sweep(self, *, unused_since: datetime, at: datetime) -> int:
            return 0

    full = Full()
    retention = Retention(full, store.updates, full, AT_ONCE, now=clock.now, sleep=clock.sleep)
    caplog.set_level(logging.INFO, logger="tertulia")
    running = asyncio.create_task(retention.run())
    for number in range(3):
        await until(lambda: _has(passes, number + 1))  # noqa: B023
        await clock.advance(INTERVAL + 1)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

    assert [(at - passes[0]).days for at in passes[:3]] == [0, 1, 2]
    assert "what is no longer needed is removed later: there is no room" in caplog.text
    assert "1 prompts were older than 30 days" in caplog.text


async def _has(passes: list[datetime], number: int) -> bool:
    return len(passes) >= number


async def test_raw_updates_are_removed_without_a_new_one_also_unread_ones(store: Store) -> None:
    week = 7 * DAY
    received = [Received(message=a_message())]
    await store.updates.apply("telegram", received, key="read", raw=b"{}", at=NOON, keep=week)
    await store.updates.apply("telegram", (), key="unread", raw=b"?", at=NOON, keep=week)

    async def raw() -> int:
        return sum(found is not None for (found,) in await on(store, stored_rows.read, "updates", "raw"))

    await store.updates.remove_old(week, at=NOON + week)
    kept = await raw()
    await store.updates.remove_old(week, at=NOON + week + DAY)

    assert (kept, await raw(), await count(store, "updates")) == (2, 0, 2)
    assert await store.updates.unread("telegram") == []
    assert not (await store.updates.apply("telegram", received, key="read", raw=None, at=NOON, keep=week)).new

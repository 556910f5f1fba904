"""A person is forgotten in PostgreSQL as in a file: no row has a word of theirs."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from people import NOON, a_message
from store.forget.test_export import HER, SECRET, everything_about_her
from store.forget.test_person import everything_about
from tertulia.store import Store
from tertulia.store.threads import Operation

WORDS = (SECRET, "flowerpot", "Xanthippe", HER.id)


@pytest.fixture
async def store(url: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(url, media_folder=tmp_path) as opened:
        yield opened


async def words_left(store: Store) -> list[str]:
    rows = [json.dumps(row, ensure_ascii=False, default=str) async for row in store.export()]
    return [word for word in WORDS if any(word in row for row in rows)]


@pytest.mark.parametrize("fill", [everything_about, everything_about_her])
async def test_what_a_forget_plans_is_what_it_removes(store: Store, fill: Callable[[Store], Awaitable[None]]) -> None:
    await fill(store)
    assert await words_left(store)
    plan = await store.plan_forget(platform="telegram", author_id=HER.id)
    exported = await store.export_person(platform="telegram", author_id=HER.id)

    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert report == plan.report()
    assert {name: len(exported[name]) for name in ("messages", "runs", "tasks")} == {
        name: getattr(report, name) for name in ("messages", "runs", "tasks")
    }
    assert await words_left(store) == []
    assert await store.check() == []


async def test_a_forget_that_ended_with_its_process_is_done_by_the_next(url: str, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    async with Store.open(url, media_folder=tmp_path) as store:
        await everything_about(store)
        write, units = store.writer.run, count(1)

        async def run(unit: Operation[Any], **named: Any) -> Any:
            if next(units) == 3:
                raise Killed
            return await write(unit, **named)

        store.writer.run = run  # type: ignore[assignment, method-assign]
        with pytest.raises(Killed):
            await store.forget(platform="telegram", author_id=HER.id, at=NOON)
        assert await store.names_by_platform(HER.id)

    async with Store.open(url, media_folder=tmp_path) as store:
        assert await store.names_by_platform(HER.id) == {}
        assert await words_left(store) == []
        assert await store.check() == []


async def test_messages_are_hidden_and_emptied_in_their_order(store: Store) -> None:
    for number in range(5):
        await store.inbox.receive(a_message("hi", id=str(number), author=HER), at=NOON)

    await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    changed = [row["number"] async for row in store.export() if row["table"] == "message_changes"]
    assert changed == [4, *range(4), *range(5)]

"""Forgetting facts is done in short steps: whatever comes between two of them, it ends as if nothing had."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.engines import ALICE, BOB, GROUP, ME, said
from memory.known import a_fact
from people import NOON
from store.builders import add_own
from tertulia.memory.values import Fact
from tertulia.parts import Text
from tertulia.store import Store
from tertulia.store.forget import facts as forgetting
from tertulia.store.threads import ConnectionThread, Operation

FACT = a_fact("Is allergic to peanuts.", about=ALICE, place=GROUP, id="f", sources=("0",))
STATES = "I am allergic to peanuts"
LATER = NOON + timedelta(days=1)


class Killed(BaseException):
    """The process ends."""


class Steps:
    """A thread of the store that counts what it runs, and does something before one of its steps."""

    def __init__(self, thread: ConnectionThread, *, at: int, then: Callable[[], Any]) -> None:
        self._thread = thread
        self._at = at
        self._then = then
        self.count = 0

    async def run(self, operation: Operation[Any], **named: Any) -> Any:
        self.count += 1
        if self.count == self._at:
            await self._then()
        return await self._thread.run(operation, **named)


async def talk(store: Store) -> None:
    for number in range(12):
        text = (STATES, "hello", "it is late")[number % 3]
        await store.inbox.receive(said(text, number, place=GROUP, author=(ALICE, BOB)[number % 2]), at=NOON)
    await add_own(store, said("No peanuts, you are allergic.", 12, place=GROUP, author=ME))
    await store.facts.learn([FACT])


async def visible(store: Store) -> list[str]:
    messages = await store.log.read(GROUP, 0, 99)
    return ["".join(part.text for part in one.parts if isinstance(part, Text)) for one in messages if not one.deleted]


async def left_by_whole(at: Path) -> list[str]:
    async with Store.open(at) as store:
        await talk(store)
        assert await store.facts.forget([FACT.id], at=LATER) == 1
        return await visible(store)


async def forget_in_steps(store: Store, at: int, then: Callable[[], Any]) -> int:
    """Forget the fact, with something before a step of the writer; return how many steps there were."""
    steps = Steps(store.writer, at=at, then=then)
    store.facts._writer = store.facts._forgetting._writer = steps  # type: ignore[assignment]  # noqa: SLF001
    await store.facts.forget([FACT.id], at=LATER)
    return steps.count


async def kill() -> None:
    raise Killed


@pytest.mark.parametrize("step", range(1, 8))
async def test_whenever_the_process_is_killed_the_next_one_forgets_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(forgetting, "AT_ONCE", 2)
    whole = await left_by_whole(tmp_path / "whole.db")
    async with Store.open(tmp_path / "s.db") as store:
        await talk(store)
        with pytest.raises(Killed):
            await forget_in_steps(store, step, kill)
        assert await store.facts.listed() == ([FACT] if step == 1 else [])

    async with Store.open(tmp_path / "s.db") as store:
        if step == 1:  # nothing was begun
            assert await store.facts.forget([FACT.id], at=LATER) == 1
        assert await visible(store) == whole
        assert (await store.facts.listed(), await store.facts.learn([FACT])) == ([], [])
        assert await store.check() == []


@pytest.mark.parametrize("step", range(1, 8))
async def test_what_is_said_while_it_is_forgotten_is_hidden_too(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(forgetting, "AT_ONCE", 2)
    monkeypatch.setattr(forgetting, "PAGE", 5)
    await talk(store)

    async def answer() -> None:
        await add_own(store, said("You are allergic to peanuts.", 20, place=GROUP, author=ME))
        await store.inbox.edit(said("My peanut allergy!", 4, place=GROUP, author=ALICE), at=NOON)

    assert await forget_in_steps(store, step, answer) >= step

    assert [text for text in await visible(store) if "allerg" in text] == [STATES] * 2  # Bob's
    assert await store.check() == []


async def test_a_fact_that_is_being_forgotten_is_in_no_read(store: Store) -> None:
    await talk(store)

    async def look() -> None:
        subject = FACT.subject
        found: list[Any] = [
            await store.facts.listed(),
            await store.facts.about(subject, place=GROUP, asked_by=subject),
            await store.facts.why(FACT.id),
        ]
        assert (found, await store.facts.get(FACT.id)) == ([[], [], []], None)
        same: list[Fact] = [FACT]
        assert await store.facts.learn(same) == []

    assert await forget_in_steps(store, 2, look) > 2

"""Episodes told in the background, and told again."""

import json
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from fakes import Meanwhile
from memory.talks import GARDEN, TRIP, a_said
from people import ALICE, BOB, DIRECT, GROUP, GRYAG, NOON, a_message
from store.builders import a_store_of
from tertulia.engine.log_views import VisibleLog
from tertulia.engine.memory.learner import PAGES, EpisodeWriter
from tertulia.errors import Overloaded
from tertulia.formats.imported import ImportedMessage
from tertulia.memory.episodes import EpisodeRules
from tertulia.messages import Message, Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store

DAY = timedelta(days=1)
TOLD = json.dumps({"topic": "Trip", "summary": "They go to Lviv by train.", "tags": ["lviv"], "importance": 0.9})


def days(count: int = 3) -> list[Message]:
    """A talk a day, of eight messages each."""
    talks = (TRIP, GARDEN)
    return [message for day in range(count) for message in a_said(talks[day % 2], start=8 * day, at=NOON + day * DAY)]


async def received(store: Store, messages: list[Message]) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


def an_episodist(store: Store, model: Scripted | None = None) -> EpisodeWriter:
    return EpisodeWriter(store.episodes, VisibleLog(store.log, store.place_settings.blocked), model=model)


async def spans(store: Store) -> list[tuple[int, int]]:
    return [(episode.start, episode.stop) for episode in await store.episodes.listed(GROUP)]


async def test_what_has_come_to_an_end_is_told_and_the_rest_stays_open() -> None:
    async with Store.open(":memory:") as store:
        await received(store, days())
        writer = an_episodist(store)

        writer.wake(GROUP)
        await writer.done()

        first, second = await store.episodes.listed(GROUP)
        assert [(first.start, first.stop), (second.start, second.stop)] == [(0, 8), (8, 16)]
        assert "Lviv" in first.topic
        assert second.people == (ALICE.id, BOB.id)
        assert await writer.write(GROUP) == 0


async def test_of_what_the_agent_alone_said_no_model_is_asked() -> None:
    model = Scripted(TOLD)
    async with Store.open(":memory:") as store:
        await received(store, [replace(one, author=GRYAG) for one in days(2)])
        assert await an_episodist(store, model).write(GROUP) == 1

    assert model.prompts == []


async def test_what_was_told_in_a_direct_chat_is_told_apart_from_the_group_it_became() -> None:
    group = replace(DIRECT, kind="group")
    said = [replace(one, place=DIRECT if at < 12 else group) for at, one in enumerate(days())]
    async with Store.open(":memory:") as store:
        await received(store, said[:12])
        await an_episodist(store).write(DIRECT)
        before = await store.episodes.listed(DIRECT)
        await received(store, said[12:])

        await an_episodist(store).write(group)

        assert [(one.start, one.stop) for one in before] == [(0, 8)]
        assert [(one.start, one.stop) for one in await store.episodes.listed(group)] == [(12, 16)]


async def test_a_direct_chat_that_was_a_group_meanwhile_begins_anew() -> None:
    group = replace(DIRECT, kind="group")
    said = [replace(one, place=group if 8 <= at < 12 else DIRECT) for at, one in enumerate(days())]
    async with Store.open(":memory:") as store:
        for part in (said[:8], said[8:12], said[12:]):
            await received(store, part)
            await an_episodist(store).write(part[-1].place)

        assert [(one.start, one.stop) for one in await store.episodes.listed(DIRECT)] == [(12, 16)]
        assert await store.episodes.visible_to(said[-1]) == await store.episodes.listed(DIRECT)
        assert await store.episodes.listed(group) == []


async def test_of_an_episode_that_was_cleared_in_part_the_rest_is_told_anew() -> None:
    async with Store.open(":memory:") as store:
        await received(store, days())
        await an_episodist(store).write(GROUP)
        assert await spans(store) == [(0, 8), (8, 16)]

        await store.place_settings.clear(GROUP, 4, at=NOON)
        cleared = await spans(store)
        await an_episodist(store).write(GROUP)

        assert (cleared, await spans(store)) == ([(8, 16)], [(4, 8), (8, 16)])


async def test_one_who_starts_later_takes_it_up(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await received(store, days())
        interrupted = an_episodist(store)
        interrupted.wake(GROUP)
        await interrupted.close()

    async with Store.open(tmp_path / "s.db") as store:
        writer = an_episodist(store)
        await writer.start()
        await writer.done()

        assert await spans(store) == [(0, 8), (8, 16)]


async def test_reading_piece_by_piece_tells_the_same_as_at_once() -> None:
    async with Store.open(":memory:") as one, Store.open(":memory:") as other:
        for message in days(6):
            await received(one, [message])
            await an_episodist(one).write(GROUP)
        await received(other, days(6))
        await an_episodist(other).write(GROUP)

        assert await one.episodes.listed(GROUP) == await other.episodes.listed(GROUP)


async def test_a_model_tells_it_better_and_what_it_says_wrongly_is_not_taken() -> None:
    async with Store.open(":memory:") as store:
        await received(store, days())
        await an_episodist(store, Scripted(TOLD, "I will not.")).write(GROUP)

        first, second = await store.episodes.listed(GROUP)

        assert (first.topic, first.importance) == ("Trip", 0.9)
        assert "tomatoes" in second.topic


async def test_a_model_that_fails_delays_nothing() -> None:
    async with Store.open(":memory:") as store:
        await received(store, days())
        await an_episodist(store, Scripted(Overloaded("busy"), TOLD)).write(GROUP)

        assert await spans(store) == [(0, 8), (8, 16)]


async def test_a_model_is_not_asked_for_what_was_said_long_ago() -> None:
    async with Store.open(":memory:") as store:
        await received(store, [*days(2), *a_said(["ok"] * 1_100, start=16, at=NOON + 2 * DAY)])

        model = Scripted()
        await EpisodeWriter(store.episodes, store.log, model=model, rules=EpisodeRules(most=1_000)).write(GROUP)

        assert ((await spans(store))[:2], model.prompts) == ([(0, 8), (8, 16)], [])


@pytest.mark.parametrize("change", ["edit", "delete", "forget", "block"])
async def test_an_episode_is_told_anew_when_something_of_it_changes(change: str) -> None:
    async with Store.open(":memory:") as store:
        await received(store, days())
        writer = an_episodist(store)
        await writer.write(GROUP)
        match change:
            case "edit":
                await store.inbox.edit(a_message("Everything is about penguins", id="1", author=BOB), at=NOON)
            case "delete":
                await store.inbox.delete(GROUP, "1", at=NOON)
            case "forget":
                await store.forget(platform="telegram", author_id=BOB.id)
            case _:
                await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)

        await writer.write(GROUP)

        first, second = await store.episodes.listed(GROUP)
        assert [(first.start, first.stop), (second.start, second.stop)] == [(0, 8), (8, 16)]
        assert TRIP[1] not in first.summary
        assert (BOB.id in first.people) is (change in ("edit", "delete"))
        assert (BOB.id in second.people) is (change in ("edit", "delete"))


async def test_a_change_while_it_is_told_is_seen() -> None:
    async with Store.open(":memory:") as store:
        await received(store, days(2))

        delete = partial(store.inbox.delete, GROUP, "1", at=NOON)
        await an_episodist(store, Meanwhile(delete, TOLD, TOLD.replace("train", "Lviv bus"))).write(GROUP)

        (first,) = await store.episodes.listed(GROUP)
        assert first.summary == "They go to Lviv by Lviv bus."


async def test_places_are_told_apart() -> None:
    async with Store.open(":memory:") as store:
        secret = [replace(message, place=DIRECT) for message in a_said(GARDEN * 2, apart=500)]
        await received(store, [*days(2), *secret])
        writer = an_episodist(store)
        await writer.start()
        await writer.done()

        assert "omato" not in repr(await store.episodes.listed(GROUP))


async def test_what_was_imported_before_an_episode_is_written_page_by_page() -> None:
    """A place gets a long past: its episode stays, and the hole before it is read in pages."""
    rules = EpisodeRules(around=2, fewest=1, most=6)
    page = PAGES * rules.read_size
    minutes = [NOON + timedelta(minutes=number) for number in range(3 * page)]
    past = [
        ImportedMessage(message=a_message(f"old {number}", id=str(number), sent_at=at))
        for number, at in enumerate(minutes)
    ]
    now = [a_message(f"new {number}", id=str(10**6 + number), sent_at=NOON + timedelta(days=9)) for number in range(8)]

    async with a_store_of(now) as store:
        log = CountingLog(store.log, store.place_settings.blocked)
        writer = EpisodeWriter(store.episodes, log, rules=rules)
        await writer.write(GROUP)
        await store.imports.add(past)
        await store.imports.finish(GROUP, learn=False)
        log.longest = 0
        await writer.write(GROUP)

        assert log.longest == page
        assert await store.episodes.missing_ranges(GROUP) == []
        ranges = [(one.start, one.stop) for one in await store.episodes.listed(GROUP)]
        assert [stop for _, stop in ranges[:-1]] == [start for start, _ in ranges[1:]]


class CountingLog(VisibleLog):
    """A log that notes how many messages were read at once."""

    longest = 0

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        found = await super().read(place, start, stop)
        self.longest = max(self.longest, len(found))
        return found

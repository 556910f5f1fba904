"""What holds for a place and its people until somebody says otherwise."""

import asyncio
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message
from tertulia.errors import InvalidValue
from tertulia.store import Store

Kind = Literal["direct", "group", "channel"]


async def test_a_place_has_one_delimiter_for_ever(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        asked = await asyncio.gather(*(store.place_settings.delimiter(place) for place in (GROUP, DIRECT) * 8))
        group, direct = set(asked[::2]), set(asked[1::2])
        assert (len(group), len(direct), len(group | direct)) == (1, 1, 2)
        assert all(re.fullmatch("[a-z0-9]{16}", word) for word in group | direct)
        assert await store.place_settings.delimiter(replace(GROUP, title="Another title")) in group

    async with Store.open(tmp_path / "s.db") as store:
        assert {await store.place_settings.delimiter(GROUP)} == group


async def test_a_conversation_begins_later_and_never_earlier() -> None:
    async with Store.open(":memory:") as store:
        assert await store.place_settings.beginning(GROUP) == 0
        found = []
        for beginning in (7, 3, 7, 12, -1):
            await store.place_settings.clear(GROUP, beginning, at=NOON)
            found.append(await store.place_settings.beginning(GROUP))

        assert found == [7, 7, 7, 12, 12]
        assert await store.place_settings.beginning(DIRECT) == 0


@pytest.mark.parametrize(
    ("kinds", "asked", "beginning"),
    [
        ("", "group", 0),
        ("ddd", "direct", 0),
        ("ddd", "group", 3),
        ("dddgg", "group", 3),
        ("ggd", "direct", 2),
        ("ddggdg", "group", 5),
        ("ddggdg", "direct", 6),
        ("ccgcg", "group", 0),
    ],
)
async def test_a_place_that_becomes_a_group_or_a_direct_chat_begins_anew(
    kinds: str, asked: Kind, beginning: int
) -> None:
    names: dict[str, Kind] = {"d": "direct", "g": "group", "c": "channel"}
    async with Store.open(":memory:") as store:
        for number, kind in enumerate(kinds):
            place = replace(DIRECT, kind=names[kind], title=kind)
            await store.inbox.receive(a_message(id=str(number), place=place), at=NOON)

        assert await store.place_settings.beginning(replace(DIRECT, kind=asked)) == beginning
        await store.place_settings.clear(DIRECT, 99, at=NOON)
        assert await store.place_settings.beginning(replace(DIRECT, kind=asked)) == 99


async def test_a_message_that_is_edited_stays_where_it_was_said() -> None:
    async with Store.open(":memory:") as store:
        await store.inbox.receive(a_message("at home", place=DIRECT), at=NOON)
        group = replace(DIRECT, kind="group")

        await store.inbox.edit(a_message("among friends", place=group), at=NOON)

        assert await store.place_settings.beginning(group) == 1


async def test_who_is_blocked_is_blocked_on_that_platform_until_unblocked() -> None:
    async with Store.open(":memory:") as store:
        assert await store.place_settings.blocked() == frozenset()
        block, unblock = store.place_settings.block, store.place_settings.unblock
        people = (("telegram", ALICE), ("telegram", ALICE), ("discord", ALICE), ("telegram", BOB))
        known: list[bool | None] = [await block(platform=one, author_id=author.id, at=NOON) for one, author in people]
        known += [await unblock(platform="telegram", author_id=one) for one in (BOB.id, BOB.id, "never seen")]

        assert known == [False, True, False, False, True, False, None]
        assert await store.place_settings.blocked() == {("telegram", ALICE.id), ("discord", ALICE.id)}
        assert await store.inbox.receive(a_message(), at=NOON) is True
        with pytest.raises(InvalidValue, match="cannot be kept as the id of an author"):
            await store.place_settings.block(platform="telegram", author_id="\ud800", at=NOON)


async def test_a_block_ends_at_its_end_which_a_later_block_replaces() -> None:
    async with Store.open(":memory:") as store:
        settings, hour = store.place_settings, timedelta(hours=1)
        blocks: list[tuple[str, datetime | None]] = [("1", NOON + hour), ("2", NOON + hour), ("2", None), ("3", None)]
        for author_id, until in [*blocks, ("3", NOON + 2 * hour)]:
            await settings.block(platform="telegram", author_id=author_id, at=NOON, until=until)
        next_ends = [await settings.end_blocks(NOON + number * hour) for number in range(3)]

        assert next_ends == [NOON + hour, NOON + 2 * hour, None]
        assert await settings.blocked() == {("telegram", "2")}


async def test_after_a_place_was_forgotten_its_delimiter_is_another() -> None:
    async with Store.open(":memory:") as store:
        home = replace(DIRECT, id=ALICE.id)
        await store.inbox.receive(a_message(place=home), at=NOON)
        before = await store.place_settings.delimiter(home)

        await store.forget(platform="telegram", author_id=ALICE.id)

        after = await store.place_settings.delimiter(home)
        assert before != after
        assert await store.place_settings.delimiter(home) == after

"""What holds for a place and its people until somebody says otherwise."""

from typing import Literal

from msgspec.structs import replace

from people import ALICE, DIRECT, NOON, a_message
from tertulia.store import Store

Kind = Literal["direct", "group", "channel"]


async def test_a_message_that_is_edited_stays_where_it_was_said() -> None:
    async with Store.open(":memory:") as store:
        await store.inbox.receive(a_message("at home", place=DIRECT), at=NOON)
        group = replace(DIRECT, kind="group")

        await store.inbox.edit(a_message("among friends", place=group), at=NOON)

        assert await store.place_settings.beginning(group) == 1


async def test_after_a_place_was_forgotten_its_delimiter_is_another() -> None:
    async with Store.open(":memory:") as store:
        home = replace(DIRECT, id=ALICE.id)
        await store.inbox.receive(a_message(place=home), at=NOON)
        before = await store.place_settings.delimiter(home)

        await store.forget(platform="telegram", author_id=ALICE.id)

        after = await store.place_settings.delimiter(home)
        assert before != after
        assert await store.place_settings.delimiter(home) == after

"""`getUpdates`: offsets, limits, waiting, kinds, expiry and conflicts."""

import asyncio
from typing import Any

import pytest

from sim.telegram.api import Api
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim

CONFLICT = "409 Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
FIRST = 100_000_001


@pytest.fixture
def alice(sim: TelegramSim) -> SimUser:
    return sim.user("Alice", username="alice", language_code="uk")


@pytest.fixture
def chat(sim: TelegramSim, alice: SimUser) -> SimChat:
    return sim.private(alice)


async def test_a_message_of_a_person_is_an_update(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    alice.send(chat, "Добрий вечір")

    sender = {"id": alice.id, "is_bot": False, "first_name": "Alice", "username": "alice", "language_code": "uk"}
    where = {"id": alice.id, "type": "private", "first_name": "Alice", "username": "alice"}
    message = {"message_id": 1, "from": sender, "chat": where, "date": 1794744000, "text": "Добрий вечір"}
    assert await api("getUpdates") == {"ok": True, "result": [{"update_id": FIRST, "message": message}]}


async def test_updates_come_again_until_a_higher_offset_confirms_them(api: Api, alice: SimUser, chat: SimChat) -> None:
    for text in "abc":
        alice.send(chat, text)

    assert await api.updates(offset=0) == [1, 2, 3]
    assert await api.updates(offset=FIRST) == [1, 2, 3]
    assert await api.updates(offset=FIRST + 2) == [3]
    assert await api.updates(offset=FIRST) == [3]


async def test_a_negative_offset_leaves_the_last_ones_and_forgets_the_rest(
    api: Api, alice: SimUser, chat: SimChat
) -> None:
    for text in "abcd":
        alice.send(chat, text)

    assert await api.updates(offset=-2) == [3, 4]
    assert await api.updates(offset=0) == [3, 4]
    assert await api.updates(offset=-9) == [3, 4]


async def test_an_offset_far_in_the_future_is_read_as_none(api: Api, alice: SimUser, chat: SimChat) -> None:
    alice.send(chat, "a")

    assert await api.updates(offset=FIRST + 12) == [1]
    assert await api.updates(offset=FIRST + 11) == []
    alice.send(chat, "b")
    assert await api.updates(offset=1) == [2]


@pytest.mark.parametrize(("limit", "ids"), [(2, [1, 2]), (0, [1]), (-5, [1]), ("x", [1])])
async def test_the_limit_is_within_one_and_a_hundred(
    api: Api, alice: SimUser, chat: SimChat, limit: Any, ids: list[int]
) -> None:
    for text in "abc":
        alice.send(chat, text)

    assert await api.updates(limit=limit) == ids


async def test_a_batch_has_a_hundred_at_most(api: Api, alice: SimUser, chat: SimChat) -> None:
    for number in range(103):
        alice.send(chat, str(number))

    assert await api.updates(limit=1000) == list(range(1, 101))
    assert await api.updates(offset=FIRST + 100) == [101, 102, 103]


async def test_a_batch_is_cut_at_four_megabytes(sim: TelegramSim, api: Api) -> None:
    for _ in range(3):
        sim.inject({"message": {"text": "x" * (2 << 20)}})

    assert await api.updates() == [1]


async def test_the_same_offset_at_once_again_gives_one_update(api: Api, alice: SimUser, chat: SimChat) -> None:
    for text in "abc":
        alice.send(chat, text)

    assert await api.updates(offset=FIRST) == [1, 2, 3]
    assert await api.updates(offset=FIRST) == [1]


async def test_the_same_offset_later_gives_all(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    for text in "abc":
        alice.send(chat, text)
    await api.updates(offset=FIRST)
    sim.clock.advance(1)

    assert await api.updates(offset=FIRST) == [1, 2, 3]


async def test_a_poll_waits_for_an_update(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    poll = asyncio.create_task(api.updates(timeout=50))
    await sim.until(lambda: len(sim.calls) == 1)
    alice.send(chat, "now")

    assert await poll == [1]


async def test_a_second_poll_ends_the_first(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    first = asyncio.create_task(api.refusal("getUpdates", timeout=50))
    await sim.until(lambda: len(sim.calls) == 1)
    second = asyncio.create_task(api.updates(timeout=50, offset=1))

    assert await first == CONFLICT
    alice.send(chat, "now")
    assert await second == [1]
    assert [call.status for call in sim.calls] == [409, 200]


async def test_updates_are_kept_for_a_day(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    alice.send(chat, "old")
    sim.clock.advance(86_399)
    alice.send(chat, "new")
    assert await api.updates(offset=FIRST) == [1, 2]

    sim.clock.advance(1)

    assert await api.updates(offset=FIRST) == [2]


async def test_kinds_are_remembered_until_others_are_asked_for(
    sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat
) -> None:
    message = alice.send(chat, "a")
    alice.react(chat, message, "👍")
    assert await api.updates(allowed_updates=["message_reaction", "nonsense"], offset=-1) == [1]

    alice.send(chat, "not asked for")
    alice.react(chat, message, "🔥")
    assert await api.updates(offset=FIRST + 1) == [2]

    assert await api.updates(offset=FIRST + 2, allowed_updates=[]) == []
    alice.send(chat, "asked for again")
    alice.react(chat, message)
    assert await api.updates(offset=FIRST + 2, timeout=3) == [3]


async def test_own_messages_never_come(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    sent = await api.result("sendMessage", chat_id=alice.id, text="mine")
    await api.result("editMessageText", chat_id=alice.id, message_id=sent["message_id"], text="mine too")
    alice.send(chat, "yours")

    assert [update["message"]["text"] for update in await api.result("getUpdates")] == ["yours"]


async def test_each_bot_has_its_own_updates(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    other = sim.add_bot("Other", username="other_bot")
    group = sim.group("Both", [alice, other])
    alice.send(group, "hello")
    await api.result("sendMessage", chat_id=group.id, text="from the first")
    theirs = Api(api.client, other.token)

    assert [update["message"]["text"] for update in await api.result("getUpdates")] == ["hello"]
    texts = [update["message"]["text"] for update in await theirs.result("getUpdates")]
    assert texts == ["hello", "from the first"]


async def test_updates_can_be_delivered_again(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    alice.send(chat, "a")
    alice.send(chat, "b")
    assert await api.updates(offset=FIRST + 2) == []

    sim.deliver_again()

    assert await api.updates(offset=FIRST) == [1, 2]


async def test_who_leaves_a_poll_does_not_stand_in_the_way(
    sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat
) -> None:
    left = asyncio.create_task(api.updates(timeout=50))
    await sim.until(lambda: len(sim.calls) == 1)
    left.cancel()
    await asyncio.wait([left])
    await sim.until(lambda: sim.calls[0].status == 0)
    alice.send(chat, "now")

    assert await api.updates(offset=FIRST) == [1]


async def test_a_long_queue_is_read_in_batches(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    for number in range(1000):
        alice.send(chat, str(number))
    offset, seen = 0, []
    while ids := await api.updates(offset=offset):
        seen += ids
        offset = 100_000_000 + ids[-1] + 1
        if len(seen) == 1000:
            break

    assert seen == list(range(1, 1001))


async def test_waiting_in_vain_ends_with_what_was_called(sim: TelegramSim, api: Api) -> None:
    await api.updates()

    with pytest.raises(TimeoutError) as raised:
        await sim.until(lambda: False, timeout=0)

    assert str(raised.value) == "not within 0 seconds; the last calls were: getUpdates 200"

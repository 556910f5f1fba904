"""The client of the Bot API: turns, and what answers mean."""

import pytest

from palaver.errors import NotSent
from palaver.platforms.telegram.client import LONGEST_WAIT, Pace, Pacer


class Time:
    """Time that passes by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds

    def pacer(self) -> Pacer:
        return Pacer(Pace(), sleep=self.sleep, clock=lambda: self.now)


async def test_a_few_messages_go_at_once_and_the_next_ones_one_a_second() -> None:
    time = Time()
    pacer = time.pacer()

    for _ in range(8):
        await pacer.turn("7", is_group=False)

    assert time.slept == [1.0, 1.0, 1.0]


async def test_a_group_gets_twenty_a_minute() -> None:
    time = Time()
    pacer = time.pacer()

    for _ in range(25):
        await pacer.turn("-1", is_group=True)

    assert time.slept == [3.0] * 20


async def test_all_chats_together_get_thirty_a_second() -> None:
    time = Time()
    pacer = time.pacer()

    for number in range(91):
        await pacer.turn(str(number), is_group=False)

    assert 1.9 < sum(time.slept) < 2.1


@pytest.mark.parametrize("is_group", [False, True])
async def test_a_chat_waits_as_long_as_the_service_asks_and_others_do_not(is_group: bool) -> None:
    time = Time()
    pacer = time.pacer()
    pacer.hold("7", 5.0, is_group=is_group)

    await pacer.turn("8", is_group=is_group)
    before = list(time.slept)
    await pacer.turn("7", is_group=is_group)

    assert (before, time.slept) == ([], [5.0])


async def test_a_long_wait_is_the_outbox_to_wait_for() -> None:
    time = Time()
    pacer = time.pacer()
    pacer.hold("7", LONGEST_WAIT + 60, is_group=False)

    with pytest.raises(NotSent) as caught:
        await pacer.turn("7", is_group=False)

    assert caught.value.retry_after == pytest.approx(LONGEST_WAIT + 60)
    assert time.slept == []


async def test_a_draft_is_edited_only_where_an_answer_would_still_have_its_turn() -> None:
    time = Time()
    pacer = time.pacer()

    free = []
    for _ in range(5):
        free.append(pacer.is_free("-1", is_group=True))
        await pacer.turn("-1", is_group=True)

    assert free == [True, True, True, True, False]

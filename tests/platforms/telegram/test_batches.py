"""Batches of updates, with odd ones among them."""

import pytest

from tertulia.platforms.telegram.batches import update_number, updates_in

GOOD = b'{"update_id":1,"message":{"text":"]} \\" [{"}}'
ODD = {
    "half a character": b'{"update_id":2,"message":{"text":"\\ud800"}}',
    "very deep": b'{"update_id":2,"x":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "an odd number in it": b'{"update_id":2,"x":1.2.3}',
    "bytes that are no text": b'{"update_id":2,"x":"\xff"}',
}
LAST = b'{"update_id":3}'


def answer(*updates: bytes) -> bytes:
    return b'{"ok":true,"result":[' + b",".join(updates) + b"]}"


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_update_does_not_stand_in_the_way_of_others(odd: bytes) -> None:
    assert updates_in(answer(GOOD, odd, LAST)) == [(1, GOOD), (2, odd), (3, LAST)]


def test_an_update_without_a_number_is_passed_over() -> None:
    assert updates_in(answer(GOOD, b"{}", b'{"update_id":"x"}', b"5", LAST)) == [(1, GOOD), (3, LAST)]


NO_BATCH = [b"", b"<html>", b'{"ok":false,"error_code":500}', b'{"ok":true,"result":true}', answer(b"{}")]


@pytest.mark.parametrize("given", NO_BATCH)
def test_what_has_no_updates_with_numbers_is_no_batch(given: bytes) -> None:
    assert updates_in(given) is None


def test_a_batch_may_be_empty() -> None:
    assert updates_in(answer()) == []


NUMBERS = {
    b'{"update_id": 7}': 7,
    b'{"update_id": 7, "x": "\\ud800"}': 7,
    b'{"x": "\\"update_id\\":5 \\ud800", "update_id": 7}': 7,
    b'{"update_id": -7}': None,
    b'{"update_id": 1.5}': None,
    b'{"update_id": "7"}': None,
    b"7": None,
}


@pytest.mark.parametrize("raw", NUMBERS)
def test_the_number_of_an_update(raw: bytes) -> None:
    assert update_number(raw) == NUMBERS[raw]

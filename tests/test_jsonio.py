"""JSON on the wire never fails over what a history happens to hold."""

import tracemalloc
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given

from strategies import json_values
from tertulia.errors import ResponseUnreadable
from tertulia.jsonio import dump_items, dumps, loads


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ({"a": [1, 2.5, None, True, "ї"]}, '{"a":[1,2.5,null,true,"ї"]}'),
        ({"line": "a\u2028b"}, '{"line":"a\u2028b"}'),
        ({1: "one", None: 0}, '{"1":"one","None":0}'),
        ({"big": 2**64}, '{"big":18446744073709551616}'),
        (
            {"big": 2**64, "nan": float("nan"), "inf": float("-inf")},
            '{"big":18446744073709551616,"nan":null,"inf":null}',
        ),
        (float("nan"), "null"),
        ({"raw": b"\x00"}, '{"raw":"b\'\\\\x00\'"}'),
        ((1, (2,)), "[1,[2]]"),
        ({"at": datetime(2026, 11, 15, tzinfo=UTC)}, '{"at":"2026-11-15T00:00:00+00:00"}'),
    ],
)
def test_a_value_as_json(value: Any, encoded: str) -> None:
    assert dumps(value).decode() == encoded


@pytest.mark.parametrize(
    ("broken", "sent"),
    [
        ("\ud83d", "\ufffd"),
        ("a\udc00b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_a_broken_character_is_sent_as_the_sign_for_one(broken: str, sent: str) -> None:
    assert loads(dumps({broken: [broken]})) == {sent: [sent]}


def test_items_that_are_cached_take_no_more_memory_than_their_text() -> None:
    message = {"role": "user", "parts": [{"text": "привіт " * 50}]}
    dump_items([message])
    tracemalloc.start()

    try:
        items = [dump_items([message]) for _ in range(100)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert items[0] == dumps(message)
    assert taken < 1.5 * sum(map(len, items))


@given(json_values)
def test_whatever_a_tool_returned_can_be_sent(value: Any) -> None:
    orjson.loads(dumps({"result": value}))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        ('{"a": "\\u0457"}', {"a": "ї"}),
        (b'{"a": Infinity, "b": [NaN, 1]}', {"a": None, "b": [None, 1]}),
    ],
)
def test_json_as_a_value(data: bytes | str, value: Any) -> None:
    assert loads(data) == value


def test_half_a_character_from_a_service_can_be_kept() -> None:
    found = loads(b'{"text": "a\\ud83d", "key\\ud83d": ["\\ud83d\\ude00"]}')

    assert found == {"text": "a\ufffd", "key\ufffd": ["😀"]}
    assert msgspec.json.decode(msgspec.json.encode(found)) == found


@pytest.mark.parametrize("data", [b"", b"<html>", b'{"a": ', b"\xff\xfe", b"[" * 100_000, b"[1]]"])
def test_what_is_no_json_is_unreadable(data: bytes) -> None:
    with pytest.raises(ResponseUnreadable, match="no JSON"):
        loads(data)

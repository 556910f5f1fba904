"""A document is read value by value, wherever its bytes are cut, and with the escapes that Telegram Desktop writes."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_exports import value
from tertulia.errors import InvalidValue
from tertulia.formats.json_stream import JsonStream

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\\\\x0B"\n\t\x0b\x00\u2028'), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | TEXTS,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(TEXTS, inside, max_size=4),
    max_leaves=20,
)


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def read(stream: JsonStream) -> dict[str, Any]:
    """Read an object whose key `list` has an array, item by item."""
    return {
        key: [stream.value() for _ in stream.items()] if key == "list" and stream.peek() == "[" else stream.value()
        for key in stream.keys()  # noqa: SIM118 - it is no mapping
    }


@given(rest=JSON, items=st.lists(JSON, max_size=6), size=st.integers(1, 40))
def test_what_telegram_desktop_wrote_is_read_in_any_chunks(rest: Any, items: list[Any], size: int) -> None:
    document = {"rest": rest, "list": items, "number": 12}

    stream = JsonStream(chunks(value(document).encode(), size))

    assert (read(stream), stream.peek()) == (document, "")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_a_control_character_and_a_backslash_before_an_x_are_told_apart(size: int) -> None:
    stream = JsonStream(chunks(rb'{"list": ["\\x0B", "\x0B", "\\\x0B", "a\\\\x0Bb"]}', size))

    assert read(stream) == {"list": ["\\x0B", "\x0b", "\\\x0b", "a\\\\x0Bb"]}


def test_bytes_that_are_no_utf8_are_replaced_and_a_mark_at_the_start_is_left_out() -> None:
    assert read(JsonStream([b'\xef\xbb\xbf{"a": "\xff"}'])) == {"a": "\ufffd"}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b'{"list": [1,\n2', "line 2: no JSON that we read: the file ends too early"),
        (b'{"list": [1,\n"a', "line 2: no JSON that we read: the file ends too early"),
        (
            b'{"list": [{"a": 1}\n,\n{"a" 2}, ' + b"3, " * 1000 + b"4]}",
            "line 3: no JSON that we read: Expecting ':' delimiter",
        ),
        (b"{1: 2}", "line 1: no JSON that we read: a key must be a string"),
        (b"[1]", "line 1: no JSON that we read: '[' stands where '{' should"),
        (b"", "line 1: no JSON that we read: the file ends too early"),
        (b'{"a": ' + b"[" * 100_000, "line 1: no JSON that we read: it is nested too deeply"),
    ],
)
def test_a_broken_document_says_where(data: bytes, error: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        read(JsonStream(chunks(data, 7)))

    assert str(raised.value) == error


def test_an_error_in_the_middle_is_told_before_the_rest_is_read() -> None:
    many = iter([b'{"list": [1, x', *[b" " * 1000] * 100])

    with pytest.raises(InvalidValue):
        read(JsonStream(many))

    assert len(list(many)) > 90


def test_only_what_is_needed_is_held() -> None:
    stream = JsonStream(chunks(b'{"list": [' + b'"abcdefgh", ' * 10_000 + b"1]}", 100))
    assert next(stream.keys()) == "list"
    items = stream.items()

    next(items)
    stream.value()

    assert stream.consumed <= 200

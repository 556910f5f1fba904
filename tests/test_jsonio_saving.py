"""Whatever a turn holds can be saved as JSON, and is read again as it was kept."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia import Media, Text, ToolCall, ToolResult, Turn, model, user
from tertulia.errors import InvalidValue
from tertulia.jsonio import jsonable

ANY_TEXT = st.text(st.characters(codec=None))  # halves of characters too
KEYS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.tuples(st.integers())
VALUES: st.SearchStrategy[Any] = st.recursive(
    KEYS | st.binary() | st.dates() | st.integers(10**4000, 10**4500),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.tuples(inner) | st.frozensets(KEYS),
    max_leaves=8,
)


@given(ANY_TEXT, VALUES)
def test_a_turn_is_read_again_as_it_was_kept(text: str, value: Any) -> None:
    kept = jsonable(user(text, ToolResult(name=text, value=value)))

    assert msgspec.json.decode(msgspec.json.encode(kept), type=Turn) == kept
    assert jsonable(kept) is kept


def test_what_json_can_hold_stays_the_same_turn() -> None:
    picture = Media(media_kind="photo", unique_id="u", data=b"\x00\xff")
    turn = model(Text(text="a\x00\U0001f600"), ToolCall(name="f", args={"n": 2**70, "x": [1.5, None, True]}), picture)

    assert jsonable(turn) is turn


def test_a_time_is_kept_as_its_text() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)

    kept = jsonable(user(ToolResult(name="f", value={1: noon})))

    assert kept == user(ToolResult(name="f", value={"1": "2026-01-02T12:00:00Z"}))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Text(text=None), "Expected `str`, got `null` - at `$.parts[0].text`"),  # type: ignore[arg-type]
        (ToolResult(name="f", media=("x",)), "Expected `object`, got `str`"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_turn_is_refused(part: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match="this Turn could not be read again from JSON: ") as refused:
        jsonable(user(part))

    assert words in str(refused.value)

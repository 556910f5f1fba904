"""Results are cached on the value they are computed from, and no value is changed by that."""

from pathlib import Path

import msgspec
from msgspec.structs import replace

import tertulia
from tertulia.turns import Turn, user
from tertulia.value_cache import cached, cached_for

HOT_LOOPS = (  # they go over a whole history
    "tokens",
    "context.budget",
    "context.media_words",
    "context.media_budget",
    "media.prompt_media",
    "prompt.echoes",
    "prompt.render",
    "prompt.media_markers",
    "wire.repair",
    "models.gemini.encode",
    "models.openai.encode",
)


def test_a_result_is_computed_once_for_a_value_and_a_key() -> None:
    asked: list[Turn] = []

    def size(turn: Turn) -> int:
        asked.append(turn)
        return len(turn.parts)

    turn = user("hi", "there")

    assert [cached(turn, "size", size), cached(turn, "size", size)] == [2, 2]
    assert cached(turn, "size again", size) == 2
    assert asked == [turn, turn]


def test_nothing_is_a_result_too() -> None:
    asked: list[Turn] = []
    turn = user("hi")

    assert [cached(turn, "nothing", asked.append), cached(turn, "nothing", asked.append)] == [None, None]
    assert asked == [turn]


def test_a_result_is_computed_again_when_its_basis_is_another() -> None:
    made = iter("abc")
    turn = user("hi")

    results = [cached_for(turn, "letter", basis, lambda: next(made)) for basis in ([1], [1], [2], [1])]

    assert results == ["a", "a", "b", "c"]


def test_a_cached_result_is_no_part_of_the_value() -> None:
    turn = user("hi")

    cached(turn, "size", lambda one: len(one.parts))

    assert (turn, hash(turn), repr(turn)) == (user("hi"), hash(user("hi")), repr(user("hi")))
    assert msgspec.json.encode(turn) == msgspec.json.encode(user("hi"))
    assert cached(replace(turn, parts=user("a", "b").parts), "size", lambda one: len(one.parts)) == 2


def test_only_hot_loops_read_the_cache_themselves() -> None:
    root = Path(tertulia.__file__).parent
    readers = {
        ".".join(file.relative_to(root).with_suffix("").parts)
        for file in root.rglob("*.py")
        if ".__dict__" in file.read_text(encoding="utf-8")
    }

    assert readers == {"value_cache", *HOT_LOOPS}

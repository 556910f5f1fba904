from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory.talks import GARDEN, TRIP, UKRAINIAN, a_said
from people import GROUP, NOON, a_message
from tertulia.memory.episode_summary import build_episode
from tertulia.memory.episodes import build_window_past, rank_episodes
from tertulia.memory.values import Episode, WindowPast
from tertulia.messages import Message

TALKS = (TRIP, GARDEN, UKRAINIAN)
EPISODES = [build_episode(a_said(talk, start=8 * at), GROUP, 8 * at) for at, talk in enumerate(TALKS)]
LVIV, TOMATOES, BICYCLE = EPISODES


def ranked(episodes: Sequence[Episode], target: Message, **how: Any) -> list[Episode]:
    return [one.episode for one in rank_episodes(episodes, target, **how)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("when does our train to Lviv leave?", [LVIV]),
        ("how are the tomatoes?", [TOMATOES]),
        ("А що з велосипедом?", [BICYCLE]),
        ("Про велосипеди і Дніпро", [BICYCLE]),
        ("what is the capital of Peru", []),
        ("good morning everyone, how are you", []),
        ("😀", []),
        ("", []),
    ],
)
def test_what_bears_on_the_target_is_recalled_and_nothing_else(text: str, expected: list[Episode]) -> None:
    assert ranked(EPISODES, a_message(text), now=NOON) == expected


def test_the_more_important_and_the_more_recent_come_first() -> None:
    old = replace(LVIV, id="old", ended_at=NOON - timedelta(days=300))
    small = replace(LVIV, id="small", importance=0.0)
    grave = replace(LVIV, id="grave", importance=1.0)

    found = ranked([old, small, grave], a_message("the train to Lviv"), now=NOON)

    assert [episode.id for episode in found][:1] == ["grave"]
    assert ranked([old, grave, small], a_message("the train to Lviv"), now=NOON, limit=1) == [grave]


def test_an_episode_without_words_is_never_recalled() -> None:
    bare = Episode(id="e", place=GROUP, start=0, stop=4, tags=("lviv",))

    assert ranked([bare], a_message("Lviv"), now=NOON) == []


def test_the_past_is_what_happened_before_the_window_the_oldest_first() -> None:
    found = build_window_past(EPISODES, since=0, start=16)

    assert found == WindowPast(
        since=0,
        start=16,
        text=f"2025-01-15 {LVIV.topic}: {LVIV.summary}\n2025-01-15 {TOMATOES.topic}: {TOMATOES.summary}",
        people=LVIV.people,
    )
    assert build_window_past(EPISODES, since=8, start=16).text == f"2025-01-15 {TOMATOES.topic}: {TOMATOES.summary}"
    assert build_window_past([], since=0, start=16) == WindowPast(since=0, start=16)


def test_a_past_without_room_keeps_what_they_were_about_and_what_matters() -> None:
    many = [
        replace(LVIV, id=str(at), start=at, stop=at + 1, topic=f"topic {at}", importance=float(at == 3))
        for at in range(50)
    ]

    lines = build_window_past(many, since=0, start=60, most=1_500).text.splitlines()

    assert lines[-1] == f"2025-01-15 topic 49: {LVIV.summary}"
    assert "2025-01-15 topic 48" in lines[-2]
    assert sum(map(len, lines)) <= 1_500


@given(
    st.lists(st.tuples(st.text(max_size=30), st.text(max_size=200), st.floats(0, 1)), max_size=20), st.integers(0, 999)
)
def test_a_past_fits_whatever_it_tells(told_: list[tuple[str, str, float]], most: int) -> None:
    episodes = [
        Episode(id=str(at), place=GROUP, start=at, stop=at + 1, topic=topic, summary=summary, importance=weight)
        for at, (topic, summary, weight) in enumerate(told_)
    ]

    assert len(build_window_past(episodes, since=0, start=99, most=most).text) <= most
    rank_episodes(episodes, a_message("hello"), now=NOON)

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory.talks import GARDEN, TRIP, UKRAINIAN, a_said
from people import GROUP, NOON, a_message
from tertulia.errors import InvalidValue
from tertulia.memory.episodes import EpisodeRules, changes_topic, find_boundaries, message_ranges
from tertulia.messages import Message

HOUR = timedelta(hours=1)
SMALL = EpisodeRules(around=2, words=3, fewest=2, most=6)


def test_a_stretch_without_an_end_stays_open() -> None:
    assert find_boundaries([]) == []
    assert find_boundaries(a_said(TRIP)) == []


def test_a_long_silence_ends_an_episode_however_short_it_is() -> None:
    talk = a_said(["Good morning"]) + a_said(["Anybody here?"], start=1, at=NOON + HOUR)

    assert find_boundaries(talk) == [1]


def test_an_episode_ends_where_a_direct_chat_becomes_a_group_or_a_group_one() -> None:
    direct, group, channel = (replace(GROUP, kind=kind) for kind in ("direct", "group", "channel"))
    places = [direct] * 2 + [group, channel, group] + [direct]

    talk = [a_message(id=str(number), place=place) for number, place in enumerate(places)]

    assert find_boundaries(talk) == [2, 5]


def test_a_silence_short_of_that_is_not_enough_by_itself() -> None:
    talk = a_said(TRIP) + a_said(TRIP, start=8, at=NOON + HOUR / 2) + a_said(TRIP, start=16, at=NOON + HOUR / 2)

    assert find_boundaries(talk) == []


@pytest.mark.parametrize(("first", "then"), [(TRIP, GARDEN), (GARDEN, UKRAINIAN), (UKRAINIAN, TRIP)])
def test_words_that_have_nothing_in_common_begin_a_new_episode(first: tuple[str, ...], then: tuple[str, ...]) -> None:
    (end,) = find_boundaries(a_said((*first, *then, *then)))

    assert end in (7, 8)  # one message more or less is not much to tell a topic by


def test_a_marker_and_other_words_begin_a_new_episode() -> None:
    rest = ("By the way, has the train with the tomatoes arrived?", *GARDEN)
    plain, marked = a_said((*TRIP, rest[0].removeprefix("By the way, "), *GARDEN)), a_said((*TRIP, *rest))

    assert 8 in find_boundaries(marked)
    assert 8 not in find_boundaries(plain)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("By the way, when?", True),
        ("btw when", True),
        ("До речі, коли?", True),
        ("«Кстати», когда", True),
        ("Übrigens: morgen", True),
        ("对了你在吗", True),
        ("ところで明日は", True),
        ("He said by the way", False),
        ("anywayish", False),
        ("кстатически", False),
        ("", False),
    ],
)
def test_markers(text: str, expected: bool) -> None:
    assert changes_topic(text) is expected


def test_an_episode_has_no_more_messages_than_the_most() -> None:
    talk = a_said(["ok"] * 200)

    ends = find_boundaries(talk)

    assert all(stop - start <= 60 for start, stop in message_ranges(0, ends))
    assert len(talk) - ends[-1] <= EpisodeRules().read_size


def test_the_longest_ends_where_most_speaks_for_it() -> None:
    talk = a_said(["ok"] * 40) + a_said(["ok"] * 60, start=40, at=NOON + timedelta(minutes=50))

    assert find_boundaries(talk)[0] == 40


def test_messages_that_were_deleted_or_have_no_time_say_nothing() -> None:
    talk = a_said((*TRIP, *GARDEN, *GARDEN))

    assert find_boundaries([replace(message, deleted=True) for message in talk]) == []
    assert find_boundaries([replace(message, sent_at=None) for message in talk]) == find_boundaries(talk) != []


@pytest.mark.parametrize("rules", [{"fewest": 0}, {"fewest": 5, "most": 4}, {"around": 0}])
def test_rules_that_cannot_be(rules: dict[str, int]) -> None:
    with pytest.raises(InvalidValue):
        EpisodeRules(**rules)


@st.composite
def talks(draw: st.DrawFn) -> list[Message]:
    texts = [*TRIP, *GARDEN, *UKRAINIAN, "ok", "btw", "", "до речі", "\ud800", "今日は天気がいい"]
    said: list[Message] = []
    at = NOON
    for number in range(draw(st.integers(0, 40))):
        at += timedelta(seconds=draw(st.sampled_from([0, 30, 200, 1000, 4000, -50])))
        text = draw(st.sampled_from(texts))
        sent = draw(st.sampled_from([at, at, at, None, at.replace(tzinfo=None)]))
        said.append(a_message(text, id=str(number), sent_at=sent, deleted=draw(st.integers(0, 9)) == 0))
    return said


@given(
    talks(),
    st.integers(0, 40),
    st.sampled_from([SMALL, EpisodeRules(), EpisodeRules(around=1, words=1, fewest=1, most=3)]),
)
def test_what_comes_later_moves_no_boundary(talk: list[Message], cut: int, rules: EpisodeRules) -> None:
    ends, earlier = find_boundaries(talk, rules), find_boundaries(talk[:cut], rules)

    assert ends[: len(earlier)] == earlier
    assert ends == sorted(set(ends))
    assert all(0 < stop - start <= rules.most for start, stop in message_ranges(0, ends))
    assert len(talk) - ([0, *ends][-1]) <= rules.read_size


@given(talks())
def test_reading_on_from_a_boundary_finds_the_same(talk: list[Message]) -> None:
    ends = find_boundaries(talk, SMALL)

    for index, start in enumerate(ends):
        assert [start + end for end in find_boundaries(talk[start:], SMALL)] == ends[index + 1 :]

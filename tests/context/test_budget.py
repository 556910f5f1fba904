"""What was left out, summed up."""

from hypothesis import given
from hypothesis import strategies as st

from people import a_message, a_photo
from tertulia.context.budget import DESCRIPTION_TOKENS, MAX_IDS, count_tokens, group_reports
from tertulia.context.values import LeftOut
from tertulia.tokens import ESTIMATOR

left_outs = st.builds(
    LeftOut,
    source=st.sampled_from(["window", "media", "background"]),
    why=st.sampled_from(["over the budget", "too old"]),
    ids=st.lists(st.text(max_size=4), max_size=3).map(tuple),
    text=st.text(max_size=9),
    tokens=st.integers(0, 99),
)


def test_what_was_left_out_of_a_source_for_one_reason_is_one() -> None:
    left = [
        LeftOut(source="window", why="over", ids=("1",), tokens=5),
        LeftOut(source="background", why="over", text="Lives in Lviv.", tokens=3),
        LeftOut(source="window", why="over", ids=("2",), tokens=7),
        LeftOut(source="window", why="too old", count=40),
    ]

    assert group_reports(left) == (
        LeftOut(source="window", why="over", ids=("1", "2"), tokens=12, count=2),
        LeftOut(source="background", why="over", tokens=3),
        LeftOut(source="window", why="too old", count=40),
    )


@given(st.lists(left_outs, max_size=60))
def test_nothing_is_lost_but_texts_and_ids_beyond_the_most(left: list[LeftOut]) -> None:
    groups = group_reports(left)

    assert sum(one.count for one in groups) == len(left)
    assert sum(one.tokens for one in groups) == sum(one.tokens for one in left)
    assert len({(one.source, one.why) for one in groups}) == len(groups)
    for one in groups:
        ids = [name for other in left if (other.source, other.why) == (one.source, one.why) for name in other.ids]
        assert (one.ids, one.text) == (tuple(ids[:MAX_IDS]), "")


def test_media_without_a_description_count_with_room_for_one() -> None:
    bare = a_message("", parts=(a_photo(data=None),))
    unknown = a_message("", parts=(a_photo(data=None, unique_id=""),))  # it cannot be described

    assert count_tokens([bare], {}, ESTIMATOR)[0] == count_tokens([unknown], {}, ESTIMATOR)[0] + DESCRIPTION_TOKENS

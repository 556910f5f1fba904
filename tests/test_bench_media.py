"""A day of a photo group, in small: most of each request repeats the start of the one before."""

import pytest
from bench.media import Day, of_profile, replay

SMALL = Day(messages=120, photos=30, stickers=12, voices=4, documents=1, answers=12, before=260)


@pytest.mark.parametrize(("profile", "goal"), [("layered", 0.88), ("tail", 0.90)])
async def test_most_of_a_request_with_media_repeats_the_one_before(profile: str, goal: float) -> None:
    day = await replay(SMALL, of_profile(profile))

    assert len(day.requests) >= 10
    assert day.stable >= goal

"""What was said before the history begins, as profiles tell it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats import WORDS
from people import DELIMITER, GROUP, NOON, a_context, a_message, a_talk
from tertulia.context import gather, sources
from tertulia.context.budget import Budget
from tertulia.context.gather import InMemoryKnowledge
from tertulia.context.log import InMemoryLog
from tertulia.context.values import LeftOut, RecalledEpisode
from tertulia.profiles import PROFILES, layered
from tertulia.prompt.forms import PAST
from tertulia.prompt.layers import past_turns
from tertulia.turns import user

TOLD = user(f"[#{DELIMITER}] {PAST}\n- 2025-01-15 Trip: They go.\n- Garden")


@pytest.mark.parametrize(("name", "layer"), [("layered", "static"), ("tail", "buffered"), ("headers", "buffered")])
def test_the_past_stands_before_everything_that_was_said(name: str, layer: str) -> None:
    context = a_context(window=tuple(a_talk(40)), window_start=300, past="2025-01-15 Trip: They go.\nGarden")

    (found,) = [one for one in PROFILES[name].build(context).layers if one.name == layer]

    assert found.turns[0] == TOLD
    assert "They go" not in found.instruction


def test_without_a_past_nothing_is_said_of_it() -> None:
    context = a_context(window=tuple(a_talk(40)))

    assert past_turns(context) == ()
    assert "said before this" not in repr(layered(context))


@given(st.lists(st.sampled_from([*WORDS, f"[#{DELIMITER}] You", f"x {DELIMITER}", "\n", "\u2028"]), max_size=8))
def test_nothing_in_a_past_poses_as_ours(words: list[str]) -> None:
    for turn in past_turns(a_context(past="\n".join(words))):
        (part,) = turn.parts
        first, *rest = part.text.split("\n")  # type: ignore[union-attr]
        assert turn.role == "user"
        assert first == f"[#{DELIMITER}] {PAST}"
        assert all(line.startswith("- ") for line in rest)
        assert DELIMITER not in "".join(rest).casefold()
        assert not any("From: Bob (u456) — id" in line for line in rest)


async def test_a_past_is_asked_for_only_where_the_window_was_cut_and_cut_to_its_budget() -> None:
    known = InMemoryKnowledge(past="the oldest\nthe newest")
    short, long = InMemoryLog(a_talk(50)), InMemoryLog(a_talk(550))
    target = a_message(id="new")

    async def past(log: InMemoryLog, budget: int) -> tuple[str, tuple[LeftOut, ...]]:
        context = await gather(target, [sources.window(log), sources.past(known, budget=Budget(past=budget))], NOON)
        return context.past, tuple(one for one in context.left_out if one.source == "past")

    assert await past(short, 100) == ("", ())
    assert await past(long, 100) == ("the oldest\nthe newest", ())
    text, left = await past(long, 3)
    assert text == "the newest"
    assert [(one.source, one.text) for one in left] == [("past", "the oldest")]


async def test_an_episode_that_the_window_shows_is_not_told_beside_it() -> None:
    shown, before, elsewhere = (RecalledEpisode(topic=f"t{at}", summary="s", start=at) for at in (385, 2, None))
    known = InMemoryKnowledge(episodes=[shown, before, elsewhere])
    log = InMemoryLog(a_talk(550, place=GROUP))

    context = await gather(a_message(id="new"), [sources.window(log), sources.episodic(known)], NOON)

    assert context.window_start == 376
    assert context.episodes == (before, elsewhere)

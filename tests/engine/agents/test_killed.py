"""An engine with three agents that is killed at any moment: each agent that is meant answers, once, in its turn."""

from pathlib import Path

import pytest

from engine.agents.killed_agents import killed, killed_at
from engine.engine_child import POINTS
from engine.scripted_service import Kind
from engine.torture import BOTH
from sizes import size

KILLS = size(3, full=25)
WRITES = ("updates", "inbox", "runs", "outbox", "platform", "book")
REACHED = [
    point
    for point in POINTS
    if point.split(" ")[1].startswith(WRITES) and not point.endswith(("doubtful", "runs.resume"))
]


@pytest.mark.parametrize("kind", BOTH)
async def test_three_agents_answer_each_message_once_in_their_turn(tmp_path: Path, kind: Kind) -> None:
    found = await killed(tmp_path, kind, kills=KILLS, seed=3)

    assert found.faults == ()
    assert (found.kills, found.lost, found.doubled) == (KILLS, 0, 0)
    assert found.answers > 0
    assert found.doubtful == 0 or kind == "without keys"


@pytest.mark.parametrize("times", [1, 2])
async def test_three_agents_killed_at_write_points_answer_each_message_once(tmp_path: Path, times: int) -> None:
    """The second time a point is reached is mostly that of the second agent of a message."""
    points = [f"{point}:{times}" for point in REACHED[:: size(5, full=1)]]

    found = await killed_at(tmp_path, "with keys", points, seed=5 + times)

    assert found.faults == ()
    assert (found.kills, found.lost, found.doubled) == (len(points), 0, 0)

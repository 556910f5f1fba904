"""An engine with three agents that is killed at any moment: each agent that is meant answers, once, in its turn."""

from pathlib import Path

import pytest

from engine.agents.killed_agents import killed
from engine.scripted_service import Kind
from engine.torture import BOTH
from sizes import size

KILLS = size(3, full=25)


@pytest.mark.parametrize("kind", BOTH)
async def test_three_agents_answer_each_message_once_in_their_turn(tmp_path: Path, kind: Kind) -> None:
    found = await killed(tmp_path, kind, kills=KILLS, seed=3)

    assert found.faults == ()
    assert (found.kills, found.lost, found.doubled) == (KILLS, 0, 0)
    assert found.answers > 0
    assert found.doubtful == 0 or kind == "without keys"

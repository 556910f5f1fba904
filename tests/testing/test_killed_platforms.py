"""Nothing is lost or doubled on either platform when its process is killed; what is doubtful is listed."""

from pathlib import Path

import pytest

from testing.killed_platforms import PLATFORMS, killed

KILLS = 8  # `killed_platforms.py 500` kills more often


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_every_message_is_answered_once_or_its_answer_is_listed(tmp_path: Path, platform: str) -> None:
    result = await killed(tmp_path, platform, kills=KILLS, seed=7)

    assert (result.kills, result.faults) == (KILLS, ())
    assert result.doubtful == 0 or platform == "keyless"

"""A bot on Telegram loses and doubles nothing when its process is killed; `killed_bot.py 500` kills more often."""

from pathlib import Path

from platforms.telegram.killed_bot import killed

KILLS = 3


async def test_every_message_is_answered_once_or_its_answer_is_listed(tmp_path: Path) -> None:
    result = await killed(tmp_path, kills=KILLS, seed=7)

    assert (result.kills, result.faults) == (KILLS, ())
    assert result.answered + result.doubtful == result.messages > 0

"""People in rooms lose nothing and see nothing twice when the bot is killed; `killed_rooms.py 500` kills more often."""

from pathlib import Path

from platforms.web.killed_rooms import killed

KILLS = 4


async def test_three_people_in_each_room_see_every_message_answered_once(tmp_path: Path) -> None:
    result = await killed(tmp_path, kills=KILLS, seed=7)

    assert (result.kills, result.faults) == (KILLS, ())
    assert result.in_answer > 0
    assert result.resumed >= KILLS

"""The bot's process: one that does not start says why."""

from pathlib import Path

import pytest

from tertulia.demo.group import Group
from tertulia.demo.timeline import DemoFailed, Timeline


async def test_a_bot_that_does_not_start_fails_the_demo_with_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "demo.db").mkdir()

    async with Group(tmp_path, Timeline(lambda _: None), pace=0) as group:
        with pytest.raises(DemoFailed, match=r"the bot's process ended: .*it is a folder"):
            await group.start()

"""A process that is killed at any commit of a forget leaves a store in which the next one ends it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from store.builders import files_hold
from store.forget.test_person import HER, NICK, PHOTO, SECRET, everything_about
from tertulia.store import Store

CHILD = Path(__file__).with_name("forget_child.py")
COUNTED = {"changes", "removed", "events"}  # of a place: more where something was done twice


async def rows(store: Store) -> dict[str, list[Any]]:
    """All rows but changes, without what counts how often something was done."""
    found: dict[str, list[Any]] = {}
    async for row in store.export():
        table = row.pop("table")
        if table not in ("message_changes", "place_events"):
            found.setdefault(table, []).append({name: row[name] for name in row.keys() - COUNTED})
    return found


async def test_a_kill_at_any_commit_of_a_forget_ends_in_the_same_state(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    async with Store.open(tmp_path / "0" / "s.db") as store:
        await everything_about(store)
    environment = {**os.environ, "PYTHONPATH": str(CHILD.parents[2])}
    command = [sys.executable, str(CHILD), str(tmp_path), "telegram", HER.id]
    ran = await asyncio.to_thread(subprocess.run, command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr

    lives = sorted(map(int, os.listdir(tmp_path)), reverse=True)[:-1]
    assert len(lives) > 15
    expected: dict[str, list[Any]] = {}
    for number in lives:  # the first one ended by itself
        async with Store.open(tmp_path / str(number) / "s.db") as store:
            if await store.names_by_platform(HER.id):
                assert number < 3, "it was killed before the first commit of the forget"
                continue
            left = await rows(store)
            expected = expected or left
            assert left == expected, number
            assert await store.check() == []
        for words in (SECRET, "flowerpot", NICK, HER.id, PHOTO.unique_id):
            assert not files_hold(tmp_path / str(number), words), (number, words)

"""A bot loses no medium when its process is killed, and describes each once; `make media-kills` kills more often."""

from pathlib import Path

from platforms.telegram.killed_media import evening


async def test_every_medium_is_stored_and_described_once(tmp_path: Path) -> None:
    found = await evening(tmp_path, kills=1, groups=1, seed=3)

    assert (found.media, found.stored, found.descriptions, found.faults) == (10, 10, 10, [])

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from conversation.engine_world import World
from palaver import Store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with Store.open(":memory:") as opened:
        yield opened


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "kept.db")
    yield made
    made.close()

"""A store for the runs of these tests."""

from collections.abc import AsyncIterator

import pytest

from tertulia.engine.store_protocols import RunStore
from tertulia.store import Store


@pytest.fixture
async def runs() -> AsyncIterator[RunStore]:
    async with Store.open(":memory:") as store:
        yield store.runs

"""What is asked for often is found by an index."""

import pytest

from store.builders import a_task
from tertulia.store import Store
from tertulia.store.sqlite.connection import Database


@pytest.mark.parametrize(
    "query",
    [
        "SELECT body FROM tasks WHERE status = 'pending' AND free = 1 AND due_at <= '2025' ORDER BY due_at, id LIMIT 9",
        "SELECT due_at FROM tasks WHERE status = 'pending' AND free = 1 ORDER BY due_at LIMIT 1",
    ],
)
async def test_what_is_due_is_found_without_reading_all_that_is_not(store: Store, query: str) -> None:
    def ways(database: Database) -> list[str]:
        return [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {query}")]

    await store.tasks.add([a_task(id=f"t{n}") for n in range(1000)])

    assert ["tasks_due" in way for way in await store.reader.run(ways)] == [True]

"""Nothing is fetched from hostile addresses; `make hostile-addresses` runs 10,000 of them."""

from media.hostile_addresses import run
from sizes import size


async def test_nothing_is_fetched_that_must_not_be() -> None:
    report = await run(size(150, full=2_000), seed=7)

    assert report.failures == []

from datetime import UTC, datetime

from tertulia.prompt.sections import long_time


def test_long_time_is_english_and_local() -> None:
    assert long_time(datetime(2025, 1, 15, 12, 30, tzinfo=UTC), "Europe/Kyiv") == (
        "Wednesday, January 15, 2025 at 14:30:00"
    )

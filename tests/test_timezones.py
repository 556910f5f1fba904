from datetime import UTC, datetime, timedelta, timezone

import pytest

from tertulia.errors import InvalidValue
from tertulia.timezones import zone_named, zone_of

NOON = datetime(2025, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "hour"), [("UTC", 12), ("Europe/Kyiv", 15), ("UTC+02:00", 14), ("UTC-09:30", 2), ("UTC+00:00", 12)]
)
def test_noon_elsewhere(name: str, hour: int) -> None:
    assert NOON.astimezone(zone_named(name)).hour == hour


@pytest.mark.parametrize("name", ["", "Mars/Base", "../etc/passwd", "UTC+24:00", "UTC+2", "/etc/localtime", "a" * 300])
def test_no_such_zone(name: str) -> None:
    with pytest.raises(InvalidValue, match="no time zone is called"):
        zone_named(name)


@pytest.mark.parametrize("minutes", [0, 120, -570, 345, -1])
def test_the_zone_a_moment_is_given_in_is_found_again(minutes: int) -> None:
    there = NOON.astimezone(timezone(timedelta(minutes=minutes)))

    assert NOON.astimezone(zone_named(zone_of(there))).isoformat() == there.isoformat()

"""Time zones by IANA name or fixed offset (UTC+02:00), and times in UTC. Pure."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tertulia.errors import InvalidValue

_FIXED = re.compile(r"UTC([+-])([01]\d|2[0-3]):([0-5]\d)")


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo:
    """Return the zone of that name; raise InvalidValue if there is none."""
    if found := _FIXED.fullmatch(name):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidValue(f"no time zone is called {name!r}") from error


def zone_of(moment: datetime) -> str:
    """Return the name of the fixed offset of a time; UTC if it has none."""
    offset = moment.utcoffset()
    if not offset:
        return "UTC"
    minutes = round(abs(offset).total_seconds() / 60)
    return f"UTC{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"


def utc(moment: datetime) -> datetime:
    """Return a time in UTC. There, later times compare greater; in a zone with summer time they may not."""
    if moment.utcoffset() is None:
        raise InvalidValue(f"{moment} is a time without a zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValue(f"{moment} is beyond the calendar in UTC") from error

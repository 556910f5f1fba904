"""Time zones by name: those of the IANA list, and fixed ones such as UTC+02:00. Pure."""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from palaver.errors import InvalidValue

_FIXED = re.compile(r"UTC([+-])([01]\d|2[0-3]):([0-5]\d)")


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo:
    """The zone of that name; InvalidValue where there is none."""
    if found := _FIXED.fullmatch(name):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidValue(f"no time zone is called {name!r}") from error


def zone_of(moment: datetime) -> str:
    """The name of the fixed zone a moment is given in; UTC where it is given in none."""
    offset = moment.utcoffset()
    if not offset:
        return "UTC"
    minutes = round(abs(offset).total_seconds() / 60)
    return f"UTC{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"

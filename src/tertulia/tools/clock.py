"""The tool `current_time`."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from tertulia.tasks.due_times import WEEKDAYS


def clock(now: Callable[[], datetime], default_zone: str = "UTC") -> Callable[..., str]:
    """Make the tool `current_time` over the clock *now*."""
    _zone(default_zone)

    def current_time(zone: Annotated[str, "IANA name such as Europe/Kyiv"] = default_zone) -> str:
        """Tell the current date, time and day of the week in a time zone."""
        at = now().astimezone(_zone(zone))
        return f"{at.isoformat(timespec='seconds')}, {WEEKDAYS[at.weekday()]}"

    return current_time


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; no name at all; a folder such as "Europe"
        raise ValueError(f"there is no time zone {name[:60]!r}: give an IANA name such as Europe/Kyiv") from None

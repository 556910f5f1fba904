"""Backoff: how long to wait before the next attempt. Pure."""

from datetime import timedelta
from typing import TypeVar

Duration = TypeVar("Duration", float, timedelta)

MAX_DOUBLINGS = 40  # more would overflow


def backoff(failures: int, *, first: Duration, longest: Duration) -> Duration:
    """Return the wait after so many failures: *first* after one, then twice as long each time, at most *longest*."""
    doublings = min(max(failures - 1, 0), MAX_DOUBLINGS)
    if longest / (1 << doublings) < first:
        return longest
    return first * (1 << doublings)

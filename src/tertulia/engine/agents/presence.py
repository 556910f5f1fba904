"""Presence: which messages of a place an agent has seen, as intervals of their numbers. Pure."""

from msgspec import Struct


class Stay(Struct, frozen=True, kw_only=True):
    """An interval of messages in a place, from the message number *since* up to, and without, *until*."""

    since: int = 0
    until: int | None = None  # None: it goes on


Presence = tuple[Stay, ...]  # in order, none empty, with messages between two of them

ALWAYS: Presence = (Stay(),)


def sees(present: Presence, number: int) -> bool:
    """Return whether an agent was present for the message of that number."""
    return any(stay.since <= number and (stay.until is None or number < stay.until) for stay in present)

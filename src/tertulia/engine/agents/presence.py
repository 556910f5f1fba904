"""Presence: which messages of a place an agent has seen, as intervals of their numbers. Pure."""

from collections.abc import Iterable

from msgspec import Struct

from tertulia.engine.agents.agent import Agent
from tertulia.messages import Place


class Stay(Struct, frozen=True, kw_only=True):
    """An interval of messages in a place, from the message number *since* up to, and without, *until*."""

    since: int = 0
    until: int | None = None  # None: it goes on


Presence = tuple[Stay, ...]  # in order, none empty, with messages between two of them

ALWAYS: Presence = (Stay(),)


def presence_of(stays: Iterable[Stay]) -> Presence:
    """Return stays in order, those that touch or overlap as one."""
    joined: list[Stay] = []
    for stay in sorted(stays, key=lambda one: one.since):
        last = joined[-1] if joined else None
        if stay.until is not None and stay.until <= stay.since:
            continue
        if last is None or (last.until is not None and last.until < stay.since):
            joined.append(stay)
        elif last.until is not None:
            until = None if stay.until is None else max(last.until, stay.until)
            joined[-1] = Stay(since=last.since, until=until)
    return tuple(joined)


def known_to(agent: Agent, place: Place, present: Presence) -> Presence:
    """Return what an agent knows of a place. Of a direct chat it knows only what it was *present* for."""
    return ALWAYS if agent.knows == "all" and place.kind != "direct" else present


def added(present: Presence, number: int) -> Presence:
    """Return the presence of an agent that was added before the message of that number came."""
    return presence_of((*present, Stay(since=number)))


def removed(present: Presence, number: int) -> Presence:
    """Return the presence of an agent that was removed before the message of that number came."""
    return intersection(present, (Stay(until=number),))


def sees(present: Presence, number: int) -> bool:
    """Return whether an agent was present for the message of that number."""
    return any(stay.since <= number and (stay.until is None or number < stay.until) for stay in present)


def visible_ranges(present: Presence, start: int, stop: int) -> tuple[range, ...]:
    """Return the numbers from *start* up to *stop* for which an agent was present."""
    within = intersection(present, (Stay(since=start, until=stop),))
    return tuple(range(stay.since, stop if stay.until is None else stay.until) for stay in within)


def intersection(one: Presence, other: Presence) -> Presence:
    """Return when two were present together."""
    found = []
    for first in one:
        for second in other:
            ends = [until for until in (first.until, second.until) if until is not None]
            found.append(Stay(since=max(first.since, second.since), until=min(ends, default=None)))
    return presence_of(found)

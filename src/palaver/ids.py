"""Abbreviated ids: the shortest prefixes that differ, and the ids that a prefix means. Pure."""

import itertools
from collections.abc import Iterable

SHORTEST = 8  # characters of an abbreviated id


def abbreviate_ids(ids: Iterable[str]) -> dict[str, str]:
    """Map each id to its prefix; all prefixes have the same length, the least at which they differ."""
    unique = dict.fromkeys(ids)
    length = next(size for size in itertools.count(SHORTEST) if len({name[:size] for name in unique}) == len(unique))
    return {name: name[:length] for name in unique}


def match_ids(given: str, ids: Iterable[str], *, min_length: int = 1) -> list[str]:
    """Return the id that equals *given*, or else all ids that begin with it; none for a prefix under *min_length*."""
    unique = dict.fromkeys(ids)
    if given in unique:
        return [given]
    return [name for name in unique if len(given) >= min_length and name.startswith(given)]

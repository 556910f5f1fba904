"""Abbreviated ids: the shortest prefixes that differ, and the ids that a prefix means. Pure."""

import re
from collections.abc import Iterable
from itertools import pairwise, takewhile

SHORTEST = 8  # characters of an abbreviated id, after a word such as `reminder-`

_WORD = re.compile(r"(?:[a-z]+-)?")


def abbreviate_ids(ids: Iterable[str]) -> dict[str, str]:
    """Map each id to a prefix that no other id has. It is longer than `SHORTEST` only where two ids begin alike."""
    unique = dict.fromkeys(ids)
    lengths = {name: len(_WORD.match(name)[0]) + SHORTEST for name in unique}  # type: ignore[index]  # it matches always
    for one, other in pairwise(sorted(unique)):
        alike = sum(takewhile(bool, (left == right for left, right in zip(one, other, strict=False))))
        lengths |= {name: max(lengths[name], alike + 1) for name in (one, other)}
    return {name: name[:length] for name, length in lengths.items()}


def match_ids(given: str, ids: Iterable[str], *, min_length: int = 1) -> list[str]:
    """Return the id that equals *given*, or else all ids that begin with it; none for a prefix under *min_length*."""
    unique = dict.fromkeys(ids)
    if given in unique:
        return [given]
    return [name for name in unique if len(given) >= min_length and name.startswith(given)]

"""Lists in pages, with a token for the next. Pure."""

from typing import Any

from palaver.sim.gemini.errors import ServiceError

Wire = dict[str, Any]

_USUAL = 50


def page(name: str, entries: list[Wire], query: dict[str, str]) -> Wire:
    """The page of *entries* that *query* asks for, under *name*."""
    try:
        size = int(query.get("pageSize") or _USUAL)
        start = int(query.get("pageToken") or 0)
    except ValueError as error:
        raise ServiceError(400, "Request contains an invalid argument.", rule="page") from error
    shown = entries[start : start + max(1, size)]
    found: Wire = {name: shown} if shown else {}
    following = start + len(shown)
    return found | {"nextPageToken": str(following)} if following < len(entries) else found

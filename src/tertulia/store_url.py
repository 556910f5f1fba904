"""Where a store is: a path, or the URL of a PostgreSQL database. Pure."""

import os
import re
from urllib.parse import urlsplit

_URL = re.compile(r"postgres(?:ql)?://")


def is_url(store: str | os.PathLike[str]) -> bool:
    """Return whether a store is in PostgreSQL."""
    return _URL.match(os.fspath(store)) is not None


def masked(store: str | os.PathLike[str]) -> str:
    """Return a path, or a URL without user, password and options: for messages."""
    if not is_url(store):
        return os.fspath(store)
    try:
        found = urlsplit(os.fspath(store))
        port = f":{found.port}" if found.port else ""
        return f"postgresql://{found.hostname or 'localhost'}{port}{found.path}"
    except ValueError:
        return "postgresql://…"

"""Where a store is: a path, or the URL of a PostgreSQL database. Pure."""

import os
import re

# Also what is no URL of PostgreSQL, such as `mysql://…`: as the path of a file it would be shown with its password.
_URL = re.compile(r"\s*[a-z][\w+.-]+:(?:\w+:)?//|.*\bpassword=", re.IGNORECASE)
# Server and database. A `/`, `?`, `#` or `@` within user or password must be escaped: else a part of them is shown.
_POSTGRES = re.compile(r"postgres(?:ql)?://(?:[^/?#@]*@)?([^/?#@]*)(?:(/[^/?#@]*)(?:\?.*)?|(?:\?[^@]*)?)")


def is_url(store: str | os.PathLike[str]) -> bool:
    """Return whether a store is no file."""
    return _URL.match(os.fspath(store)) is not None


def is_postgres(url: str) -> bool:
    """Return whether a URL is one of PostgreSQL."""
    return _POSTGRES.fullmatch(url) is not None


def masked(store: str | os.PathLike[str]) -> str:
    """Return a path, or a URL without user, password and options: for messages."""
    if not is_url(store):
        return os.fspath(store)
    found = _POSTGRES.fullmatch(os.fspath(store))
    return f"postgresql://{found[1] or 'localhost'}{found[2] or ''}" if found else "postgresql://…"

"""Where a store is: a path or a URL, shown without its password. Pure."""

import os
import re

# Also what is no URL of PostgreSQL, such as `mysql://…`: as the path of a file it would be shown with its password.
_URL = re.compile(r"\s*[a-z][\w+.-]+:(?:\w+:)?/|.*\bpassword=", re.IGNORECASE)
# A path that was a URL, and has a name alone where the server and the database would be.
_PATH = re.compile(r"(postgres(?:ql)?:)/(?!/)([^/?@:]*(?:\?|$))?")
# Server and database. A `/`, `?`, `#` or `@` within user or password must be escaped: else a part of them is shown.
_POSTGRES = re.compile(r"postgres(?:ql)?://(?:[^/?#@]*@)?([^/?#@]*)(?:(/[^/?#@]*)(?:\?.*)?|(?:\?[^@]*)?)")


def is_url(store: str | os.PathLike[str]) -> bool:
    """Return whether a store is no file."""
    return _URL.match(os.fspath(store)) is not None


def is_postgres(url: str) -> bool:
    """Return whether a URL is one of PostgreSQL."""
    return _POSTGRES.fullmatch(url) is not None


def url_of(store: str | os.PathLike[str]) -> str:
    """Return the URL of a store; a `Path` had one slash of two, or of three where the URL names no server."""
    return _PATH.sub(lambda found: f"{found[1]}{'//' if found[2] is None else '///'}{found[2] or ''}", os.fspath(store))


def masked(store: str | os.PathLike[str]) -> str:
    """Return a path, or a URL without user, password and options: for messages."""
    if not is_url(store):
        return os.fspath(store)
    found = _POSTGRES.fullmatch(url_of(store))
    return f"postgresql://{found[1] or 'localhost'}{found[2] or ''}" if found else "postgresql://…"

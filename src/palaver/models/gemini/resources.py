"""Caches, files, token counts and vectors, decoded from Gemini's answers. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from msgspec import Struct

from palaver import errors
from palaver.wire.generations import bare


class Cache(Struct, frozen=True, kw_only=True):
    """An explicit cache on the service; its name goes into `Prompt.cached`."""

    name: str
    model: str
    expires_at: datetime
    tokens: int


class File(Struct, frozen=True, kw_only=True):
    """An uploaded file; its URI goes into `Media.uri`."""

    name: str
    uri: str
    mime: str
    state: str  # PROCESSING, ACTIVE or FAILED
    expires_at: datetime | None = None


@contextmanager
def unreadable_without(what: str) -> Iterator[None]:
    """Raise ResponseUnreadable with *what* if the block does not find it in an answer."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise errors.ResponseUnreadable(f"Gemini sent no {what} that we can read: {error!r}") from error


@unreadable_without("vectors")
def decode_vectors(body: Any, number: int) -> list[list[float]]:
    vectors = [[float(value) for value in embedding["values"]] for embedding in body["embeddings"]]
    if len(vectors) != number:
        raise ValueError(f"{len(vectors)} for {number} texts")
    return vectors


@unreadable_without("number of tokens")
def decode_count(body: Any) -> int:
    return int(body.get("totalTokens") or 0)


@unreadable_without("cache")
def decode_cache(body: Any) -> Cache:
    return Cache(
        name=body["name"],
        model=bare(body.get("model", "")),
        expires_at=datetime.fromisoformat(_microseconds(body["expireTime"])),
        tokens=int(body.get("usageMetadata", {}).get("totalTokenCount", 0)),
    )


@unreadable_without("file")
def decode_file(body: Any) -> File:
    expires = body.get("expirationTime")
    return File(
        name=body["name"],
        uri=body["uri"],
        mime=body.get("mimeType", ""),
        state=body.get("state", "ACTIVE"),
        expires_at=datetime.fromisoformat(_microseconds(expires)) if expires else None,
    )


def _microseconds(stamp: str) -> str:
    """Cut the nanoseconds of a time stamp to the microseconds that Python reads."""
    seconds, dot, fraction = stamp.removesuffix("Z").partition(".")
    return f"{seconds}{dot}{fraction[:6].ljust(6, '0') if dot else ''}+00:00"

"""The messages of a place as columns of numbers and a matrix of vectors. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from palaver.memory.retrieval.index import MISSING, Row

Floats = NDArray[Any]  # 32 bit, or what numpy makes of them on the way
Ints = NDArray[Any]
Bytes = NDArray[np.int8]

PAUSE = 3600  # seconds between two sessions
UNIT = 127  # factor of a vector of length 1 as 8-bit numbers

_FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC).toordinal()


class Columns(Struct, frozen=True, kw_only=True):
    """All messages of a place by number; the length of one that is missing or not visible is MISSING."""

    author: Ints
    at: Ints
    length: Ints
    traits: Ints
    first: Ints
    last: Ints
    session: Ints  # counted from 0

    def __len__(self) -> int:
        return len(self.author)


def build_columns(rows: Sequence[Row], size: int, *, before: Columns | None = None) -> Columns:
    """Build the columns of *size* messages from *rows*, added to those *before*."""
    table = np.full((6, size), MISSING, dtype=np.int64)
    if before is not None:
        table[:, : len(before)] = (
            before.author,
            before.at,
            before.length,
            before.traits,
            before.first,
            before.last,
        )
    if rows:
        read = np.array(rows, dtype=np.int64)
        read = read[read[:, 0] < size]  # others were indexed after the place was read
        table[:, read[:, 0]] = read[:, 1:].T
    author, at, length, traits, first, last = table
    at = np.maximum.accumulate(at)
    session = np.cumsum(np.diff(at, prepend=at[:1]) > PAUSE)
    return Columns(author=author, at=at, length=length, traits=traits, first=first, last=last, session=session)


def day_number(at: Ints) -> Ints:
    """Convert seconds to ordinals of days."""
    return at // 86_400 + _FIRST_DAY


def pack_vectors(vectors: Floats) -> list[bytes]:
    """Pack vectors of length 1 into 8 bits a number, as they are stored."""
    whole = np.rint(np.asarray(vectors, dtype=np.float32) * UNIT)
    return [row.tobytes() for row in np.clip(np.nan_to_num(whole), -UNIT, UNIT).astype(np.int8)]


def vector_matrix(read: Iterable[tuple[int, bytes]], size: int, *, before: Bytes | None = None) -> Bytes | None:
    """Build the matrix of stored vectors, over those *before*; zeros for messages without one, None without any."""
    known = [(number, vector) for number, vector in read if number < size]
    if before is None and not known:
        return None
    width = len(known[0][1]) if before is None else before.shape[1]
    table = np.zeros((size, width), dtype=np.int8)
    if before is not None:
        table[: len(before)] = before
    fitting = [(number, vector) for number, vector in known if len(vector) == width]
    if fitting:
        vectors = np.frombuffer(b"".join(vector for _, vector in fitting), dtype=np.int8)
        table[[number for number, _ in fitting]] = vectors.reshape(len(fitting), width)
    return table

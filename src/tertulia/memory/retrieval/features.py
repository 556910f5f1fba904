"""The messages of a place as columns of numbers and vectors, and their features for a query. Pure.

Features are BM25, coverage, people, dates, vectors, neighbours. Their names are part of the trained forests
(`learned/*.json`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tertulia.memory.retrieval.index import PLACES, SCALE
from tertulia.memory.values import ASKS, DIGITS, ENDS_ASKING, MEDIA, MISSING, Posting, Query, Row

Floats = NDArray[Any]  # 32 bit, or what numpy makes of them on the way
Ints = NDArray[Any]
Bytes = NDArray[np.int8]

PAUSE = 3600  # seconds between two sessions
UNIT = 127  # factor of a vector of length 1 as 8-bit numbers

_FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC).toordinal()

_AROUND = ((0, 1.0), (1, 0.6), (2, 0.4), (-1, 0.3), (-2, 0.1))  # position relative to the message, weight of its words
_VECTORS_AROUND = ((0, 1.0), (1, 0.5), (2, 0.25), (-1, 0.3))
_SATURATION = 0.7
_USUAL_SIZE = 500  # messages; in a smaller place one occurrence does not make a word common
_TINY = 1e-9


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


class Matches(Struct, frozen=True, kw_only=True):
    """The occurrences of the terms of a query: a row for each term, a column for each message."""

    exact: Floats
    soft: Floats  # words that begin alike count by the share that is equal
    idf: Floats  # of the term itself
    soft_idf: Floats
    place: Ints  # position of the word in the message, from 1; 0 if it is not there


def match_terms(terms: tuple[str, ...], found: Iterable[Iterable[Posting]], columns: Columns) -> Matches:
    """Lay out the postings of *terms*, and of words that begin alike, over the visible messages."""
    size = len(columns)
    hidden = columns.length < 0
    exact = np.zeros((len(terms), size), dtype=np.float32)
    soft = np.zeros_like(exact)
    place = np.zeros(exact.shape, dtype=np.int64)
    for row, (term, postings) in enumerate(zip(terms, found, strict=True)):
        by_word: dict[str, tuple[list[int], list[int]]] = {}
        for word, number, packed in postings:
            if number >= size:
                continue  # indexed after the columns were read
            numbers, packs = by_word.setdefault(word, ([], []))
            numbers.append(number)
            packs.append(packed)
        for word, (numbers, packs) in by_word.items():
            at, (weight, stands) = np.array(numbers), np.divmod(np.array(packs), PLACES)
            strength = (weight / SCALE * prefix_similarity(term, word)).astype(np.float32)
            if word == term:
                exact[row, at] = strength
            place[row, at] = np.where(strength > soft[row, at], stands + 1, place[row, at])
            soft[row, at] = np.maximum(soft[row, at], strength)
    for values in (exact, soft, place):
        values[:, hidden] = 0
    return Matches(exact=exact, soft=soft, idf=_idf(exact), soft_idf=_idf(soft), place=place)


def prefix_similarity(one: str, other: str) -> float:
    """Return the share of two words that their beginnings have in common."""
    if one == other:
        return 1.0
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common / max(len(one), len(other))


def bm25(found: Matches) -> tuple[Floats, Floats]:
    """BM25 over each message and its neighbours: of the terms alone, and with words that begin alike."""
    return _around(found.exact, found.idf), _around(found.soft, found.soft_idf)


def vector_scores(cosines: Floats) -> Floats:
    """Return the cosine of the query with each message and its neighbours."""
    return sum((weight * shift(cosines, by) for by, weight in _VECTORS_AROUND), np.zeros_like(cosines))


def first_scores(columns: Columns, query: Query, words: Floats, cosines: Floats | None) -> Floats:
    """Return a quick score for every message, by which candidates are chosen."""
    by_named_author = (
        np.isin(columns.author, list(query.people)) if query.people else np.zeros(len(columns), dtype=bool)
    )
    score = words / (words.max() + _TINY) * (1 + 0.3 * by_named_author)
    if cosines is not None:
        score = score + 0.0875 * standardise(cosines) + 0.05 * standardise(vector_scores(cosines))
    if query.days is not None:
        inside, _, dated = _times(columns, query.days)
        score = score + 0.15 * inside + 0.1 * dated
    return np.where(columns.length < 0, -1, score).astype(np.float32)


def compute_features(
    columns: Columns,
    query: Query,
    found: Matches,
    *,
    around: tuple[Floats, Floats],
    first: Floats,
    chosen: Ints,
    named: Floats,
    cosines: Floats | None = None,
) -> dict[str, Floats]:
    """Compute the features of the *chosen* messages by name.

    *around* is the result of `bm25`, *first* of `first_scores`; *named* is 1 for messages with a name of the query.
    """
    total = float(found.idf.sum()) + _TINY
    own = found.soft_idf @ found.soft
    every = _score_features(found, around, own, total)
    every |= _coverage_features(columns, query, found, around[1], total)
    every |= _message_features(columns, query, first, named)
    for name, trait in (("asks", ASKS), ("ends_asking", ENDS_ASKING), ("digits", DIGITS), ("media", MEDIA)):
        every[name] = (columns.traits & trait > 0) & (columns.length >= 0)
    every |= {"after_asking": shift(every["ends_asking"], 1)}
    every |= {f"own{by:+d}": shift(own, -by) / total for by in (-3, -2, -1, 1, 2)}
    inside, late, dated = _times(columns, query.days)
    every |= {"inside": inside, "days_late": late, "said_of_it": dated}
    if cosines is not None:
        every |= _vectors(columns, cosines)
    picked = {name: values[chosen].astype(np.float32) for name, values in every.items()}
    return picked | {f"{name}_rank": _rank(every[name], chosen) for name in ("around", "cosine") if name in every}


def _score_features(found: Matches, around: tuple[Floats, Floats], own: Floats, total: float) -> dict[str, Floats]:
    """BM25 of the message alone (*own*) and with its neighbours, as it is and in relation to the best."""
    exact, soft = around
    own_exact = found.idf @ found.exact
    return {
        "own": own,
        "exact_share": own_exact / total,
        "own_share": own / total,
        "own_relative": own / (own.max() + _TINY),
        "around": soft,
        "exact_around_share": exact / total,
        "around_share": soft / total,
        "around_relative": soft / (soft.max() + _TINY),
        "exact": own_exact,
        "exact_around": exact,
        "exact_relative": exact / (exact.max() + _TINY),
    }


def _coverage_features(columns: Columns, query: Query, found: Matches, soft: Floats, total: float) -> dict[str, Floats]:
    """Return the shares of the query that the message, its neighbours and its session cover."""
    hit = found.soft > 0
    near = hit | shift(hit, 1) | shift(hit, 2) | shift(hit, -1)
    return {
        "after_question": shift((columns.traits & ASKS > 0).astype(np.float32), 1),
        "goes_on": (np.diff(columns.author, prepend=-1) == 0),
        "after_the_named": shift(np.isin(columns.author, list(query.people)), 1),
        "covered_before": found.idf @ (shift(hit, 1) & ~hit) / total,
        "missing": found.idf @ (~near) / total,
        "covered_best": np.full(len(columns), (found.idf @ near).max(initial=0) / total),
        "covered": found.idf @ hit / total,
        "covered_near": found.idf @ near / total,
        "rarest": (found.idf[:, None] * hit).max(axis=0, initial=0),
        "matched": hit.sum(axis=0),
        "together": _together(found.place),
        "session": _session(columns.session, hit, total),
        "session_best": _best(columns.session, soft) / (soft.max() + _TINY),
    }


def _message_features(columns: Columns, query: Query, first: Floats, named: Floats) -> dict[str, Floats]:
    """Return features that need no words: first scores of the message and its neighbours, authors, dates, sizes."""
    relative = first / (first.max() + _TINY)
    size = len(columns)
    by_named = np.isin(columns.author, list(query.people))
    return {
        "first": first,
        "first_relative": relative,
        "first_before": shift(relative, 1),
        "first_after": shift(relative, -1),
        "length": columns.length,
        "begins": np.diff(columns.session, prepend=-1),
        "names": named,
        "terms": np.full(size, len(query.terms)),
        "when": np.full(size, query.when),
        "counted": np.full(size, query.counted),
        "people": np.full(size, len(query.people)),
        "speaker": np.where(by_named, 1, -1) if query.people else np.zeros(size),
        "dated": np.full(size, query.days is not None),
        "speaks_of_a_time": columns.first >= 0,
    }


def shift(values: Floats, by: int) -> Floats:
    """Move values by so many messages (back if negative), filling up with zeros."""
    moved = np.zeros_like(values)
    if by > 0:
        moved[..., by:] = values[..., :-by]
    elif by < 0:
        moved[..., :by] = values[..., -by:]
    else:
        moved[...] = values
    return moved


def standardise(values: Floats) -> Floats:
    """Convert to standard deviations from the mean, which are comparable between places and embedders."""
    spread: Floats = (values - values.mean()) / (values.std() + _TINY)
    return spread


def _vectors(columns: Columns, cosines: Floats) -> Mapping[str, Floats]:
    alone, around = standardise(cosines), standardise(vector_scores(cosines))
    return {
        "cosine": alone,
        "cosine_around": around,
        "cosine_before": shift(alone, 1),
        "cosine_after": shift(alone, -1),
        "cosine_session": _best(columns.session, alone),
    }


def _around(found: Floats, idf: Floats) -> Floats:
    blurred = sum((weight * shift(found, by) for by, weight in _AROUND), np.zeros_like(found))
    score: Floats = idf @ (blurred * (1 + _SATURATION) / (blurred + _SATURATION))
    return score


def _idf(found: Floats) -> Floats:
    """Return the inverse document frequency of each term; 1 for a term that no message has, in a place of any size."""
    held = (found > 0).sum(axis=1)
    size = max(found.shape[1], _USUAL_SIZE)
    idf: Floats = (np.log(1 + (size - held + 0.5) / (held + 0.5)) / np.log(2 * size + 2)).astype(np.float32)
    return idf


def _rank(values: Floats, chosen: Ints) -> Floats:
    """Return the logarithm of the rank of each chosen message among all."""
    higher = len(values) - np.searchsorted(np.sort(values), values[chosen], side="right")
    return np.log1p(higher.astype(np.float32))


def _together(place: Ints) -> Floats:
    """Return how many neighbours in the query are neighbours in the message."""
    pairs = (place[1:] > 0) & (place[:-1] > 0) & (np.abs(place[1:] - place[:-1]) <= 1)
    count: Floats = pairs.sum(axis=0).astype(np.float32)
    return count


def _session(session: Ints, hit: Floats, total: float) -> Floats:
    """Return the share of the query that the whole session covers, weighted by how rare a term is among sessions."""
    starts = np.flatnonzero(np.diff(session, prepend=-1))
    holds = np.logical_or.reduceat(hit, starts, axis=1) if len(starts) else hit
    covered: Floats = _idf(holds) @ holds / total
    return covered[session]


def _best(session: Ints, values: Floats) -> Floats:
    starts = np.flatnonzero(np.diff(session, prepend=-1))
    return np.maximum.reduceat(values, starts)[session] if len(starts) else values


def _times(columns: Columns, days: tuple[int, int] | None) -> tuple[Floats, Floats, Floats]:
    """Return whether sent within *days*; how many days later or earlier; whether its dates are within them."""
    if days is None:
        nothing = np.zeros(len(columns))
        return nothing, nothing + 99, nothing
    first, last = days
    sent = day_number(columns.at)
    late = np.where(sent > last, sent - last, np.minimum(sent - first, 0))
    dated = (columns.first >= 0) & (columns.first <= last) & (columns.last >= first)
    return (late == 0).astype(np.float32), np.clip(late, -60, 99), dated.astype(np.float32)

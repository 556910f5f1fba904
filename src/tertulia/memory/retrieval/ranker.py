"""Ranks the messages of a place for a query. Pure.

1. Candidates (`first_scores`): BM25 over each message and its neighbours, since a reply often answers with none of the
   words of the question. Words that begin alike count in part. The cosine of vectors is added if there are any, and a
   bonus for messages of the days and authors that the query names. The best `MAX_CANDIDATES` go on.
2. Features (`compute_features`): about fifty numbers for each candidate, such as the share of the query that it covers.
3. Probability (`Forest`): gradient-boosted decision trees give how probable it is that the candidate answers the query.
   `bench/train_recall.py` has trained them, one forest with vectors and one without; `learned/` holds them as JSON. A
   score is a probability, so it means the same in every place.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tertulia.memory.retrieval.features import (
    UNIT,
    Bytes,
    Columns,
    Floats,
    Ints,
    Matches,
    bm25,
    compute_features,
    first_scores,
    match_terms,
)
from tertulia.memory.retrieval.terms import terms
from tertulia.memory.values import PlaceView, Posting, Query

MAX_CANDIDATES = 100  # messages whose features are computed
VECTOR_ROWS = 512  # vectors that are multiplied at once
LEAVES = 8  # of a tree at most: a bit mask of them is one byte
_LOWEST = np.array([next((bit for bit in range(LEAVES) if byte >> bit & 1), 0) for byte in range(256)])

Postings = Sequence[Sequence[Posting]]


class ForestFile(Struct, frozen=True, kw_only=True):
    """A forest as JSON. A tree is a leaf, or [feature, limit, tree up to the limit, tree above it]."""

    features: tuple[str, ...]
    trees: list[object]


class Forest(Struct, frozen=True, kw_only=True):
    """A forest whose nodes are evaluated all at once.

    Each node has a bit mask of the leaves that can still be reached if its value is above the limit. The lowest bit
    that is left in the masks of a tree is its leaf.
    """

    features: tuple[str, ...]
    feature: Ints  # of each node
    limit: Floats
    above: NDArray[np.uint8]  # bit mask of the leaves that are left above the limit
    starts: Ints  # index of the first node of each tree
    leaves: Floats  # values of all trees, LEAVES each

    def predict(self, features: Mapping[str, Floats]) -> Floats:
        """Return the probability of each row."""
        rows = np.stack([features[name] for name in self.features])
        below = rows[self.feature] <= self.limit[:, None]
        left = np.bitwise_and.reduceat(np.where(below, np.uint8(255), self.above[:, None]), self.starts, axis=0)
        reached = _LOWEST[left] + LEAVES * np.arange(len(self.starts))[:, None]
        total: Floats = self.leaves[reached].sum(axis=0)
        return np.asarray(1 / (1 + np.exp(-total)), dtype=np.float32)


def load_forest(body: bytes) -> Forest:
    """Read a forest from JSON."""
    table = msgspec.json.decode(body, type=ForestFile)
    nodes: list[tuple[int, float, int]] = []
    leaves: list[float] = []
    starts: list[int] = []
    for tree in table.trees:
        starts.append(len(nodes))
        values: list[float] = []
        _append_tree(tree, nodes, values)
        leaves += values + [0.0] * (LEAVES - len(values))
        if starts[-1] == len(nodes):
            nodes.append((0, 0.0, 255))  # a tree with one leaf
    feature, limit, above = zip(*nodes, strict=True)
    return Forest(
        features=table.features,
        feature=np.array(feature),
        limit=np.array(limit, dtype=np.float32),
        above=np.array(above, dtype=np.uint8),
        starts=np.array(starts),
        leaves=np.array(leaves, dtype=np.float32),
    )


def _append_tree(tree: object, nodes: list[tuple[int, float, int]], leaves: list[float]) -> None:
    """Append the nodes of *tree* to *nodes*, its leaves from left to right to *leaves*."""
    if not isinstance(tree, list):
        leaves.append(float(str(tree)))
        return
    feature, limit, low, high = tree
    here, before = len(nodes), len(leaves)
    nodes.append((feature, limit, 255))
    _append_tree(low, nodes, leaves)
    lost = (1 << len(leaves)) - (1 << before)
    nodes[here] = (feature, limit, 255 & ~lost)
    _append_tree(high, nodes, leaves)


class PlaceIndex(Struct, frozen=True, kw_only=True):
    """A place as it is searched: its messages as columns of numbers, and their vectors."""

    view: PlaceView
    columns: Columns
    names: Mapping[str, frozenset[int]]  # authors by the terms of their names
    embedder: str | None = None
    vectors: Bytes | None = None  # a row for each message, zeros if it has none yet


class ScoredCandidates(Struct, frozen=True, kw_only=True):
    """The candidates for a query in one place, with their scores and features."""

    query: Query
    matches: Matches
    words: Floats  # BM25 over each message and its neighbours
    cosines: Floats | None
    first: Floats
    candidates: Ints  # numbers of messages, best by *first*
    features: dict[str, Floats]

    @property
    def scores(self) -> Floats:
        """The probability that each candidate answers the query."""
        return load_ranker(vectors=self.cosines is not None).predict(self.features)


def look_up(index: PlaceIndex, query: Query, found: Postings, vector: Floats | None) -> ScoredCandidates:
    """Score the messages of a place by the postings of a query: those of its terms, then those of the names in it."""
    count = len(query.terms)
    matched = match_terms(query.terms, found[:count], index.columns)
    cosines = _cosines(index, vector)
    around = bm25(matched)
    first = first_scores(index.columns, query, around[1], cosines)
    candidates = top_indexes(first, MAX_CANDIDATES)
    candidates = candidates[index.columns.length[candidates] >= 0]
    named = np.zeros(len(index.columns), dtype=np.float32)
    named[[number for some in found[count:] for _, number, _ in some if number < len(named)]] = 1
    return ScoredCandidates(
        query=query,
        matches=matched,
        words=around[1],
        cosines=cosines,
        first=first,
        candidates=candidates,
        features=compute_features(
            index.columns, query, matched, around=around, first=first, chosen=candidates, named=named, cosines=cosines
        ),
    )


@cache
def load_ranker(*, vectors: bool) -> Forest:
    """Load the trained forest, with vectors or without."""
    name = "hybrid.json" if vectors else "words.json"
    return load_forest((files("tertulia.memory") / "learned" / name).read_bytes())


def top_indexes(score: Floats, count: int) -> Ints:
    """Return the indexes of the *count* highest values, best first."""
    if len(score) > count:
        some = np.sort(np.argpartition(-score, count)[:count])
        return some[np.argsort(-score[some], kind="stable")]
    return np.argsort(-score, kind="stable")


def name_terms(
    names: Sequence[tuple[int, str]], before: Mapping[str, frozenset[int]] | None = None
) -> dict[str, frozenset[int]]:
    """Authors by the terms of their names, added to those *before*."""
    known = dict(before or {})
    for author, name in names:
        for term in terms(name):
            known[term] = known.get(term, frozenset()) | {author}
    return known


def explain(lookup: ScoredCandidates, at: int) -> str:
    """Explain in words why the candidate at *at* was found; empty if nothing speaks for it."""
    number = int(lookup.candidates[at])
    held = [word for word, row in zip(lookup.query.words, lookup.matches.soft, strict=True) if row[number] > 0]
    reasons = [f"it says {', '.join(held)}"] if held else []
    if not held and lookup.words[number] > 0:
        reasons.append("messages beside it have the words")
    if lookup.features["speaker"][at] > 0:
        reasons.append("its author is named")
    if lookup.features["inside"][at] > 0 or lookup.features["said_of_it"][at] > 0:
        reasons.append("the time fits")
    if lookup.cosines is not None and lookup.features["cosine"][at] > 2:
        reasons.append("it is near in meaning")
    return "; ".join(reasons)


def _cosines(index: PlaceIndex, vector: Floats | None) -> Floats | None:
    """Return the cosine of each message and the query; a message without a vector gets the mean."""
    if index.vectors is None or vector is None or index.vectors.shape[1] != len(vector):
        return None
    wanted = vector.astype(np.float32)
    products = (  # of a few rows at a time, which needs less memory and no threads
        index.vectors[start : start + VECTOR_ROWS].astype(np.float32) @ wanted
        for start in range(0, len(index.vectors), VECTOR_ROWS)
    )
    cosines = np.concatenate(list(products)) / UNIT
    there = index.vectors[:, :8].any(axis=1)
    if not there.all():
        cosines[~there] = cosines[there].mean() if there.any() else 0
    return np.asarray(cosines, dtype=np.float32)

"""Decision trees that were learned elsewhere, read from a table and asked. Pure."""

from collections.abc import Mapping

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from palaver.memory.retrieval.matrix import Floats, Ints

LEAVES = 8  # at most, in a tree: which of them can still be reached is one byte
_LOWEST = np.array([next((bit for bit in range(LEAVES) if byte >> bit & 1), 0) for byte in range(256)])


class ForestFile(Struct, frozen=True, kw_only=True):
    """A learned forest as JSON. A tree is a leaf, or [feature, limit, the tree up to the limit, the tree above]."""

    features: tuple[str, ...]
    trees: list[object]


class Forest(Struct, frozen=True, kw_only=True):
    """The same laid out so that all nodes are asked at once; each says which leaves cannot be reached any more."""

    features: tuple[str, ...]
    feature: Ints  # of each node
    limit: Floats
    above: NDArray[np.uint8]  # the leaves that are left where the value is above the limit, as bits
    starts: Ints  # where the nodes of each tree begin
    leaves: Floats  # of all trees, LEAVES each

    def ask(self, features: Mapping[str, Floats]) -> Floats:
        """How probable each row is, 0..1."""
        rows = np.stack([features[name] for name in self.features])
        below = rows[self.feature] <= self.limit[:, None]
        left = np.bitwise_and.reduceat(np.where(below, np.uint8(255), self.above[:, None]), self.starts, axis=0)
        reached = _LOWEST[left] + LEAVES * np.arange(len(self.starts))[:, None]
        said: Floats = self.leaves[reached].sum(axis=0)
        return np.asarray(1 / (1 + np.exp(-said)), dtype=np.float32)


def load_forest(body: bytes) -> Forest:
    """The forest of a JSON table."""
    table = msgspec.json.decode(body, type=ForestFile)
    nodes: list[tuple[int, float, int]] = []
    leaves: list[float] = []
    starts: list[int] = []
    for tree in table.trees:
        starts.append(len(nodes))
        values: list[float] = []
        _lay(tree, nodes, values)
        leaves += values + [0.0] * (LEAVES - len(values))
        if starts[-1] == len(nodes):
            nodes.append((0, 0.0, 255))  # a tree of one leaf
    feature, limit, above = zip(*nodes, strict=True)
    return Forest(
        features=table.features,
        feature=np.array(feature),
        limit=np.array(limit, dtype=np.float32),
        above=np.array(above, dtype=np.uint8),
        starts=np.array(starts),
        leaves=np.array(leaves, dtype=np.float32),
    )


def _lay(tree: object, nodes: list[tuple[int, float, int]], leaves: list[float]) -> None:
    """Lay *tree* behind *nodes*, its leaves from left to right behind *leaves*."""
    if not isinstance(tree, list):
        leaves.append(float(str(tree)))
        return
    feature, limit, low, high = tree
    here, before = len(nodes), len(leaves)
    nodes.append((feature, limit, 255))
    _lay(low, nodes, leaves)
    lost = (1 << len(leaves)) - (1 << before)
    nodes[here] = (feature, limit, 255 & ~lost)
    _lay(high, nodes, leaves)

"""Trained forests give the probability that a message answers a query."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tertulia.memory.retrieval.ranker import load_ranker


def test_there_is_a_forest_with_vectors_and_one_without() -> None:
    assert load_ranker(vectors=False).features != load_ranker(vectors=True).features


@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=40))
def test_the_forest_gives_a_probability_for_anything(values: list[float]) -> None:
    trees = load_ranker(vectors=True)
    rows = np.array(values, dtype=np.float32)

    assert all(0 <= one <= 1 for one in trees.predict(dict.fromkeys(trees.features, rows)))

"""The messages of a place are columns of numbers."""

from tertulia.memory.retrieval.features import build_columns


def test_columns_hold_what_was_seen_and_nothing_that_came_since() -> None:
    rows = [(0, 7, 10, 3, 1, -1, -1), (2, 8, 5_000, 2, 0, 9, 9), (3, 7, 6_000, 1, 0, -1, -1)]
    read = build_columns(rows, 3)

    assert len(build_columns([], 0)) == 0
    assert (read.author.tolist(), read.length.tolist()) == ([7, -1, 8], [3, -1, 2])
    assert (read.at.tolist(), read.session.tolist()) == ([10, 10, 5_000], [0, 0, 1])
    assert build_columns(rows[2:], 4, before=read).author.tolist() == [7, -1, 8, 7]

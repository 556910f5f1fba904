"""The committed ratios of the benchmarks name what is measured, and each is above nothing."""

import msgspec
from bench.check import RATIOS, SUBJECTS, Ratio


def test_every_committed_ratio_is_of_subjects_that_are_measured() -> None:
    ratios = msgspec.json.decode(RATIOS.read_bytes(), type=list[Ratio])

    assert {name for one in ratios for name in (one.name, one.of)} <= SUBJECTS.keys()
    assert all(one.most > 0 for one in ratios)

"""Compares ratios of the benchmarks with the ones that are committed: `make bench-check`.

A ratio is our time by that of a floor or a peer in the same run, so that it says the same on any machine. The most it
may be is in figures/ratios.json: 1.3 to 1.6 times what was measured on a busy machine, which shifts ratios. What is
above that in each of three rounds has become slower; then this fails.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench import chat, encode
from bench.common import measure_all

RATIOS = Path(__file__).parent / "figures" / "ratios.json"
ROUNDS, REPEATS = 3, 15
SUBJECTS = {**encode.SUBJECTS, **chat.SUBJECTS}


class Ratio(NamedTuple):
    """How many times as long as *of* the subject *name* may take with *n* messages."""

    name: str
    of: str
    n: int
    most: float


def measured(ratios: list[Ratio]) -> list[float]:
    """Measure all subjects of *ratios* in one run."""
    names = dict.fromkeys(name for one in ratios for name in (one.name, one.of))
    rows = measure_all({name: SUBJECTS[name] for name in names}, sorted({one.n for one in ratios}), REPEATS)
    took = {(row.name, row.n): row.ms for row in rows}
    return [took[one.name, one.n] / took[one.of, one.n] for one in ratios]


def main() -> None:
    left = msgspec.json.decode(RATIOS.read_bytes(), type=list[Ratio])
    for round_ in range(1, ROUNDS + 1):
        found = measured(left)
        for one, ratio in zip(left, found, strict=True):
            verdict = "ok" if ratio <= one.most else f"above in round {round_} of {ROUNDS}"
            print(
                f"{one.name} / {one.of}, {one.n:,} messages: {ratio:.3g}, at most {one.most:g}: {verdict}", flush=True
            )
        left = [one for one, ratio in zip(left, found, strict=True) if ratio > one.most]
        if not left:
            return
    sys.exit(f"slower than before: {', '.join(f'{one.name} at {one.n:,}' for one in left)}")


if __name__ == "__main__":
    main()

"""Learn what search weighs from a LoCoMo file: each conversation left out in turn, then all of them.

    .venv/bin/python bench/train_recall.py DATA [--keep]

Prints the figures of the conversations that were left out (those of the kept weights on the same DATA mean nothing),
how often scores come true, and how often something is recalled that should not be; `--keep` writes the weights into the
package.
"""

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import lightgbm
import numpy as np
from msgspec import Struct

from palaver import Store
from palaver.memory.embedding import Embedder, Embedders, known
from palaver.memory.finding.columns import Floats, Ints
from palaver.memory.finding.trees import read
from palaver.memory.search import Look, Search

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.locomo import Talk, index, keep, load
from bench.recall import KEYS, measures

SETTINGS = {
    "objective": "binary", "num_leaves": 8, "learning_rate": 0.05, "min_data_in_leaf": 40, "feature_fraction": 0.4,
    "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 5, "verbose": -1, "num_threads": 1,
}  # fmt: skip
TREES, SEEDS = 250, 2  # what is learned hangs on chance a little: the mean of two
LEARNED = Path(__file__).parents[1] / "src" / "palaver" / "memory" / "learned"
BANDS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8, 1.0)
STRANGE = 100  # questions of another conversation, and as many of its messages, that are asked in each


class Case(Struct, frozen=True, kw_only=True):
    """One question: what was looked at closely, and which of it answers."""

    talk: int
    category: int
    ids: list[str]  # of the messages that were looked at
    evidence: frozenset[str]
    rows: Floats
    answers: Ints


class Grove:
    """Forests that differ by chance, taken together."""

    def __init__(self, some: Sequence[Case]) -> None:
        rows, answers = np.concatenate([one.rows for one in some]), np.concatenate([one.answers for one in some])
        data = [lightgbm.Dataset(rows, answers) for _ in range(SEEDS)]
        self.forests = [lightgbm.train(SETTINGS | {"seed": seed}, one, TREES) for seed, one in enumerate(data)]

    def predict(self, rows: Floats) -> Floats:
        said = np.mean([one.predict(rows, raw_score=True) for one in self.forests], axis=0)
        return np.asarray(1 / (1 + np.exp(-said)))


async def cases(talks: Sequence[Talk], embedders: Embedders) -> tuple[list[Case], list[Case], tuple[str, ...]]:
    """Every question with its features, what does not belong where it is asked, and the features' names."""
    async with Store.open(":memory:") as store:
        for talk in talks:
            await keep(store, talk.messages)
        await index(store, embedders=embedders)
        found: list[Case] = []
        strange: list[Case] = []
        look: Look | None = None
        for at, talk in enumerate(talks):
            search = Search(store.search, embedders=embedders, now=talk.ended)
            seen = await store.search.seen(talk.place, talk.asker)
            assert seen is not None
            for question in talk.questions:
                look = await search.look(question.text, seen)
                assert look is not None
                found.append(_case(at, talk, look, question.category, question.evidence))
            other = talks[(at + 1) % len(talks)]
            said = [str(getattr(one.parts[0], "text", "")) for one in other.messages[:STRANGE]]
            for kind, text in [*((-1, one.text) for one in other.questions[:STRANGE]), *((-2, one) for one in said)]:
                look = await search.look(text, seen)
                assert look is not None
                strange.append(_case(at, talk, look, kind, frozenset()))
    return found, strange, tuple(look.features) if look else ()


def _case(at: int, talk: Talk, look: Look, category: int, evidence: frozenset[str]) -> Case:
    ids = [talk.messages[number].id for number in look.chosen]
    return Case(
        talk=at,
        category=category,
        ids=ids,
        evidence=evidence,
        rows=np.stack(list(look.features.values()), axis=1),
        answers=np.array([one in evidence for one in ids], dtype=np.int64),
    )


def left_out(talks: Sequence[Talk], every: Sequence[Case], strange: Sequence[Case]) -> None:
    """Print how well each conversation does with what was learned from the others."""
    figures: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    scores: list[tuple[Case, Floats]] = []
    wrong: list[tuple[Case, Floats]] = []
    for at, talk in enumerate(talks):
        grove = Grove([one for one in every if one.talk != at])
        for one in every:
            if one.talk == at:
                given = grove.predict(one.rows)
                scores.append((one, given))
                ids = [one.ids[index] for index in np.argsort(-given, kind="stable")]
                for key in (talk.id, str(one.category), "all"):
                    figures[key].append(measures(ids, one.evidence))
        wrong += [(one, grove.predict(one.rows)) for one in strange if one.talk == at]
    for key, values in sorted(figures.items()):
        print(f"  {key:8}", " ".join(f"{value:.4f}" for value in np.mean(values, axis=0)))
    _reliable(scores)
    _recalled(scores, wrong)


def _reliable(scores: Sequence[tuple[Case, Floats]]) -> None:
    given, answers = np.concatenate([one for _, one in scores]), np.concatenate([case.answers for case, _ in scores])
    for low, high in pairwise(BANDS):
        these = (given >= low) & (given < high)
        said, true = given[these].mean(), answers[these].mean()
        print(f"  score {low:.2f}..{high:.2f}: said {said:.3f}, is {true:.3f} of {these.sum()}")


def _recalled(scores: Sequence[tuple[Case, Floats]], wrong: Sequence[tuple[Case, Floats]]) -> None:
    """What a threshold lets through: of what answers, and for what nothing here answers."""
    total = sum(len(case.evidence) for case, _ in scores)
    for least in BANDS[2:-1]:
        right = sum(int((case.answers[given >= least]).sum()) for case, given in scores)
        shown = sum(int((given >= least).sum()) for _, given in scores)
        strange = [
            [bool((given >= least).any()) for case, given in wrong if case.category == kind] for kind in (-1, -2)
        ]
        print(
            f"  from {least:.2f}: precision {right / max(1, shown):.3f}, recall {right / total:.3f}, "
            f"{shown / len(scores):.2f} a question; something for {np.mean(strange[0]):.3f} of the questions and "
            f"{np.mean(strange[1]):.3f} of the messages of another conversation"
        )


def table(grove: Grove, names: tuple[str, ...]) -> bytes:
    """The forest as JSON, a tree a line."""
    trees = [
        json.dumps(_tree(one["tree_structure"]), separators=(",", ":"))
        for forest in grove.forests
        for one in forest.dump_model()["tree_info"]
    ]
    body = '{"features":' + json.dumps(names) + ',\n"trees":[\n' + ",\n".join(trees) + "\n]}\n"
    return body.encode()


def _tree(node: dict[str, object]) -> object:
    if "leaf_value" in node:
        return float(f"{float(str(node['leaf_value'])) / SEEDS:.4g}")
    below, above = _tree(node["left_child"]), _tree(node["right_child"])  # type: ignore[arg-type]  # JSON
    return [node["split_feature"], float(f"{node['threshold']:.8g}"), below, above]


def _nothing(_: str) -> Embedder | None:
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--keep", action="store_true", help="write the weights into the package")
    options = parser.parse_args()
    talks = load(options.data)
    for name, embedders in (("words", _nothing), ("hybrid", known)):
        every, strange, features = asyncio.run(cases(talks, embedders))
        print(name, "left out", *KEYS)
        left_out(talks, every, strange)
        grove = Grove(every)
        body = table(grove, features)
        kept = read(body)
        worst = max(
            float(np.abs(kept.ask(dict(zip(features, one.rows.T, strict=True))) - grove.predict(one.rows)).max())
            for one in every[::50]
        )
        same = body == (LEARNED / f"{name}.json").read_bytes()
        print(f"  {len(body)} bytes{', those that are kept' if same else ''}; the product differs by {worst:.5f}")
        if options.keep:
            (LEARNED / f"{name}.json").write_bytes(body)


if __name__ == "__main__":
    main()

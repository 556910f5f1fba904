"""Trains the ranking of search on a LoCoMo file: each conversation left out in turn, then all of them.

    .venv/bin/python bench/train_recall.py DATA [--keep]

Prints the figures of the conversations that were left out (those of the kept weights on the same DATA mean nothing),
how often scores come true, and how often something is recalled that should not be; `--keep` writes the weights into the
package. A score has to mean the same in every place, so questions are also asked in parts of the conversations, from
one message to all, with and without what answers them, and messages are asked for by some of their words.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Literal, get_args

import lightgbm
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tertulia import Store
from tertulia.memory.embeddings import Embedders, find_embedder
from tertulia.memory.retrieval.features import Floats, Ints
from tertulia.memory.retrieval.ranker import ScoredCandidates, load_forest
from tertulia.memory.search import Search

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.locomo import Conversation, Question, index, load, no_embedder, store_messages
from bench.recall import KEYS, measures
from bench.recall_excerpts import Excerpt, part, statements, text_of, varied

SETTINGS = {
    "objective": "binary", "num_leaves": 8, "learning_rate": 0.05, "min_data_in_leaf": 40, "feature_fraction": 0.4,
    "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 5, "verbose": -1, "num_threads": 1,
}  # fmt: skip
TREES, SEEDS = 300, 2  # what is learned hangs on chance a little: the mean of two
Kind = Literal["whole", "part", "words", "question from elsewhere", "message from elsewhere"]
WEIGHTS: dict[Kind, float] = {"whole": 4, "part": 2, "words": 0.4}  # of what is learned from; the others only measure
LEARNED = Path(__file__).parents[1] / "src" / "tertulia" / "memory" / "learned"
BANDS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
BARS = (0.3, 0.4, 0.5, 0.6)
SIZES = ((1, 5), (6, 20), (21, 100), (101, 10_000))
STATEMENTS = 200  # messages of each conversation that are asked for by their words
STRANGE = 100  # questions of another conversation, and as many of its messages, that are asked in each


class Case(Struct, frozen=True, kw_only=True):
    """A question with its candidates, their features, and which of them answer."""

    conversation: int
    kind: Kind
    category: int = 0
    size: int  # of the place
    ids: list[str]  # of the messages that were looked at
    evidence: frozenset[str]
    rows: Floats
    answers: Ints


Scored = tuple[Case, Floats]


class Ensemble:
    """The mean of several forests with different seeds."""

    def __init__(self, every: Sequence[Case]) -> None:
        some = [one for one in every if one.kind in WEIGHTS]
        rows, answers = np.concatenate([one.rows for one in some]), np.concatenate([one.answers for one in some])
        weights = np.concatenate([np.full(len(one.rows), WEIGHTS[one.kind]) for one in some])
        data = [lightgbm.Dataset(rows, answers, weight=weights) for _ in range(SEEDS)]
        self.forests = [lightgbm.train(SETTINGS | {"seed": seed}, one, TREES) for seed, one in enumerate(data)]

    def predict(self, rows: Floats) -> Floats:
        said = np.mean([one.predict(rows, raw_score=True) for one in self.forests], axis=0)
        return np.asarray(1 / (1 + np.exp(-said)))


async def cases(conversations: Sequence[Conversation], embedders: Embedders) -> tuple[list[Case], tuple[str, ...]]:
    """Return all cases, and the names of their features."""
    async with Store.open(":memory:") as store:
        for conversation in conversations:
            await store_messages(store, conversation.messages)
        await index(store, embedders=embedders)
        found: list[Case] = []
        look: ScoredCandidates | None = None
        for at, conversation in enumerate(conversations):
            every = range(len(conversation.messages))
            whole = Search(store.index_reader, embedders=embedders, now=conversation.ended)
            for kind, one, numbers in _asked(
                conversation, conversations[(at + 1) % len(conversations)], random.Random(at)
            ):
                excerpt = store.index_reader if numbers is None else Excerpt(store.index_reader, numbers)
                search = whole if numbers is None else Search(excerpt, embedders=embedders, now=conversation.ended)
                seen = await excerpt.view(conversation.place, conversation.asker)
                assert seen is not None
                look = await search.look_up(one.text, seen)
                assert look is not None
                found.append(_case(at, kind, one, [conversation.messages[old].id for old in numbers or every], look))
    return found, tuple(look.features) if look else ()


def _asked(
    conversation: Conversation, other: Conversation, rng: random.Random
) -> Iterator[tuple[Kind, Question, list[int] | None]]:
    """Yield the questions for a conversation, and the numbers of the messages to search; None is all of them."""
    for one in conversation.questions:
        yield "whole", one, None
        yield "part", replace(one, text=varied(one.text, conversation, rng)), part(conversation, one.evidence, rng)
    for one in statements(conversation, STATEMENTS, rng):
        yield "words", one, part(conversation, one.evidence, rng)
    for one in other.questions[:STRANGE]:
        yield "question from elsewhere", replace(one, evidence=frozenset()), None
    for said in other.messages[:STRANGE]:
        yield "message from elsewhere", Question(text=text_of(said), category=0, evidence=frozenset()), None


def _case(at: int, kind: Kind, question: Question, messages: Sequence[str], look: ScoredCandidates) -> Case:
    ids = [messages[number] for number in look.candidates]
    return Case(
        conversation=at,
        kind=kind,
        category=question.category,
        size=len(messages),
        ids=ids,
        evidence=question.evidence,
        rows=np.stack(list(look.features.values()), axis=1),
        answers=np.array([one in question.evidence for one in ids], dtype=np.int64),
    )


def left_out(conversations: Sequence[Conversation], every: Sequence[Case]) -> None:
    """Print the figures of each conversation with weights learned from the others."""
    figures: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    scores: list[Scored] = []
    for at, conversation in enumerate(conversations):
        ensemble = Ensemble([one for one in every if one.conversation != at])
        scores += [(one, ensemble.predict(one.rows)) for one in every if one.conversation == at]
        for one, given in scores:
            if one.conversation == at and one.kind == "whole":
                ids = [one.ids[index] for index in np.argsort(-given, kind="stable")]
                for key in (conversation.id, str(one.category), "all"):
                    figures[key].append(measures(ids, one.evidence))
    for key, values in sorted(figures.items()):
        print(f"  {key:8}", " ".join(f"{value:.4f}" for value in np.mean(values, axis=0)))
    _reliable(scores)
    for least in BARS:
        _recalled(scores, least)


def _reliable(scores: Sequence[Scored]) -> None:
    """Print how often messages of a score answer, in whole conversations and in parts by size."""
    for kind, (least, most) in [("whole", SIZES[-1]), *product(("part", "words"), SIZES)]:
        some = [(case, given) for case, given in scores if case.kind == kind and least <= case.size <= most]
        given, answers = np.concatenate([one for _, one in some]), np.concatenate([case.answers for case, _ in some])
        bands = [(given >= low) & (given < high) for low, high in pairwise(BANDS)]
        told = (f"{given[one].mean():.2f} is {answers[one].mean():.2f} of {one.sum()}" for one in bands if one.any())
        print(f"  {kind}, {least}..{most} messages, said:", ", ".join(told))


def _recalled(scores: Sequence[Scored], least: float) -> None:
    """Print precision and recall of a threshold, and how often something is shown where nothing answers."""
    print(f"  from {least:.2f}:")
    for kind in get_args(Kind):
        some = [(case, given >= least) for case, given in scores if case.kind == kind]
        right = sum(int(case.answers[given].sum()) for case, given in some)
        shown = sum(int(given.sum()) for _, given in some)
        there = [bool(case.answers[given].any()) for case, given in some if case.answers.any()]
        absent = [bool(given.any()) for case, given in some if not case.answers.any()]
        total = sum(int(case.answers.sum()) for case, _ in some)
        print(
            f"    {kind}: precision {right / max(1, shown):.3f}, recall {right / max(1, total):.3f}; something right "
            f"for {_mean(there)} of {len(there)}, something where nothing answers for {_mean(absent)} of {len(absent)}"
        )


def _mean(some: Sequence[bool]) -> str:
    return f"{np.mean(some):.3f}" if some else "none"


def table(ensemble: Ensemble, names: tuple[str, ...]) -> bytes:
    """Write the forest as JSON, one tree a line."""
    trees = [
        json.dumps(_tree(one["tree_structure"]), separators=(",", ":"))
        for forest in ensemble.forests
        for one in forest.dump_model()["tree_info"]
    ]
    body = '{"features":' + json.dumps(names) + ',\n"trees":[\n' + ",\n".join(trees) + "\n]}\n"
    return body.encode()


def _tree(node: dict[str, object]) -> object:
    if "leaf_value" in node:
        return float(f"{float(str(node['leaf_value'])) / SEEDS:.4g}")
    below, above = _tree(node["left_child"]), _tree(node["right_child"])  # type: ignore[arg-type]  # JSON
    return [node["split_feature"], float(f"{node['threshold']:.8g}"), below, above]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--keep", action="store_true", help="write the weights into the package")
    options = parser.parse_args()
    conversations = load(options.data)
    for name, embedders in (("words", no_embedder), ("hybrid", find_embedder)):
        every, features = asyncio.run(cases(conversations, embedders))
        print(name, "left out", *KEYS)
        left_out(conversations, every)
        ensemble = Ensemble(every)
        body = table(ensemble, features)
        kept = load_forest(body)
        worst = max(
            float(np.abs(kept.predict(dict(zip(features, one.rows.T, strict=True))) - ensemble.predict(one.rows)).max())
            for one in every[::50]
        )
        same = body == (LEARNED / f"{name}.json").read_bytes()
        print(f"  {len(body)} bytes{', those that are kept' if same else ''}; the product differs by {worst:.5f}")
        if options.keep:
            (LEARNED / f"{name}.json").write_bytes(body)


if __name__ == "__main__":
    main()

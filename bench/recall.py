"""Measures how well and how fast search finds messages.

    .venv/bin/python bench/recall.py DATA [--json]            # a LoCoMo file
    .venv/bin/python bench/recall.py DATA --scale [MESSAGES]  # a chat of 5,000 in a store of 1,000,000
    .venv/bin/python bench/recall.py --ukrainian DATA         # sentences by their words in other forms

Everything goes through the product: messages are received by a store in a file, indexed by the Indexer, found by
Search.find. A row for each method and category: recall, hits and reciprocal ranks are means over questions, tokens
those of the messages found, ms the 95th percentile of one search that is not the first of its place.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np

from tertulia import Media, Message, Store, Text
from tertulia.memory.embeddings import find_embedder
from tertulia.memory.retrieval.features import Floats
from tertulia.memory.retrieval.ranker import ScoredCandidates, top_indexes
from tertulia.memory.search import Search
from tertulia.tokens import ESTIMATOR

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.locomo import Conversation, index, load, no_embedder, store_messages

SHOWN = 20
KEYS = ("recall@5", "recall@10", "recall@20", "hit@20", "mrr")
Row = dict[str, object]
Ranking = Callable[[Conversation, str], Awaitable[Sequence[Message]]]


async def recall(data: Path) -> list[Row]:
    conversations = load(data)
    with tempfile.TemporaryDirectory() as folder:
        async with Store.open(Path(folder) / "bench.db", durable=False) as store:
            for conversation in conversations:
                await store_messages(store, conversation.messages)
            await index(store, embedders=find_embedder)
            methods = rankings(store)
            return [row for name, ranking in methods.items() for row in await measured(name, ranking, conversations)]


def rankings(store: Store) -> dict[str, Ranking]:
    """Return the methods that are compared."""

    def search(conversation: Conversation, *, words: bool) -> Search:
        found = searches.get((conversation.id, words))
        if found is None:
            found = Search(
                store.index_reader, embedders=no_embedder if words else find_embedder, now=conversation.ended
            )
            searches[conversation.id, words] = found
        return found

    def finding(*, words: bool) -> Ranking:
        async def found(conversation: Conversation, question: str) -> Sequence[Message]:
            one = search(conversation, words=words)
            return [
                hit.message
                for hit in await one.find(question, place=conversation.place, author=conversation.asker, limit=SHOWN)
            ]

        return found

    def scoring(score: Callable[[ScoredCandidates], Floats | None], *, words: bool) -> Ranking:
        async def ranked(conversation: Conversation, question: str) -> Sequence[Message]:
            seen = await store.index_reader.view(conversation.place, conversation.asker)
            look = await search(conversation, words=words).look_up(question, seen) if seen else None
            values = score(look) if look else None
            return [] if values is None else [conversation.messages[number] for number in top_indexes(values, SHOWN)]

        return ranked

    searches: dict[tuple[str, bool], Search] = {}
    methods = {"bm25": scoring(lambda look: look.words, words=True), "words": finding(words=True)}
    if find_embedder("") is None:
        return methods
    return methods | {"vectors": scoring(lambda look: look.cosines, words=False), "hybrid": finding(words=False)}


async def measured(method: str, ranking: Ranking, conversations: Sequence[Conversation]) -> list[Row]:
    values: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for conversation in conversations:
        await ranking(conversation, conversation.questions[0].text)  # the first of a place reads its columns
        for question in conversation.questions:
            began = time.perf_counter()
            found = await ranking(conversation, question.text)
            took = (time.perf_counter() - began) * 1000
            one = (*measures([said.id for said in found], question.evidence), sum(map(_tokens, found)), took)
            values["all"].append(one)
            values[str(question.category)].append(one)
    return [_row(method, category, ones) for category, ones in sorted(values.items())]


def measures(ids: Sequence[str], evidence: frozenset[str]) -> tuple[float, ...]:
    places = [at for at, one in enumerate(ids) if one in evidence]
    recalls = [sum(place < k for place in places) / len(evidence) for k in (5, 10, 20)]
    return (*recalls, float(any(place < SHOWN for place in places)), 1 / (places[0] + 1) if places else 0.0)


def _row(method: str, category: str, ones: Sequence[tuple[float, ...]]) -> Row:
    *means, tokens, _ = np.mean(ones, axis=0)
    figures = {key: round(float(mean), 4) for key, mean in zip(KEYS, means, strict=True)}
    slow = round(float(np.percentile([one[-1] for one in ones], 95)), 2)
    return {"method": method, "category": category, **figures, "tokens": round(float(tokens)), "ms": slow}


def _tokens(message: Message) -> int:
    words = [
        part.text if isinstance(part, Text) else part.words for part in message.parts if isinstance(part, Text | Media)
    ]
    return ESTIMATOR.text(f"{message.author.name}: {' '.join(words)}")


def table(rows: Sequence[Row]) -> str:
    lines: list[list[object]] = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(len(str(line[at])) for line in lines) for at in range(len(lines[0]))]
    return "\n".join("  ".join(f"{one!s:>{width}}" for one, width in zip(line, widths, strict=True)) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", metavar="DATA")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--scale", type=int, nargs="?", const=1_000_000, metavar="MESSAGES")
    parser.add_argument("--ukrainian", type=Path, metavar="DATA")
    options = parser.parse_args()
    if options.ukrainian:
        from bench.recall_ukrainian import ukrainian

        rows = asyncio.run(ukrainian(options.ukrainian))
    elif options.data is None:
        parser.error("name the file with the conversations, or --ukrainian and one with sentences")
    elif options.scale:
        from bench.recall_scale import scale

        rows = asyncio.run(scale(options.data, options.scale))
    else:
        rows = asyncio.run(recall(options.data))
    print(json.dumps(rows, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()

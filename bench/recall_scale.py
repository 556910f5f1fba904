"""Measures indexing and search of one chat of 5,000 messages in a large store."""

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from bench.locomo import load, no_embedder, store_messages

from tertulia import Author, Message, Place, Store, Text
from tertulia.engine.memory.indexer import Indexer
from tertulia.memory.embeddings import MINILM, find_embedder
from tertulia.memory.retrieval.features import Floats
from tertulia.memory.search import Search

CHAT, BATCH, BUSY = 5_000, 500, 64  # messages of a chat; that come together; chats that talk at a time
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
PEOPLE = tuple(Author(id=name, name=name) for name in ("Caroline", "John", "Sam"))


class RandomEmbedder:
    """An embedder of random vectors, without delay. Their values do not change the time of a search."""

    id = MINILM

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        made = np.random.default_rng(len(texts)).normal(size=(len(texts), 384)).astype(np.float32)
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


async def scale(data: Path, count: int) -> list[dict[str, object]]:
    conversations = load(data)
    texts = [
        part.text
        for conversation in conversations
        for said in conversation.messages
        for part in said.parts
        if isinstance(part, Text)
    ]
    questions = [question.text for conversation in conversations for question in conversation.questions]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scale.db"
        async with Store.open(path) as store:
            took = await _fill(store, texts, count)
            size = await asyncio.to_thread(_size, folder)
            rows: list[dict[str, object]] = [
                {"what": "received and indexed", "messages": count, "a second": round(count / took), "MB": size >> 20}
            ]
            place = _place(7)
            vectors = Indexer(store.index_writer, embedders=lambda _: RandomEmbedder())
            vectors.wake(place)
            await vectors.done()
            if embedder := find_embedder(MINILM):
                await embedder.embed(["loaded"])
            for name, embedders in (("words", no_embedder), ("hybrid", find_embedder)):
                rows.append(
                    {
                        "what": name,
                        **await _search_times(Search(store.index_reader, embedders=embedders), place, questions),
                    }
                )
    return [{key: row.get(key, "") for key in dict.fromkeys(key for one in rows for key in one)} for row in rows]


def _size(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).iterdir())


async def _fill(store: Store, texts: Sequence[str], count: int) -> float:
    """Store and index *count* messages; return the seconds."""
    rng = random.Random(3)
    kept = dict.fromkeys(range(max(8, count // CHAT)), 0)
    indexer = Indexer(store.index_writer, embedders=no_embedder)
    began, done = time.perf_counter(), 0
    while done < count:
        number = rng.choice([*kept][:BUSY])
        said = [" ".join(rng.choices(texts, k=2))[: rng.randint(20, 160)] for _ in range(BATCH)]  # no two alike
        start = kept[number]
        await store_messages(store, [_message(text, _place(number), start + at) for at, text in enumerate(said)])
        indexer.wake(_place(number))
        done += BATCH
        kept[number] += BATCH
        if kept[number] >= CHAT:
            del kept[number]
    await indexer.done()
    return time.perf_counter() - began


async def _search_times(search: Search, place: Place, questions: Sequence[str]) -> dict[str, object]:
    """Return milliseconds of a search: the first in the place, and percentiles of the later ones."""
    took = []
    for question in [questions[0], *random.Random(5).sample(questions, 300)]:
        began = time.perf_counter()
        await search.find(question, place=place, author=PEOPLE[0], limit=20)
        took.append((time.perf_counter() - began) * 1000)
    first, *rest = took
    return {
        "first ms": round(first, 1),
        "p50 ms": round(float(np.percentile(rest, 50)), 1),
        "p95 ms": round(float(np.percentile(rest, 95)), 1),
    }


def _place(number: int) -> Place:
    return Place(platform="bench", id=str(number), kind="group")


def _message(text: str, place: Place, number: int) -> Message:
    sent = BEGAN + number * timedelta(minutes=5)
    return Message(id=str(number), place=place, author=PEOPLE[number % 3], sent_at=sent, parts=(Text(text=text),))

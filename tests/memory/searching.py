"""A store that is searched: people who talk in it, an indexer, and embedders that need no packages."""

import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from people import ALICE, BOB, GROUP, NOON, a_message
from tertulia.engine.memory.indexer import Indexer
from tertulia.memory.embeddings import Embedder, Embedders
from tertulia.memory.retrieval.features import Floats
from tertulia.memory.search import Search
from tertulia.messages import Author, Message, Place
from tertulia.store import Store

FILL = (
    "the weather is fine", "ми йдемо додому", "мы пошли домой", "idziemy do domu", "wir gehen nach Hause", "我们回家吧",
    "家に帰ります",
)  # fmt: skip


class Letters:
    """Vectors of the words of a text, as they are written; counts what it has embedded."""

    def __init__(self, id: str = "letters", width: int = 32) -> None:
        self.id = id
        self.width = width
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        self.texts += texts
        table = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                table[row, zlib.crc32(word.encode()) % self.width] += 1
        return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9))


def no_embedder(_: str) -> Embedder | None:
    return None


@asynccontextmanager
async def a_store(path: Path | str = ":memory:") -> AsyncIterator[Store]:
    async with Store.open(path) as store:
        yield store


def talk(*texts: str, place: Place = GROUP, start: int = 0, authors: Sequence[Author] = (ALICE, BOB)) -> list[Message]:
    return [
        a_message(
            text,
            id=str(at),
            place=place,
            author=authors[at % len(authors)],
            sent_at=NOON - timedelta(days=9) + at * timedelta(minutes=1),
        )
        for at, text in enumerate(texts, start)
    ]


async def hear(store: Store, *messages: Message) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


async def index(store: Store, embedders: Embedders = no_embedder) -> None:
    indexer = Indexer(store.index_writer, embedders=embedders)
    await indexer.start()
    await indexer.done()


def a_search(store: Store, **changes: Any) -> Search:
    fields: dict[str, Any] = {"embedders": no_embedder, "now": lambda: NOON}
    return Search(store.index_reader, **fields | changes)


async def found(store: Store, query: str, *, place: Place = GROUP, author: Author = ALICE, **changes: Any) -> list[str]:
    """The ids of what is found, the best first."""
    hits = await a_search(store, **changes).find(query, place=place, author=author, limit=20)
    return [hit.message.id for hit in hits]

"""Measures search for Ukrainian sentences by four of their words, each in another form."""

import json
import random
import re
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pymorphy3
from bench.locomo import index, no_embedder, store_messages

from tertulia import Author, Message, Place, Store, Text
from tertulia.memory.retrieval.ranker import top_indexes
from tertulia.memory.retrieval.terms import STOPWORDS
from tertulia.memory.search import Search

WORD = re.compile(r"[а-щьюяєіїґ'’]{4,}")
KINDS = {"NOUN", "ADJF", "VERB", "INFN"}  # as the dictionary calls content words
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
HERE = Place(platform="bench", id="1", kind="group")
PEOPLE = (Author(id="1", name="Оксана"), Author(id="2", name="Тарас"))
QUERIES = 2_000


def read(path: Path) -> list[str]:
    texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    cut = (one.strip() for text in texts for one in re.split(r"(?<=[.!?…])\s+|\n+", text))
    return list(dict.fromkeys(filter(None, cut)))


async def ukrainian(path: Path) -> list[dict[str, object]]:
    rng, morph = random.Random(7), pymorphy3.MorphAnalyzer(lang="uk")
    sentences = read(path)
    asked = [(at, query) for at, one in enumerate(sentences) if (query := inflected(one, morph, rng))]
    rng.shuffle(asked)
    with tempfile.TemporaryDirectory() as folder:
        async with Store.open(Path(folder) / "ukrainian.db", durable=False) as store:
            await store_messages(store, [_message(text, at) for at, text in enumerate(sentences)])
            await index(store, embedders=no_embedder)
            return await _measured(store, asked[:QUERIES], len(sentences))


async def _measured(store: Store, asked: Sequence[tuple[int, str]], count: int) -> list[dict[str, object]]:
    search = Search(store.index_reader, embedders=no_embedder, now=lambda: BEGAN)
    ranks: dict[str, list[int]] = {"bm25": [], "words": []}
    took: dict[str, list[float]] = {"bm25": [], "words": []}
    for at, query in asked:
        began = time.perf_counter()
        hits = await search.find(query, place=HERE, author=PEOPLE[0], limit=10)
        took["words"].append((time.perf_counter() - began) * 1000)
        seen = await store.index_reader.view(HERE, PEOPLE[0])
        look = await search.look_up(query, seen) if seen else None
        took["bm25"].append((time.perf_counter() - began) * 1000 - took["words"][-1])
        plain = [str(number) for number in top_indexes(look.words, 10)] if look else []
        for name, ids in (("words", [hit.message.id for hit in hits]), ("bm25", plain)):
            ranks[name].append(ids.index(str(at)) + 1 if str(at) in ids else 0)
    return [
        {
            "method": name,
            "sentences": count,
            "queries": len(asked),
            "hit@10": round(float((np.array(those) > 0).mean()), 4),
            "hit@1": round(float((np.array(those) == 1).mean()), 4),
            "ms": round(float(np.percentile(took[name], 95)), 2),
        }
        for name, those in ranks.items()
    ]


def inflected(sentence: str, morph: pymorphy3.MorphAnalyzer, rng: random.Random) -> str | None:
    """Return four content words of *sentence* in other forms; None if it has fewer."""
    present = set(WORD.findall(sentence.lower()))
    forms = []
    for word in sorted(present - STOPWORDS):
        parse = morph.parse(word)[0]
        if not parse.is_known or parse.tag.POS not in KINDS:
            continue
        others = sorted({form.word for form in parse.lexeme if form.tag.POS in KINDS} - present)
        if others:
            forms.append(rng.choice(others))
    return " ".join(rng.sample(forms, 4)) if len(forms) >= 4 else None


def _message(text: str, number: int) -> Message:
    sent = BEGAN + number * timedelta(minutes=1)
    return Message(id=str(number), place=HERE, author=PEOPLE[number % 2], sent_at=sent, parts=(Text(text=text),))

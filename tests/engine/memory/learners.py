"""Learners over a store, the messages they read, and a model that counts."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.engines import ALICE, DIRECT
from people import NOON
from tertulia.engine.memory.learner import Learner
from tertulia.messages import Message, Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store

STATED = {"I love sushi": "Loves sushi.", "I love jazz": "Loves jazz.", "hm": ""}


@asynccontextmanager
async def a_store(path: Path | str = ":memory:") -> AsyncIterator[Store]:
    async with Store.open(path) as store:
        yield store


def a_learner(store: Store, model: Any = None, **changes: Any) -> Learner:
    fields: dict[str, Any] = {"model": model, "now": lambda: NOON}
    return Learner(store.facts, store.cursors, store.log, **fields | changes)


async def hear(store: Store, *messages: Message) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


async def read(learner: Learner, place: Place = DIRECT) -> None:
    learner.wake(place)
    await learner.done()


async def told(store: Store, place: Place | None = None) -> list[str]:
    return [fact.text for fact in await store.facts.listed(place=place)]


def answer(*facts: tuple[int, str], key: str = "other") -> str:
    claims = [
        {"sources": [number], "about": ALICE.id, "key": key, "text": text, "confidence": 1} for number, text in facts
    ]
    return json.dumps({"facts": claims})


class Counting(Scripted):
    """Says nothing is worth keeping, as often as it is asked."""

    async def respond(self, prompt: Any) -> Any:
        self._script = [answer()]
        return await super().respond(prompt)

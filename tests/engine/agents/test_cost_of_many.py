"""Fifteen agents cost no more than one where one is spoken to: no row, and no call of a model, is made for each."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from engine.engines import GROUP, engine_with, said, talked
from people import NOON
from tertulia.engine.agents.agent import Agent
from tertulia.engine.background import RealClock
from tertulia.engine.memory import Memory
from tertulia.messages import Author
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.store import Store
from tertulia.turns import Prompt

ANN, BOB = Author(id="1", name="Ann"), Author(id="2", name="Bob")
TALK = 60  # messages, an hour apart after every tenth


class Endless(Scripted):
    """Says the same for ever."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    async def respond(self, prompt: Prompt) -> Response:
        self._script = [self._words]
        return await super().respond(prompt)


async def rows_and_calls(path: Path, *names: str) -> tuple[Counter[str], int, int]:
    """The rows of each table after a talk, and how often the model that answers and that of memory were asked."""
    speaks, learns = Endless("Indeed."), Endless(json.dumps({"facts": []}))
    agents = [Agent(name=name) for name in names]
    async with Store.open(path, durable=False) as store:
        memory = Memory(store, model=learns, clock=RealClock(now=lambda: NOON))
        async with engine_with(speaks, store=store, agents=agents, memory=memory, now=lambda: NOON) as engine:
            for number in range(TALK):
                at = NOON - timedelta(days=2) + timedelta(minutes=number, hours=number // 10)
                text = f"{'Marie, ' * (number % 3 == 0)}I live in town {number}, by the harbour."
                author = (ANN, BOB)[number % 2]
                await talked(engine, said(text, number, place=GROUP, author=author, sent_at=at))
                if number % 10 == 9:
                    await memory.done()
            await memory.done()
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = Counter({name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables})  # noqa: S608
    return rows, len(speaks.prompts), len(learns.prompts)


async def test_fifteen_agents_make_as_many_rows_and_calls_as_one(tmp_path: Path) -> None:
    alone, answers, calls = await rows_and_calls(tmp_path / "one.db", "Marie")
    others = [f"Agent {number}" for number in range(14)]
    many, *asked = await rows_and_calls(tmp_path / "many.db", "Marie", *others)

    assert asked == [answers, calls]
    assert (answers, calls > 5) == (TALK // 3, True)
    assert alone["messages"] == TALK + answers
    assert alone["episodes"] > 1
    assert alone - many == Counter()
    decided = {"decisions": answers, "place_events": answers}  # what an agent says may be for another
    assert many - alone == Counter({"presences": 15} | decided)

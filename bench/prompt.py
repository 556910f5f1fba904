"""Measures one turn from the message to the bytes: gather, build, repair and encode, by number of stored messages."""

import argparse
import asyncio
import json
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from tertulia.context import gather, sources
from tertulia.context.log import InMemoryLog
from tertulia.context.stable_prefix import Marks
from tertulia.context.values import Persona
from tertulia.messages import Author, Message, Place
from tertulia.models.gemini.encode import encode_request
from tertulia.parts import Text
from tertulia.profiles import PROFILES
from tertulia.wire.repair import repair_prompt

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.common import conversation

STORED = (500, 5_000, 50_000)
WHOLE = Marks(low=500, high=560)  # five hundred messages and more in every request
REPEATS = 41
MODEL = "gemini-3.8-flash"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = Place(platform="bench", id="1", kind="group", title="Friends")
PEOPLE = [Author(id=str(n), name=f"Person {n}") for n in range(5)] + [
    Author(id="me", name="Tertulia", persona="tertulia")
]


def message(number: int, text: str) -> Message:
    return Message(
        id=str(number),
        place=PLACE,
        author=PEOPLE[number % len(PEOPLE)],
        sent_at=NOW + timedelta(minutes=number),
        parts=(Text(text=text),),
    )


async def measure(profile: str, stored: int) -> dict[str, Any]:
    """Return medians of CPU milliseconds: of the whole turn and of each step."""
    said = [one.text for one in conversation(600)]
    log = InMemoryLog(message(number, said[number % 600]) for number in range(stored))
    scene = sources.agent_settings(persona=Persona(name="tertulia", text="You are Tertulia."), delimiter="7f3a9c2e51b0")
    given = [scene, sources.window(log, marks=WHOLE, history_size=1_000)]
    steps: dict[str, list[float]] = {"gather": [], "build": [], "repair": [], "encode": [], "whole": []}
    for number in range(stored, stored + REPEATS):
        target = message(number, said[number % 600])
        started = time.process_time()
        context = await gather(target, given, NOW)
        gathered = time.process_time()
        prompt = PROFILES[profile].build(context)
        built = time.process_time()
        sent = repair_prompt(prompt, MODEL, wire="gemini")
        made_legal = time.process_time()
        encode_request(sent, model=MODEL)
        encoded = time.process_time()
        points = (started, gathered, built, made_legal, encoded)
        took_each = [after - before for before, after in pairwise(points)]
        for name, took in zip(steps, [*took_each, encoded - started], strict=True):
            steps[name].append(took)
        log.add(target)
        assert len(context.window) >= 500
    medians = {name: round(statistics.median(took[1:]) * 1000, 3) for name, took in steps.items()}
    return {"profile": profile, "stored": stored, **medians}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: bench/prompt.py --json")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    wanted = parser.parse_args()
    measured = [asyncio.run(measure(profile, stored)) for profile in ("layered", "tail") for stored in STORED]
    if wanted.json:
        print(json.dumps(measured, indent=1))
        return
    print("| profile | stored | gather | build | repair | encode | whole turn, ms CPU | over encoding |")
    print("|---|---|---|---|---|---|---|---|")
    for row in measured:
        over = row["whole"] - row["encode"]
        cells = [
            row["profile"],
            f"{row['stored']:,}",
            *(f"{row[n]:.3f}" for n in ("gather", "build", "repair", "encode", "whole")),
        ]
        print(f"| {' | '.join([*cells, f'{over:.3f}'])} |")


if __name__ == "__main__":
    main()

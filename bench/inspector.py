"""How much CPU each view of the inspector takes on a store of 50,000 messages and 10,000 runs; half of both is in one
of 40 places. `python bench/inspector.py`
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tertulia.decisions import Decision
from tertulia.engine.memory.indexer import Indexer
from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem
from tertulia.inspector import evidence, home, lists, people, places, requests, runs, search, strata
from tertulia.memory.values import Fact, Subject
from tertulia.messages import Author, Message, Place, Reply
from tertulia.models.base import Usage
from tertulia.models.calls import Call, SentRequest
from tertulia.models.prices import Price
from tertulia.parts import Text
from tertulia.run.journal import Run
from tertulia.store import Store
from tertulia.turns import Layer, Prompt, Record, model, user

START = datetime(2026, 10, 1, tzinfo=UTC)
NOW = START + timedelta(days=30)
REPEATS = 9
PRICE = Price(input=0.5, cached=0.05, output=3.0)
ME = Author(id="me", name="Gryag", persona="gryag")
WORDS = "the we have a picture of what was said about dinner tomorrow train leaves quarter to nine please bring".split()
Measured = Callable[[], Awaitable[Any]]


def a_place(number: int) -> Place:
    return Place(platform="telegram", id=f"-{number}", kind="group", title=f"Group {number}")


def a_text(number: int) -> str:
    return " ".join(WORDS[number * step % len(WORDS)] for step in (1, 3, 5, 7, 11, 13)) + f" {number}"


def a_prompt(number: int) -> Prompt:
    """A prompt whose history grows, and begins anew every hundred requests."""
    history = tuple(user(a_text(one)) for one in range(number - number % 100, number))
    return Prompt(
        layers=(
            Layer(name="static", instruction="You are a friend in a group chat. Answer briefly. " * 10),
            Layer(name="buffered", turns=history),
            Layer(name="trigger", turns=(user(a_text(number)),)),
        )
    )


async def fill(store: Store, messages: int, answers: int) -> None:
    """Store messages of 400 people in 40 places; as many as there are *answers* are answered."""
    spots = [a_place(0) if number % 2 else a_place(number // 2 % 40) for number in range(messages)]
    step = NOW - START
    every = messages // answers
    for first in range(0, messages, 500):
        jobs = []
        for number in range(first, min(first + 500, messages)):
            author = Author(id=str(number % 400), name=f"Person {number % 400}")
            at = START + step * number / messages
            message = Message(
                id=f"m{number}", place=spots[number], author=author, sent_at=at, parts=(Text(text=a_text(number)),)
            )
            jobs.append(store.inbox.receive(message, at=at))
        await asyncio.gather(*jobs)
        unanswered: dict[Place, dict[str, Decision]] = {}
        for number in range(first, min(first + 500, messages)):
            if number % every:
                unanswered.setdefault(spots[number], {})[f"m{number}"] = Decision(reason="not addressed")
        await asyncio.gather(*(store.inbox.skip(where, why, at=NOW) for where, why in unanswered.items()))
        for number in range(first, min(first + 500, messages)):
            if number % every == 0:
                await answer(store, spots[number], number, START + step * number / messages)
    indexer = Indexer(store.index_writer, embedders=lambda name: None)
    await indexer.start()
    await indexer.done()
    subjects = [Subject(platform="telegram", id=str(number), name=f"Person {number}") for number in range(400)]
    facts = [
        Fact(id=f"f{n}", subject=one, text=f"likes tea {n}", place=a_place(0), sources=(f"m{n}",), learned_at=NOW)
        for n, one in enumerate(subjects)
        if n % 2
    ]
    await store.facts.learn(facts)


async def answer(store: Store, place: Place, number: int, at: datetime) -> None:
    """Answer a message with a run of one step, one call and one reply."""
    run = Run(id=f"{number:020x}", place=place, target=f"m{number}", taken=(f"m{number}",), began_at=at, horizon=number)
    await store.runs.begin(run, a_prompt(number // 5), at=at)
    done = at + timedelta(seconds=2)
    sent = SentRequest(sha256="0" * 64, size=9_000, wire="gemini")
    call = Call(
        model="gemini-3-flash", begun_at=at, ended_at=done, run=run.id, step=0, price=PRICE, money=0.001,
        usage=Usage(input=4_000, cached=3_000, output=60), request=sent,
    )  # fmt: skip
    turn = model(f"Yes, {a_text(number)}.", by="gemini-3-flash")
    raw = {"candidates": [{"content": {"parts": [{"text": "Yes"}]}}]}
    await store.runs.add_record(run, 0, Record(turn=turn, at=done, raw=raw), call=call)
    reply = Reply(place=place, text=turn.text)
    item = OutboxItem(id=f"o{number}", reply=reply, made_at=done, run=run.id, author=ME, turns=(turn,))
    ended = Run(**{name: getattr(run, name) for name in run.__struct_fields__} | {"status": "done", "ended_at": done})
    await store.runs.end(ended, replies=[item])
    attempt = DeliveryAttempt(number=1, begun_at=done, ended_at=done, outcome="sent")
    await store.outbox.put(
        OutboxItem(
            id=item.id, reply=reply, made_at=done, run=run.id, author=ME, turns=(turn,), status="sent", attempts=1,
            message_id=f"s{number}", sent_at=done, attempt=attempt,
        )
    )  # fmt: skip


def views(store: Store, last: int) -> dict[str, Measured]:
    """Return the views by their names; *last* is the number of a message that was answered."""
    place, run = a_place(0), f"{last:020x}"
    return {
        "home": lambda: home.home(store, now=NOW),
        "places": lambda: places.places(store, now=NOW),
        "messages of a place": lambda: places.messages(store, place, now=NOW),
        "… in its middle": lambda: places.messages(store, place, before=5_000, now=NOW),
        "decisions": lambda: places.decisions(store, place, now=NOW),
        "runs": lambda: runs.runs(store),
        "runs that failed": lambda: runs.runs(store, status="failed"),
        "one run": lambda: runs.run(store, run),
        "its request": lambda: requests.requests(store, run, 0),
        "strata of a day": lambda: strata.strata(store, place, now=NOW),
        "difference": lambda: strata.difference(store, f"{run}.0", f"{last - 10:020x}.0"),
        "what it knew": lambda: evidence.known(store, place, f"s{last}"),
        "people": lambda: people.people(store),
        "one person": lambda: people.person(store, "telegram.1"),
        "memory of a place": lambda: people.place_memory(store, place, now=NOW),
        "outbox": lambda: lists.outbox(store),
        "tasks": lambda: lists.tasks(store),
        "media": lambda: lists.media(store),
        "usage of a week": lambda: lists.usage(store, (NOW - timedelta(days=7)).date()),
        "search": lambda: search.search(store, "dinner 49999"),
    }


async def measure(view: Measured) -> float:
    """Return the milliseconds of CPU of all threads that a view takes when it is warm; the median."""
    await view()
    spent = []
    for _ in range(REPEATS):
        start = time.process_time()
        await view()
        spent.append(time.process_time() - start)
    return 1_000 * statistics.median(spent)


async def main(messages: int, answers: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bot.db"
        async with Store.open(path, durable=False) as store:
            await fill(store, messages, answers)
        last = (messages - 1) // (messages // answers) * (messages // answers)
        last -= 0 if last % 2 or last // 2 % 40 == 0 else (last // 2 % 40) * 2
        async with Store.open(path, beside=True) as store:
            print(f"{messages:,} messages, {answers:,} runs, {path.stat().st_size / 1e6:,.0f} MB; ms of CPU, median")
            for name, view in views(store, last).items():
                print(f"{name:24} {await measure(view):8.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--answers", type=int, default=10_000)
    given = parser.parse_args()
    asyncio.run(main(given.messages, given.answers))

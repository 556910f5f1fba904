"""A process that writes to a store and says, by a line on its standard output, what it was told is kept."""

import asyncio
import os
import resource
import sys
from datetime import timedelta

from people import ALICE, GROUP, NOON, a_message
from store.builders import a_run, a_task, an_outgoing, begin
from tertulia.errors import StoreFull
from tertulia.store import Store
from tertulia.store.forget import removal
from tertulia.store.sqlite import connection


def say(words: str) -> None:
    print(words, flush=True)


async def receive(store: Store, writers: int) -> None:
    """Receive messages without end, and name each that is kept."""

    async def one(writer: int) -> None:
        number = 0
        while True:
            name = f"{writer}-{number}"
            await store.inbox.receive(a_message(f"hello {name}", id=name), at=NOON)
            say(name)
            number += 1

    await asyncio.gather(*(one(writer) for writer in range(writers)))


async def end_runs(store: Store) -> None:
    """Begin and end runs without end, each with three replies and two tasks."""
    number = 0
    while True:
        run = a_run(id=f"r{number}")
        await begin(store, run)
        replies = [an_outgoing(id=f"{run.id}-{n}", run=run.id) for n in range(3)]
        tasks = [a_task(id=f"{run.id}-{n}", run=run.id, due_at=NOON + timedelta(n)) for n in range(2)]
        done = a_run(id=run.id, status="done", ended_at=NOON)
        await store.runs.end(done, replies=replies, tasks=tasks)
        say(run.id)
        number += 1


async def fill(store: Store) -> None:
    """Receive messages on a disk that has little room until it is full, and then once more with room."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    number = 0
    try:
        while True:
            await asyncio.gather(*(take(store, number + n) for n in range(8)))
            number += 8
    except StoreFull as error:
        say(f"full: {error}")
    await asyncio.sleep(0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await take(store, 1_000_000)
    say(f"faults: {await store.check()}")


async def take(store: Store, number: int) -> None:
    await store.inbox.receive(a_message("long " * 500, id=str(number)), at=NOON)
    say(str(number))


async def forget(store: Store, where: str) -> None:
    """Forget somebody, and end in the midst of it as if killed: before the commit, or before the file is rewritten."""
    await store.inbox.receive(a_message("the zyzzyva and the flowerpot", id="1"), at=NOON)
    await store.tasks.add([a_task(args={"text": "zyzzyva"})])
    cut = {"before": (removal, "remove_person"), "after": (connection.SqliteDatabase, "checkpoint")}[where]
    setattr(*cut, lambda *_: os._exit(9))
    await store.forget(platform="telegram", author_id=ALICE.id)


async def main(path: str, what: str) -> None:
    async with Store.open(path) as store:
        say("open")
        match what:
            case "hold":
                await asyncio.get_running_loop().create_future()
            case "receive":
                await receive(store, 1)
            case "receive together":
                await receive(store, 16)
            case "runs":
                await end_runs(store)
            case "forget before" | "forget after":
                await forget(store, what.split()[1])
            case "fill":
                await fill(store)
            case "wait":
                await store.inbox.receive(a_message(place=GROUP), at=NOON)
                say("done")
                sys.stdin.read()


asyncio.run(main(*sys.argv[1:]))

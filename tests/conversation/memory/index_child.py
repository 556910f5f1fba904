"""A process that indexes a store, forked for each life, which dies at a named statement or when it is killed."""

import asyncio
import os
import signal
import sys
import traceback

from msgspec import Struct, json

from memory.searching import Letters
from palaver.conversation.memory.indexing import Indexer
from palaver.store import Store


class Life(Struct, frozen=True, kw_only=True):
    path: str
    embedder: str
    kill_at: str = ""  # how a statement begins
    times: int = 1  # how often it is reached until then


async def live(life: Life) -> None:
    async with Store.open(life.path) as store:
        left = life.times

        def kill(statement: str) -> None:
            nonlocal left
            left -= statement.startswith(life.kill_at)
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

        if life.kill_at:
            await store._writer.run(lambda database: database.set_trace_callback(kill))
        if await store.indexing.embedder() != life.embedder:
            await store.indexing.choose(life.embedder)
        indexer = Indexer(store.indexing, embedders=Letters)
        await indexer.start()
        await indexer.done()


def born(life: Life) -> None:
    try:
        asyncio.run(live(life))
        os._exit(0)
    except BaseException:  # noqa: BLE001 (nothing of a child may go on in the process it was forked from)
        traceback.print_exc()
    os._exit(1)


def main() -> None:
    """Live each life of a line on the standard input in a process forked from this one; say its id, then how it ended.

    Its id stays its own until an empty line comes, so that whoever kills it late kills nobody else.
    """
    for line in sys.stdin:
        child = os.fork()
        if not child:
            born(json.decode(line, type=Life))
        print(child, flush=True)
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        print(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status, flush=True)
        sys.stdin.readline()
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()

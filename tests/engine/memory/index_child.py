"""A process that indexes a store, forked for each life, which dies at a named statement or when it is killed."""

import os
import signal

from msgspec import Struct, json

from lives import fork_lives
from memory.searching import Letters
from tertulia.engine.memory.indexer import Indexer
from tertulia.store import Store


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
            await store.writer.run(lambda database: database.set_trace_callback(kill))
        if await store.index_writer.embedder() != life.embedder:
            await store.index_writer.choose(life.embedder)
        indexer = Indexer(store.index_writer, embedders=Letters)
        await indexer.start()
        await indexer.done()


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=Life)))

"""A process that adds, sweeps and forgets files of media, and dies in the midst of it: `STORE LIFE STEP`.

The lives `move`, `backup` and `forget` do that alone. At the given step it ends as if killed; a step is a commit, a
statement that deletes rows or changes where the folder is, or a call that changes the folder. Each file holds its
author, so that what is left of one can be searched for in all bytes. Standard output tells what was done.
"""

import asyncio
import os
import random
import resource
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from people import GROUP, NOON, a_message
from store.builders import a_run
from tertulia.errors import StoreFull
from tertulia.media.values import FileForm, Handle, StoredFile
from tertulia.messages import Author
from tertulia.parts import Media
from tertulia.store import Store
from tertulia.store.sqlite import connection
from tertulia.turns import Prompt, user

FILE = StoredFile(sha256="", size=0, mime="image/png")
CALLS = ("fsync", "replace", "unlink", "mkdir", "rmdir", "link")
STATEMENTS = ("COMMIT", "VACUUM", "DELETE", "UPDATE media_folder", "INSERT OR REPLACE INTO media_folder")
LATER = NOON + timedelta(days=1)


def say(words: str) -> None:
    print(words, flush=True)


class Death:
    """Kills this process at a step."""

    def __init__(self, step: int) -> None:
        self.left = step

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Count the calls that change the folder, also in the midst of writing, and the commits."""
        for name in CALLS:
            setattr(os, name, self._counted(getattr(os, name)))
        write, connect = Path.write_bytes, connection.connect

        def write_in_halves(path: Path, data: bytes) -> int:
            write(path, data[: len(data) // 2])
            self.step()
            return write(path, data)

        def watched(path: str, *, durable: bool = True) -> connection.Database:
            database = connect(path, durable=durable)
            database.set_trace_callback(lambda sql: self.step() if sql.startswith(STATEMENTS) else None)
            return database

        Path.write_bytes = write_in_halves  # type: ignore[assignment,method-assign]
        connection.connect = watched

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            done = call(*given, **named)
            self.step()
            return done

        return counted


async def live(store: Store, life: str) -> None:
    """Do one thing after another until death."""
    chance = random.Random(life)  # noqa: S311
    authors = [Author(id=f"u{life}-{number}", name=f"Name{life}x{number}") for number in range(30)]
    sent: list[str] = []
    for number in range(1000):
        author, name = authors[number // 4], f"{life}-{number}"
        data = f"<{author.id}|{name}>".encode() * 50
        picture = Media(media_kind="photo", unique_id=name, sha256=sha256(data).hexdigest())
        await store.inbox.receive(a_message("", id=name, author=author, parts=(picture,)), at=NOON)
        file = await store.media.add(name, data, FILE, at=NOON)
        sent.append(name)
        say(f"added {name} {file.sha256}")
        match chance.randrange(6):
            case 0:
                small = FileForm(file=FILE)
                await store.media.add_form(file.sha256, "small", small, data=data + b"small", at=NOON)
            case 1:
                handle = Handle(sha256=file.sha256, account="a", name=f"files/{name}", uri=f"u/{name}", mime="m")
                await store.media.add_handle(handle, at=NOON)
            case 2:
                await store.inbox.delete(GROUP, chance.choice(sent), at=NOON)
                adding = store.media.add(f"again {name}", data, FILE, at=NOON)
                await asyncio.gather(store.media.sweep(unused_since=NOON - timedelta(days=9), at=LATER), adding)
            case 3:
                run = a_run(id=name, target=name, taken=(name,))
                await store.runs.begin(run, Prompt.of(user(picture)), at=NOON)
                await store.runs.end(a_run(id=name, target=name, taken=(name,), status="done", ended_at=NOON))
        if number % 4 == 3:
            say(f"forgetting {author.id}")
            await store.forget(platform="telegram", author_id=author.id, at=NOON)
            say(f"forgotten {author.id}")


def limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def fill(store: Store) -> None:
    """Add a file for which there is no room, and a smaller one."""
    limit_files(1_000_000)
    try:
        await store.media.add("large", b"x" * 2_000_000, FILE, at=NOON)
    except StoreFull as error:
        say(f"full: {error}")
    say(f"left: {sorted(store.media.folder.names())}, {dict(await store.media.find(['large']))}")
    await store.media.add("small", b"x", FILE, at=NOON)
    say(f"then: {await store.media.read(sha256(b'x').hexdigest(), at=NOON)!r}, {await store.check()}")
    limit_files(os.stat(f"{store.path}-wal").st_size)
    try:
        await store.media.add("other", b"y", FILE, at=NOON)
    except StoreFull:
        say("no room for a row")
    say(f"read: {await store.media.read(sha256(b'x').hexdigest(), at=LATER + timedelta(days=1))!r}")
    say(f"left: {store.media.folder.names() == {sha256(b'x').hexdigest()}}")


async def main(path: str, life: str, step: str) -> None:
    Death(int(step)).watch()
    async with Store.open(path, media_folder=f"{path}-moved" if life == "move" else None) as store:
        say("open")
        match life:
            case "move":
                pass
            case "backup":
                await store.backup(f"{path}-copy")
            case "forget":
                await store.forget(platform="telegram", author_id="u1", at=NOON)
            case "full":
                await fill(store)
            case _:
                await live(store, life)


asyncio.run(main(*sys.argv[1:]))

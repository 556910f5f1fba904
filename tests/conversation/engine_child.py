"""An engine in a process of its own, forked for each life, which dies at a named point or when it is killed."""

import asyncio
import logging
import os
import resource
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec import Struct, json

from palaver.agent.toolbox import tool
from palaver.conversation.conduct import Conduct
from palaver.conversation.engine import Engine
from palaver.conversation.triggers import Limit
from palaver.conversation.working import Work
from palaver.errors import NotSent, PalaverError, StoreFull
from palaver.messages import Author, Message, Place, Reply
from palaver.models import Gemini
from palaver.platform import Capabilities, Delivery, Inbox, Platform, Role
from palaver.store import Store
from palaver.tasks.kinds import DESTRUCTIVE
from palaver.tasks.policy import Retry
from palaver.tasks.values import Task
from palaver.tools.reminding import reminder_tool

MODEL = "gemini-3.8-flash"
BURST = 0.01  # seconds
WRITES = {
    "inbox": ("receive", "pass_over"),
    "runs": ("begin", "resume", "ask", "keep", "begin_tool", "end_tool", "end"),
    "outbox": ("change",),
    "tasks": ("add", "take", "end", "recover"),
    "standing": ("delimiter", "clear", "block", "unblock"),
    "facts": ("learn",),
}
SENDING = ("sending", "sent", "waiting", "doubtful")  # each is a write of its own to the outbox
POINTS = tuple(
    f"{when} {room}.{name}{status}"
    for room, names in WRITES.items()
    for name in names
    for status in ([f" {one}" for one in SENDING] if room == "outbox" else [""])
    for when in ("before", "after")
) + tuple(
    f"{when} {what}" for what in ("platform.send", "book", "look", "ring") for when in ("before", "within", "after")
)

Tell = Callable[[str], None]


class Life(Struct, frozen=True, kw_only=True):
    """What a child is told: where everything is, and how it ends."""

    path: str
    model_url: str
    port: int  # of the platform
    platform: str
    remembers: float = 0.0  # seconds that the platform knows a key again
    room: int = 0  # bytes that the store may grow by; 0 for as many as there are
    patient: bool = False  # whether it goes on when there is no more room; it finds some then, or when no more comes
    kill_at: str = ""  # a point, and how many times it is reached until then: "after runs.end:2"


class Update(Struct, frozen=True, kw_only=True):
    """What a platform has for whoever asks: a message, or the word that no more will come."""

    number: int = -1
    message: Message | None = None


class Death:
    """Ends the process at a point."""

    def __init__(self, kill_at: str) -> None:
        self._point, _, times = kill_at.partition(":")
        self._left = int(times or 1)

    def __call__(self, point: str) -> None:
        if point != self._point:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Room:
    """A room of the store, each of whose writes is named before it begins and after it is kept."""

    def __init__(self, name: str, room: object, tell: Tell) -> None:
        self._name = name
        self._room = room
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._room, name)
        return self._named(name, method) if name in WRITES[self._name] else method

    def _named(self, name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def write(*values: Any, **named: Any) -> Any:
            status = f" {values[0].status}" if self._name == "outbox" else ""
            self._tell(f"before {self._name}.{name}{status}")
            result = await method(*values, **named)
            self._tell(f"after {self._name}.{name}{status}")
            return result

        return write


def watched(store: Store, tell: Tell) -> Any:
    """*store*, with the writes of its rooms named."""
    rooms = {name: Room(name, getattr(store, name), tell) for name in WRITES}
    return SimpleNamespace(**vars(store) | rooms)


class Recording(Platform):
    """A platform at the other end of a socket."""

    def __init__(self, life: Life, tell: Tell) -> None:
        self.name = life.platform
        self.me = Author(id="bot", name="Bot")
        self.capabilities = Capabilities(idempotency_window=timedelta(seconds=life.remembers))
        self._port = life.port
        self._tell = tell

    async def role(self, place: Place, author: Author) -> Role:
        return "owner"

    async def run(self, inbox: Inbox) -> None:
        await asyncio.Event().wait()

    async def send(self, delivery: Delivery) -> str:
        self._tell("before platform.send")
        reply = delivery.reply
        request = {"ask": "send", "key": delivery.id, "place": reply.place.id, "text": reply.text}
        answer = await self._asked(request, "within platform.send")
        self._tell("after platform.send")
        if "wait" in answer:
            raise NotSent("the platform is busy", retry_after=answer["wait"])
        return str(answer["id"])

    async def update(self, had: int | None) -> Update:
        """The next thing that happened there; *had* is the number of the last one that is kept here."""
        return json.decode(json.encode(await self._asked({"ask": "update", "had": had})), type=Update)

    async def _asked(self, request: dict[str, Any], point: str = "within platform.update") -> dict[str, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(json.encode(request) + b"\n")
            await writer.drain()
            self._tell(point)
            answer: dict[str, Any] = json.decode(await reader.readline())
            return answer
        finally:
            writer.close()


class Deeds:
    """What cannot be undone: lines of a file, which are there when the process is not."""

    def __init__(self, path: Path, tell: Tell) -> None:
        self._path = path
        self._tell = tell

    def do(self, what: str, words: str) -> None:
        self._tell(f"before {what}")
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, f"{what} {words}\n".encode())
        self._tell(f"within {what}")
        os.fsync(file)
        os.close(file)
        self._tell(f"after {what}")


def engine_of(store: Any, model: Gemini, platform: Recording, deeds: Deeds) -> Engine:
    @tool
    async def book(message: str) -> str:
        """Books a seat for whoever wrote a message."""
        deeds.do("book", message)
        return "booked"

    @tool(repeatable=True)
    async def look(message: str) -> str:
        """Looks at a message."""
        deeds.do("look", message)
        return "green"

    async def ring(task: Task) -> Sequence[Reply]:
        deeds.do("ring", str(task.args["body"]))
        return ()

    remind_me = reminder_tool(store.tasks, lambda: datetime.now(UTC), "UTC")
    return Engine(
        store,
        model,
        [platform],
        tools=[book, look, remind_me],
        works={"ring": Work(run=ring)},
        conduct=Conduct(
            burst=BURST,
            limit=Limit(messages=10_000),
            retry=Retry(first=timedelta(seconds=0.1)),
            model_may=DESTRUCTIVE,
        ),
    )


async def live(life: Life) -> None:
    """Answer what comes until no more will, and all that was planned has happened."""
    death = Death(life.kill_at)
    platform = Recording(life, death)
    path = Path(life.path)
    deeds = Deeds(path.with_suffix(".did"), death)
    async with (
        Store.open(path) as store,
        Gemini(MODEL, key="k", base_url=life.model_url) as model,
        engine_of(watched(store, death), model, platform, deeds) as engine,
    ):
        if life.room:
            allow(max(one.stat().st_size for one in path.parent.glob("engine.db*")) + life.room)
        had = None
        while (update := await platform.update(had)).message is not None:
            try:
                await engine.receive(update.message)
                had = update.number
            except StoreFull as error:
                if not life.patient:
                    raise
                print(f"error: {error}", file=sys.stderr, flush=True)
                allow(resource.RLIM_INFINITY)
        allow(resource.RLIM_INFINITY)
        await at_rest(engine, store)


def allow(size: int) -> None:
    """Let no file grow beyond *size*, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def at_rest(engine: Engine, store: Store) -> None:
    """Wait until all is done, also what is due later."""
    await engine.settled()
    while (due := await store.tasks.next_due()) is not None:
        await asyncio.sleep((due - datetime.now(UTC)).total_seconds())
        await engine.settled()
    await engine.settled()  # what was due may have been begun just before it was asked for


def born(life: Coroutine[Any, Any, None]) -> None:
    """The child's side of the fork."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        asyncio.run(life)
        os._exit(0)
    except PalaverError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
    except BaseException:  # noqa: BLE001 (nothing of a child may go on in the process it was forked from)
        traceback.print_exc()
    os._exit(1)


def fork_lives(live: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Live each life of a line on the standard input in a process forked from this one; say its id, then how it ended.

    Its id stays its own until an empty line comes, so that whoever kills it late kills nobody else.
    """
    for line in sys.stdin:
        child = os.fork()
        if not child:
            born(live(line))
        print(child, flush=True)
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        print(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status, flush=True)
        sys.stdin.readline()
        os.waitpid(child, 0)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        fork_lives(lambda line: live(json.decode(line, type=Life)))

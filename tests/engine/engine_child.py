"""An engine in a process of its own, forked for each life, which dies at a named point or when it is killed."""

import asyncio
import os
import resource
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from lives import fork_lives
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent
from tertulia.engine.background import RealClock, Sleep
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.limits import Limits
from tertulia.engine.task_worker import TaskHandler
from tertulia.messages import Reply
from tertulia.models import Gemini
from tertulia.parts import Text
from tertulia.platform import Capabilities, Change, Edited, Inbox, Received
from tertulia.store import Store
from tertulia.tasks.kinds import DESTRUCTIVE
from tertulia.tasks.task import Retry, Task
from tertulia.toolbox.toolbox import tool
from tertulia.tools.reminders import reminder_tool
from testing.docs_page import corner

MODEL = "gemini-3.8-flash"
WRITES = {
    "updates": ("apply",),
    "inbox": ("skip",),
    "runs": ("begin", "resume", "ask", "add_record", "begin_tool", "end_tool", "end"),
    "outbox": ("change",),
    "tasks": ("add", "take", "end", "recover"),
    "place_settings": ("delimiter", "clear", "block", "unblock"),
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
    store: str  # the same, or the URL of a database
    model_url: str
    port: int  # of the platform
    platform: str
    remembers: float = 0.0  # seconds that the platform knows a key again
    room: int = 0  # bytes that the store may grow by; 0 for as many as there are
    finds_room: bool = False  # whether there is room again when it waits for some
    agents: tuple[str, ...] = ()  # that answer; none: one without a name
    kill_at: str = ""  # a point, and how many times it is reached until then: "after runs.end:2"


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


class EditedInbox:
    """An inbox for people who name us only when they edit what they wrote: an update for each of both."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def apply(self, changes: Sequence[Change], *, key: str) -> bool:
        (change,) = changes
        if not isinstance(change, Received) or " late]" not in change.message.text:
            return await self._inbox.apply(changes, key=key)
        message = replace(change.message, sent_at=datetime.now(UTC))
        await self._inbox.apply([Received(message=replace(message, parts=(Text(text="hm"),)))], key=key)
        await asyncio.sleep(0.002)  # it is skipped meanwhile, or not
        return await self._inbox.apply([Edited(message=message)], key=f"{key} edited")


class KilledCorner(corner().Corner):  # type: ignore[misc]
    """The platform of the docs, with its sends named before, within and after."""

    def __init__(self, life: Life, tell: Tell) -> None:
        super().__init__(life.port)
        self.name = life.platform
        self.capabilities = Capabilities(idempotency_window=timedelta(seconds=life.remembers))
        self.ended = asyncio.Event()  # no more will come
        self._life = life
        self._tell = tell

    async def run(self, inbox: Inbox) -> None:
        if self._life.room:
            allow(max(one.stat().st_size for one in Path(self._life.path).parent.glob("engine.db*")) + self._life.room)
        await super().run(EditedInbox(inbox))

    async def ask(self, **request: Any) -> dict[str, Any]:
        tell = self._tell if request["do"] == "send" else lambda point: None
        tell("before platform.send")
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(json.encode(request) + b"\n")
            await writer.drain()
            tell("within platform.send")
            answer: dict[str, Any] = json.decode(await reader.readline())
        finally:
            writer.close()
        tell("after platform.send")
        if answer.get("kind") == "end":
            self.ended.set()
            await asyncio.Event().wait()
        return answer


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


async def find_room(seconds: float) -> None:
    """Pause; who pauses for long waits for room on the disk, and there is some now."""
    if seconds >= 1:
        allow(resource.RLIM_INFINITY)
    await asyncio.sleep(min(seconds, 0.01))


def engine_of(
    store: Any, model: Gemini, platform: KilledCorner, deeds: Deeds, *, sleep: Sleep, agents: Sequence[str] = ()
) -> Engine:
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
        agents=[Agent(name=name, persona=Persona(text=f"You are {name}.")) for name in agents],
        tools=[book, look, remind_me],
        task_handlers={"ring": TaskHandler(run=ring)},
        behavior=Behavior(
            debounce=0.0,
            retry=Retry(first=timedelta(seconds=0.1)),
            model_may=DESTRUCTIVE,
        ),
        limits=Limits(messages=10_000),
        clock=RealClock(sleep=sleep),
    )


async def live(life: Life) -> None:
    """Answer what comes until no more will, and all that was planned has happened."""
    death = Death(life.kill_at)
    platform = KilledCorner(life, death)
    path = Path(life.path)
    deeds = Deeds(path.with_suffix(".did"), death)
    async with Store.open(life.store) as store, Gemini(MODEL, key="k", base_url=life.model_url) as model:
        sleep = find_room if life.finds_room else asyncio.sleep
        engine = engine_of(watched(store, death), model, platform, deeds, sleep=sleep, agents=life.agents)
        running = asyncio.create_task(engine.run())
        ended = asyncio.create_task(platform.ended.wait())
        await asyncio.wait([running, ended], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await at_rest(engine, store)
            running.cancel()
        with suppress(asyncio.CancelledError):
            await running


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


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=Life)))

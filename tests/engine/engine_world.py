"""A world for an engine that is the same every time: time that jumps, a store that can end, a platform, a model."""

import asyncio
import selectors
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import count, repeat
from pathlib import Path
from typing import Any, TypeVar, cast

import stored_rows
from people import NOON
from tertulia import (
    Media,
    Opaque,
    Part,
    Prompt,
    RunContext,
    Store,
    Text,
    Thought,
    ToolCall,
    ToolSpec,
    Turn,
    tool,
)
from tertulia.errors import (
    CacheGone,
    ContextTooLong,
    KeyRefused,
    NotSent,
    Overloaded,
    RateLimited,
    RequestRefused,
    ResponseUnreadable,
    SendRefused,
    StoreFull,
)
from tertulia.media.file_folder import FileFolder
from tertulia.messages import Place
from tertulia.models.base import Finish, Outcome, Response
from tertulia.models.gemini.encode import encode_request as to_gemini
from tertulia.models.openai.encode import encode_request as to_openai
from tertulia.platform import Capabilities, Delivery
from tertulia.store.migrations import migrate
from tertulia.store.opening import Opened, driver_of
from tertulia.store.prompts import last_prompt
from tertulia.store.sqlite import connection
from tertulia.store.threads import ConnectionThread, Job, Operation, ReaderThread, WriterThread
from tertulia.store.threads import Outcome as Written
from tertulia.testing import RecordedPlatform
from tertulia.toolbox.toolbox import Toolbox
from tertulia.wire import lint
from tertulia.wire.lint import Violation
from tertulia.wire.repair import repair_prompt

T = TypeVar("T")

NOT_SENT: dict[str, Callable[[], Exception]] = {
    "later": lambda: NotSent("slow down", retry_after=3.0),
    "not now": lambda: NotSent("no connection"),
    "never": lambda: SendRefused("the place is closed"),
    "not sent, unknown": lambda: OSError("broken pipe"),
}

GEMINI = ("gemini-3.8-flash", "gemini-2.5-flash")
OPENAI = ("gpt-5.6", "compatible-1")
ME = RecordedPlatform.me
REMEMBERS = timedelta(minutes=10)
_MOST = 50_000  # rounds of the loop in one piece of work


class Stuck(AssertionError):
    """Somebody waits for something that never comes, or turns in a circle."""


class _Jump(selectors.SelectSelector):
    """Nothing is ever waited for: time jumps to the next thing that is due."""

    loop: "Loop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.loop.rounds += 1
        if timeout is None or self.loop.rounds > _MOST:
            raise Stuck("nothing more will ever happen" if timeout is None else "this never ends")
        self.loop.moment += max(timeout, 0.0)
        return []


class _Here(ThreadPoolExecutor):
    """Does at once what is meant for a thread: no other thread has a part in this world."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 (whoever waits for it raises it)
            done.set_exception(error)
        return done


class Loop(asyncio.SelectorEventLoop):
    def __init__(self, moment: float = 0.0) -> None:
        self.moment = moment
        self.rounds = 0
        selector = _Jump()
        selector.loop = self
        super().__init__(selector)
        self.set_default_executor(_Here())

    def time(self) -> float:
        return self.moment

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        self.rounds = 0
        return self.run_until_complete(work)

    def tick(self, times: int) -> None:
        """Let everybody go on a little; no time passes."""

        async def ticks() -> None:
            for _ in range(times):
                await asyncio.sleep(0)

        self.run(ticks())


class Life:
    """That of one process: once it has ended, nothing it still does has any effect."""

    def __init__(self) -> None:
        self.over = False
        self.room: int | None = None  # writes until the disk is full

    async def goes_on(self) -> None:
        await asyncio.sleep(0)
        if self.over:
            await asyncio.get_running_loop().create_future()


class _Inline(ConnectionThread):
    """The owner of a connection without a thread: work is done in the next round, and told in the one after."""

    def __init__(self, database: connection.Database, life: Life) -> None:
        self.database = database
        self.life = life
        self.error_listeners = []
        self.commit_listeners: list[Any] = []

    async def run(self, operation: Operation[T], *, places: Sequence[Place] = (), autocommit: bool = False) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        loop.call_soon(self._do, loop, Job(operation, done, autocommit))
        return await done

    async def close(self) -> None:
        self.database.close()

    def _do(self, loop: asyncio.AbstractEventLoop, job: Job) -> None:
        if not self.life.over:
            loop.call_soon(self._tell, job.future, self.run_batch([job])[0])

    def _tell(self, done: "asyncio.Future[Any]", outcome: Written) -> None:
        if done.done() or self.life.over:
            return
        if outcome.error is None:
            done.set_result(outcome.value)
        else:
            done.set_exception(outcome.error)


class _Reader(_Inline, ReaderThread):
    pass


class _Writer(_Inline, WriterThread):
    def run_batch(self, jobs: list[Job]) -> list[Written]:
        if self.life.room is not None:
            if self.life.room == 0:
                return [Written(error=StoreFull("there is no room left"))]
            self.life.room -= 1
        return super().run_batch(jobs)


def opened(path: Path, life: Life) -> Store:
    """The store in a file, for as long as *life* goes on."""
    writing = connection.connect(str(path), durable=False)
    connection.enable_wal(writing)
    migrate(writing)
    reading = connection.connect_read_only_beside(str(path))
    opened = Opened(driver_of(str(path)), writing, reading, FileFolder(durable=False), ExitStack())
    return Store(_Writer(writing, life), _Reader(reading, life), opened)


class Wall(RecordedPlatform):
    """A platform on which a process may end while it sends, and that knows a key again for a while if it takes any."""

    def __init__(self, name: str, remembers: timedelta, now: Callable[[], datetime]) -> None:
        super().__init__(name=name, me=ME, capabilities=Capabilities(idempotency_window=remembers))
        self.life = Life()
        self.faults: deque[str] = deque()  # of the next sends, by their names; an empty one: none
        self.made: dict[str, Delivery] = {}  # what each message was first shown for, by its id
        self.wrong: list[str] = []
        self._now = now
        self._known: dict[str, tuple[datetime, str]] = {}  # when a key came, and the id of its message

    async def send(self, delivery: Delivery) -> str:
        await self.life.goes_on()
        fault = self.faults.popleft() if self.faults else ""
        if fault in NOT_SENT:
            raise NOT_SENT[fault]()
        message_id = await super().send(delivery)
        await self.life.goes_on()
        if fault == "sent, unknown":
            raise OSError("connection reset")
        return message_id

    @property
    def doubled(self) -> list[str]:
        return [key for key, times in Counter(made.id for made in self.made.values()).items() if times > 1]

    def _new_id(self, delivery: Delivery) -> str:
        came, message_id = self._known.get(delivery.id, (None, ""))
        if came and self._now() - came < self.capabilities.idempotency_window:
            if self.shown[message_id] != delivery.reply:
                self.wrong.append(f"{delivery.id} was {self.shown[message_id]!r} and now is {delivery.reply!r}")
            return message_id
        message_id = f"{self.name}-{len(self.made)}"
        self._known[delivery.id] = self._now(), message_id
        self.made[message_id] = delivery
        return message_id


class World:
    """What outlives a process: the file, the platforms, and what a model will say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loop = Loop()
        self.aside = Loop()  # for looking without letting anybody go on
        self.walls = {
            "keyed": Wall("keyed", REMEMBERS, self.now),
            "plain": Wall("plain", timedelta(0), self.now),
        }
        self.script: deque[str] = deque()
        self.habits: Iterator[str] = repeat("plain")  # what a model says when nothing is left of the script
        self.tool_runs: Counter[tuple[str, int, int]] = Counter()
        self.illegal: list[tuple[str, list[Violation]]] = []
        self.unkept: list[Prompt] = []  # what a model was asked before it was kept
        self.numbers = count()
        self.life = Life()
        self.open()

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.loop.moment)

    def open(self) -> None:
        """Begin a new life with what the last one has left."""
        self.life = Life()
        self.store = opened(self.path, self.life)
        for wall in self.walls.values():
            wall.life = self.life

    def kill(self) -> None:
        """End this life in the middle of whatever is under way."""
        self.life.over = True
        while tasks := asyncio.all_tasks(self.loop):
            for task in tasks:
                task.cancel()
            self.loop.tick(1)
        self.aside.run(self.store.close())

    def close(self) -> None:
        self.kill()
        for loop in (self.loop, self.aside):
            loop.close()

    @property
    def database(self) -> connection.Database:
        return cast("connection.Database", self.store.reader.database)

    def rows(self, table: str, *columns: str, **where: Any) -> list[tuple[Any, ...]]:
        return stored_rows.read(self.database, table, *columns, **where)

    def toolbox(self) -> Toolbox:
        """A tool that must not run twice, one that may, one that fails, and one that nobody here answers."""

        async def note(context: RunContext, what: str) -> str:
            """Write something down."""
            await self.life.goes_on()
            self.tool_runs[context.run_id, context.step, context.call] += 1
            await asyncio.sleep(1)
            await self.life.goes_on()
            return f"{what} is noted"

        async def look(what: str) -> dict[str, str]:
            """Look at something."""
            await asyncio.sleep(2)
            return {"seen": what}

        async def fail() -> None:
            """Fail."""
            raise RuntimeError("out of order")

        return Toolbox([note, tool(repeatable=True)(look), fail, ToolSpec(name="book", description="Book it")])

    def asked(self, prompt: Prompt, name: str) -> None:
        """Judge what a model is asked."""
        faults = violations(prompt, name)
        if faults:
            self.illegal.append((name, faults))
        kept = [last_prompt(self.database, run) for (run,) in self.rows("runs", "run_id", status="open")]
        if not any(asked and asked[1] == prompt for asked in kept):
            self.unkept.append(prompt)


class Talker:
    """A model that says what it is told to say; when nothing is left, what it is used to say."""

    def __init__(self, name: str, world: World, life: Life) -> None:
        self.name = name
        self._world = world
        self._life = life

    async def respond(self, prompt: Prompt) -> Response:
        await self._life.goes_on()
        self._world.asked(prompt, self.name)
        kind = self._world.script.popleft() if self._world.script else next(self._world.habits)
        if kind == "slow":
            await asyncio.sleep(5)
        await self._life.goes_on()
        made = said(kind, next(self._world.numbers), self.name)
        if isinstance(made, Exception):
            raise made
        return made

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        response = await self.respond(prompt)
        for part in response.parts:
            yield part
        yield response


def violations(prompt: Prompt, name: str) -> list[Violation]:
    """What the service of the model of that name would refuse in what is sent to it."""
    sent = repair_prompt(prompt, name, wire="openai" if name in OPENAI else "gemini")
    body = to_openai(sent, model=name) if name in OPENAI else to_gemini(sent, model=name)
    return lint(body, model=name, strict=True)


_ERRORS: dict[str, Callable[[], Exception]] = {
    "refused": lambda: RequestRefused("400 INVALID_ARGUMENT"),
    "too long": lambda: ContextTooLong("too many tokens"),
    "cache gone": lambda: CacheGone("no such cache"),
    "busy": lambda: Overloaded("503"),
    "busy for long": lambda: RateLimited("429", retry_after=4_000.0),
    "wait": lambda: RateLimited("429", retry_after=7.0),
    "key": lambda: KeyRefused("401"),
    "unreadable": lambda: ResponseUnreadable("<html>"),
    "broken": lambda: RuntimeError("a mistake in the client"),
}
_ENDS: dict[str, Outcome] = {
    "blocked": "blocked",
    "prompt blocked": "prompt_blocked",
    "malformed": "malformed",
    "incomplete": "incomplete",
    "cut": "cut",
    "cut call": "cut",
    "other": "other",
}
_WORDS: dict[str, str] = {
    "sends": "First {n}.\n\n# «send»\nSecond {n}.\n\n# «send» 7\nThird {n}.",
    "only send": "# «send»\nAlone {n}.",
    "later": "Now {n}.\n\n# «wait»\ndelay: 5\n\n# «send»\nLater {n}.",
    "only later": "# «wait»\ndelay: 90\n\n# «send»\nMuch later {n}.",
    "remember": "Noted {n}.\n\n# «remember»\nLikes the number {n}",
    "think": "# «think»\nNothing to say to that {n}.",
    "sticker": "# «sticker»\ncats\nwave{n}",
    "clear": "Forgotten {n}.\n\n# «clear-conversation»",
    "block": "No more {n}.\n\n# «block»",
    "unblock": "# «unblock»",
    "unknown block": "Yes {n}.\n\n# «sned»\nlost {n}",
    "bad block": "# «wait»\nsoon {n}",
    "blank": " \n ",
    "markup": "[meta] name=x\n```markdown\n# «send»\nin a fence {n}\n```",
}


def said(kind: str, number: int, name: str) -> Response | Exception:
    if kind in _ERRORS:
        return _ERRORS[kind]()
    outcome = _ENDS.get(kind, "complete")
    if kind == "empty":
        outcome = "empty"
    turn = Turn(role="model", parts=tuple(_parts(kind, number, name)), model=name)
    return Response(turn=turn, finish=Finish(outcome=outcome, reason=kind), raw={"number": number, "kind": kind})


def _parts(kind: str, number: int, name: str) -> Iterable[Part]:
    signature = f"c2ln{number:04}" if name in GEMINI else None
    if kind in ("empty", "blocked", "prompt blocked", "malformed"):
        return []
    if kind == "signature alone":
        return [Text(text="", signature=signature)]
    if kind in ("calls", "cut call"):
        calls = [("note", {"what": f"{number}"}), ("look", {"what": "there"}), ("fail", {})][: 1 + number % 3]
        return [*_called(calls, number, signature)]
    if kind == "odd calls":
        odd: list[tuple[str, dict[str, Any]]] = [("note", {"wrong": 1}), ("nothing", {}), ("note", {"what": "x"})]
        return [
            Thought(text="hm", signature=signature),
            Text(text=f"Let me see {number}."),
            *_called(odd, 1, signature),
        ]
    if kind == "book":
        return [*_called([("book", {}), ("note", {"what": "b"})][: 1 + number % 2], number, signature)]
    if kind == "picture":
        return [
            Text(text=f"Look {number}."),
            Media(media_kind="image", unique_id=f"i{number}", data=b"png", mime="image/png"),
        ]
    if kind == "opaque":
        return [Text(text=f"Run {number}.", signature=signature), *_opaque(name, number)]
    words = _WORDS.get(kind, "Answer {n}.").format(n=number)
    return [
        *([Thought(text="I think.", signature=signature)] if number % 2 else []),
        Text(text=words, signature=signature),
    ]


def _opaque(name: str, number: int) -> list[Part]:
    return [Opaque(raw={"executableCode": {"language": "PYTHON", "code": f"{number}"}})] if name in GEMINI else []


def _called(calls: Iterable[tuple[str, dict[str, Any]]], number: int, signature: str | None) -> Iterable[ToolCall]:
    """The calls of one step; ids come again in later ones, and Gemini's may be ours."""
    for index, (name, args) in enumerate(calls):
        made = f"tertulia-{number}-{index}" if number % 2 else f"call-{index}"
        yield ToolCall(name=name, args=args, id=made, signature=None if index else signature)


KINDS = sorted(
    {
        *_ERRORS,
        *_ENDS,
        *_WORDS,
        "empty",
        "signature alone",
        "calls",
        "odd calls",
        "book",
        "picture",
        "opaque",
        "plain",
        "slow",
    }
)
FAULTS = (*NOT_SENT, "sent, unknown")

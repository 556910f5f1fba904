"""The world of an engine that is killed: a model that does as it is asked, people who write, what they get to see."""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

from msgspec import Struct, json, to_builtins

from conversation.engine_child import BURST
from palaver.messages import Author, Message, Place
from palaver.parts import Text
from palaver.sim.gemini import Answer, Ask, Raw

Kind = Literal["with keys", "without keys"]

KINDS = "plain book look both plan remind note ring slip block unblock clear aside".split()
SLIPPED = "Some blocks of your last answer"  # how the engine begins to tell a model of bad blocks
ANSWERS = {
    "plan": "# «wait»\ndelay: 1\n\n# «send»\nlater {name}",
    "note": "# «remember»\n{name} likes tea",
    "ring": "# «ring»\n{name}",
    "slip": "# «sned»\nnobody sees this",
    "block": "# «block»",
    "unblock": "# «unblock»",
    "clear": "# «clear-conversation»",
}
CALLS = {"book": ["book"], "look": ["look"], "both": ["book", "look"], "remind": ["remind_me"]}


class Answering:
    """A model whose answer is a function of the request: the message names what is to be done."""

    def answer(self, ask: Ask) -> Answer | Raw:
        if ask.last_text.startswith(SLIPPED):
            return Answer(parts=[{"text": "# «think»\nThey are not needed."}])
        name, kind = re.findall(r"\[(m\d+) (\w+)\]", ask.last_text)[-1]
        if kind in CALLS and not any("functionResponse" in part for part in ask.request["contents"][-1]["parts"]):
            return Answer(parts=[{"functionCall": _call(one, name)} for one in CALLS[kind]])
        return Answer(parts=[{"text": "\n\n".join([f"re {name}", *_blocks(kind, name)])}])


def _call(tool: str, name: str) -> dict[str, Any]:
    reminder = {"when": "in 1 second", "text": f"later {name}"}
    return {"name": tool, "args": reminder if tool == "remind_me" else {"message": name}}


def _blocks(kind: str, name: str) -> Iterator[str]:
    if kind in ANSWERS:
        yield ANSWERS[kind].format(name=name)


class Shown(Struct, frozen=True, kw_only=True):
    """A message of the agent's as people see it."""

    id: str
    key: str
    text: str


class World:
    """The people and their platform: what they write, delivered at least once, and what they get to see."""

    def __init__(self, kind: Kind, seed: int) -> None:
        self.kind = kind
        self.shown: list[Shown] = []
        self.acknowledged = 0  # messages that are kept on the other side
        self.port = 0
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311 (nothing secret)
        self._delivered = 0  # messages, at least once
        self._allowed = 0.0  # messages that may be delivered
        self._closing = False
        self._life = 0
        self._change = asyncio.Event()
        self._events = 0  # in this life: what was asked of the world, and of the model
        self._mark = 0
        self._marked = asyncio.Event()
        self._told: dict[str, float] = {}  # when the last message of a place was acknowledged
        self._refused: set[str] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["World"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.begin(0)
            server.close()

    @property
    def messages(self) -> list[Message]:
        """What was delivered and acknowledged."""
        return [self._message(number) for number in range(self.acknowledged)]

    def begin(self, more: float) -> None:
        """A new life begins, in which so many more messages may be delivered."""
        self._life += 1
        self._events = 0
        self._allowed = max(self._delivered, self.acknowledged + more)
        self._stir()

    def happens(self, *_: object) -> None:
        """Something was asked of the world, or of the model."""
        self._events += 1
        if self._events >= self._mark:
            self._marked.set()

    async def until(self, events: int, *, patience: float | None = None) -> None:
        """Wait until so much has happened in this life, or nothing for longer than anybody waits."""
        self._mark = events
        self._marked.clear()
        seen = -1
        while seen < self._events < events:
            seen = self._events
            with suppress(TimeoutError):
                await asyncio.wait_for(self._marked.wait(), patience)

    def close(self) -> None:
        """Deliver what was promised, and no more."""
        self._closing = True
        self._stir()

    def _stir(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            line = await reader.readline()
            if line.endswith(b"\n"):
                self.happens()
                request = json.decode(line)
                answer = self._send(request) if request["ask"] == "send" else await self._update(request["had"])
                writer.write(json.encode(answer) + b"\n")
                await writer.drain()
        writer.close()

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request["key"]
        known = next((one.id for one in self.shown if one.key == key), None) if self.kind == "with keys" else None
        if known is not None:
            return {"id": known}
        if key not in self._refused and self._chance.random() < 0.15:
            self._refused.add(key)
            return {"wait": 0.01}
        self.shown.append(Shown(id=f"p{len(self.shown)}", key=key, text=request["text"]))
        return {"id": self.shown[-1].id}

    async def _update(self, had: int | None) -> dict[str, Any]:
        life = self._life
        if had is not None and had == self.acknowledged:
            self._told[self._message(had).place.id] = time.monotonic()
            self.acknowledged += 1
        if self.acknowledged and self._chance.random() < 0.2:
            return self._update_of(self._chance.randrange(max(0, self.acknowledged - 10), self.acknowledged))
        while life == self._life:
            if self.acknowledged < self._allowed:
                await self._spaced(self._message(self.acknowledged).place.id)
                return self._update_of(self.acknowledged)
            if self._closing:
                return {}
            await self._change.wait()
        return {}

    async def _spaced(self, place: str) -> None:
        """Wait until the last message of a place is longer ago than a burst lasts."""
        left = self._told.get(place, 0.0) + 3 * BURST - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)

    def _update_of(self, number: int) -> dict[str, Any]:
        self._delivered = max(self._delivered, number + 1)
        return {"number": number, "message": to_builtins(self._message(number))}

    def _message(self, number: int) -> Message:
        """What is written is a function of its number: all kinds in an order of their own, three places at a time."""
        turn, position = divmod(number, len(KINDS))
        kinds = KINDS.copy()
        random.Random(f"{self._seed} {turn}").shuffle(kinds)  # noqa: S311
        kind = kinds[position]
        place = self._place(number, kind)
        author = f"{kind}-{number}" if "block" in kind else f"of-{place.id}"
        text = Text(text=f"[m{number} {kind}] if you please\nI like tea m{number}")
        return Message(id=f"m{number}", place=place, author=Author(id=author, name="Ann"), parts=(text,))

    def _place(self, number: int, kind: str) -> Place:
        if kind == "aside":  # in a group, and not to us
            return Place(platform=self.kind, id=f"g{number // 40}", kind="group", title="Friends")
        alone = kind in ("plan", "remind") and number % 2  # what is planned there, no later message calls off
        name = f"a{number}" if alone else f"d{number // 24 * 3 + number % 3}"
        return Place(platform=self.kind, id=name, kind="direct")

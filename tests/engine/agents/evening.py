"""Agents and people who talk an evening long, each message with a secret: who answered, and who was told which."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from engine.engines import GROUP
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.memory import Memory
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.base import Response
from tertulia.models.scripted import Line, Scripted
from tertulia.parts import Text
from tertulia.platform import Commanded
from tertulia.store import Store
from tertulia.testing import Clock, RecordedPlatform
from tertulia.turns import Prompt

ANN, BOB, CLEO, DAN = (Author(id=name.lower(), name=name) for name in ("Ann", "Bob", "Cleo", "Dan"))
PEOPLE = (ANN, BOB, CLEO, DAN)
SECRET = re.compile(r"Z[a-z]q[a-z]{3}v")

ADDED = "Emmy"  # who has the model of the engine

Said = tuple[str, str]  # the agent, and its words without the secret


def secret(number: int) -> str:
    first, *rest = (chr(97 + number // 26**power % 26) for power in range(4))
    return f"Z{first}q{''.join(rest)}v"


class Character(Scripted):
    """A model that says what it is told to say next, else how often it was asked; each time with a secret."""

    def __init__(self, name: str, evening: "Evening") -> None:
        super().__init__(name=name)
        self.next: list[Line] = []
        self.asked = asyncio.Event()
        self.held: asyncio.Event | None = None  # its answer waits for this
        self._evening = evening

    async def respond(self, prompt: Prompt) -> Response:
        self.asked.set()
        if self.held is not None:
            self.prompts.append(prompt)
            await self.held.wait()
            self.prompts.pop()
        line = self.next.pop(0) if self.next else f"I see, {len(self.prompts) + 1}."
        self._script = [f"{line} {self._evening.new_secret(self.name)}" if isinstance(line, str) else line]
        return await super().respond(prompt)


class Evening:
    """What people and agents say, and in which places each agent was when it was said."""

    def __init__(self, names: Sequence[str]) -> None:
        self.models = {name: Character(name, self) for name in (*names, ADDED)}
        self.platform = RecordedPlatform()
        self.clock = Clock()
        self.told: dict[str, tuple[Place, frozenset[str]]] = {}  # where each secret was said, and who was there
        self.engine: Engine
        self.store: Store
        self._place = GROUP  # where somebody has spoken last
        self._here: frozenset[str] = frozenset()
        self._count = 0

    def new_secret(self, agent: str = "") -> str:
        found = secret(len(self.told))
        self.told[found] = (self._place, self._here | {agent} if agent else self._here)
        return found

    async def receive(self, author: Author, text: str, place: Place = GROUP, **fields: Any) -> Message:
        """Let somebody say something, with a secret that is also a fact about them."""
        chosen, cast = await self.store.agents.cast(place), Cast(agents=self.engine.agents)
        here = cast.in_place(place, listed=chosen.agents or (), default=chosen.default or "").agents
        self._place, self._here = place, frozenset(agent.name for agent in here)
        self._count += 1
        words = f"{text} I live in {self.new_secret()}."
        message = Message(
            id=f"m{self._count}",
            place=place,
            author=author,
            sent_at=self.clock.now(),
            parts=(Text(text=words),),
        )
        message = Message(**{name: getattr(message, name) for name in message.__struct_fields__} | fields)
        await self.engine.receive(message)
        return message

    async def say(self, author: Author, text: str, place: Place = GROUP, **fields: Any) -> list[Said]:
        """What the agents say to a message, in order."""
        before = len(self.platform.deliveries)
        await self.receive(author, text, place, **fields)
        await self.settled()
        return self.since(before)

    async def quote(self, place: Place, back: int) -> Quote | None:
        """A message of a place, so many back, as a platform gives it in a reply: with its words."""
        count = await self.store.log.count(place)
        found = await self.store.log.read(place, count - back, count - back + 1) if 0 < back <= count else ()
        return Quote(message_id=found[0].id, author=found[0].author, parts=found[0].parts) if found else None

    async def command(self, author: Author, line: str, place: Place = GROUP) -> list[str]:
        """What people read after a command."""
        before, self._count = len(self.platform.deliveries), self._count + 1
        name, _, argument = line.removeprefix("/").partition(" ")
        message = Message(id=f"c{self._count}", place=place, author=author, parts=(Text(text=line),))
        commanded = Commanded(message=message, name=name, argument=argument)
        await self.engine.inbox("recorded").apply([commanded], key=message.id)
        await self.settled()
        return [words for _, words in self.since(before)]

    def since(self, before: int) -> list[Said]:
        new = self.platform.deliveries[before:]
        return [(one.agent.name if one.agent else "", SECRET.sub("", one.reply.text).strip()) for one in new]

    async def settled(self) -> None:
        settled = asyncio.ensure_future(self.engine.settled())
        while not settled.done():
            await self.clock.advance(0.5)
            await asyncio.sleep(0)
        await settled
        if self.engine.memory:
            await self.engine.memory.done()

    def shown(self, name: str) -> set[str]:
        """The secrets that an agent's prompts have."""
        return {found for prompt in self.models[name].prompts for found in SECRET.findall(str(prompt))}

    def may_see(self, agent: Agent, *, missed: bool) -> set[str]:
        """The secrets that were said while an agent was there; those of groups that it *missed*, if it knows all."""
        return {
            one
            for one, (place, there) in self.told.items()
            if agent.name in there or (missed and agent.knows == "all" and place.kind != "direct")
        }

    def leaks(self) -> dict[str, set[str]]:
        """The secrets that each agent was told although it was not there."""
        agents = {one.name: one for one in (*self.engine.agents, Agent(name=ADDED))}
        found = {name: self.shown(name) - self.may_see(agent, missed=True) for name, agent in agents.items()}
        return {name: leaked for name, leaked in found.items() if leaked}


@asynccontextmanager
async def an_evening(
    agents: Sequence[Agent], *, locked: bool = False, memory: bool = True, **changes: Any
) -> AsyncIterator[Evening]:
    evening = Evening([one.name for one in agents])
    fields = {"debounce": 1.0, "max_debounce": 10.0, "owners": ("recorded:ann",)} | changes.pop("behavior", {})
    made = [
        Agent(
            **{name: getattr(one, name) for name in one.__struct_fields__}
            | {"models": (evening.models[one.name],), "persona": Persona(text=f"You are {one.name}.")}
        )
        for one in agents
    ]
    async with Store.open(":memory:") as store:
        engine = Engine(
            store,
            evening.models[ADDED],
            [evening.platform],
            agents=Cast(agents=tuple(made), locked=locked),
            behavior=Behavior(**fields),
            memory=Memory(store, clock=evening.clock) if memory else None,
            clock=evening.clock,
            **changes,
        )
        evening.engine, evening.store = engine, store
        async with engine:
            yield evening

"""A room with three philosophers, without a key: `python examples/philosophers.py`. Each line is a message to them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from itertools import cycle

from tertulia import Agent, Author, Behavior, Delivery, Engine, Inbox, Message, Persona, Place, Platform, Store, Text
from tertulia.models.base import Finish, Response
from tertulia.turns import Prompt, model

AGORA = Place(platform="agora", id="stoa", kind="group", title="Stoa")
SAYINGS = {
    "Socrates": ("I know that I know nothing. Plato, do you know more?", "And what do you call good?"),
    "Plato": ("We see shadows on a wall.", "The good is what all things long for."),
    "Diogenes": ("You stand in my light.", "I am looking for an honest man."),
}


class Room(Platform):
    """A platform that prints what is said in it."""

    name = "agora"
    me = Author(id="bot", name="Agora")
    sent = 0

    async def run(self, inbox: Inbox) -> None:
        await asyncio.Event().wait()

    async def send(self, delivery: Delivery) -> str:
        who = delivery.agent.name if delivery.agent else self.me.name
        print(f"{who}: {delivery.reply.text}", flush=True)
        self.sent += 1
        return f"said-{self.sent}"


class Thinker:
    """A model that says the same few things again and again. `Gemini(…)` or `OpenAI(…)` in its place would think."""

    def __init__(self, name: str) -> None:
        self.name = f"the head of {name}"
        self._sayings = cycle(SAYINGS[name])

    async def respond(self, prompt: Prompt) -> Response:
        return Response(turn=model(next(self._sayings)), finish=Finish(outcome="complete"))

    async def stream(self, prompt: Prompt) -> AsyncIterator[Response]:
        yield await self.respond(prompt)


async def main() -> None:
    agents = [Agent(name=name, persona=Persona(text=f"You are {name}."), models=(Thinker(name),)) for name in SAYINGS]
    async with Store.open(":memory:") as store:
        heads = agents[0].models
        async with Engine(store, heads, [Room()], agents=agents, behavior=Behavior(debounce=0.0)) as engine:
            print(f"In the room are {', '.join(SAYINGS)}. Say something to one of them.", flush=True)
            number = 0
            while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
                number += 1
                you = Author(id="you", name="You")
                await engine.receive(Message(id=f"you-{number}", place=AGORA, author=you, parts=(Text(text=line),)))
                await engine.settled()


if __name__ == "__main__":
    asyncio.run(main())

"""A bot on one of the two platforms of the invented chat service, in a process forked for each life."""

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator

from msgspec import Struct, json
from msgspec.structs import replace

from keyless_chat import KeylessChat
from lives import fork_lives
from tertulia import Behavior, Delivery, Engine, Platform, Store
from tertulia.engine.limits import Limits
from tertulia.models.base import Finish, Response
from tertulia.parts import Part, Text
from tertulia.turns import Prompt, Turn
from testing.docs_page import corner

PIECE = 0.001  # seconds between two pieces of an answer
WORDS = 5  # of an answer between two drafts, if it waits for them


class Life(Struct, frozen=True, kw_only=True):
    """What a child is told."""

    path: str
    port: int
    platform: str
    messages: int = 0  # after which it ends when all is done; 0: it lives until it is killed
    kill_at: str = ""  # before or after a send: "after draft 1", "before answer edit 1", counted in this life


def answer_to(number: int) -> str:
    """An answer of one to four parts, each of them a message of 300 characters at most."""
    return "\n\n".join(f"answer {number}.{part}{' word' * 50}" for part in range(number % 4 + 1))


class Echo:
    """A model that answers to the number of a message, a piece at a time."""

    name = "echo"

    def __init__(self, shown: asyncio.Semaphore | None = None) -> None:
        self._shown = shown  # released for each draft; with it a few words wait for each

    async def respond(self, prompt: Prompt) -> Response:
        await asyncio.sleep(PIECE)
        return self._response(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        response = self._response(prompt)
        for number, piece in enumerate(re.findall(r"\S+\s*", response.text), start=1):
            await asyncio.sleep(PIECE)
            yield Text(text=piece)
            if self._shown and number % WORDS == 0:
                await self._shown.acquire()
        yield response

    def _response(self, prompt: Prompt) -> Response:
        number = int(re.findall(r"number (\d+)!", str(prompt.turns[-1]))[-1])
        turn = Turn(role="model", parts=(Text(text=answer_to(number)),), model=self.name)
        return Response(turn=turn, finish=Finish(outcome="complete", reason="STOP"))


def platform_of(life: Life) -> Platform:
    """The platform: messages hold 300 characters on both, and the one that knows edits shows drafts."""
    made: Platform = KeylessChat(life.port) if life.platform == "keyless" else corner().Corner(life.port)
    can = made.capabilities
    made.capabilities = replace(can, drafts=can.edits, preview_interval=2 * PIECE, length=300)
    return made


def dying_at(platform: Platform, point: str, shown: asyncio.Semaphore) -> Platform:
    """*platform*, on which the process is killed before or after a send; *shown* is released for each draft."""
    send, sent = platform.send, Counter[str]()

    async def send_and_die(delivery: Delivery) -> str:
        what = f"{delivery.kind}{' edit' if delivery.edits else ''}"
        sent[what] += 1
        if point == f"before {what} {sent[what]}":
            os.kill(os.getpid(), signal.SIGKILL)
        receipt = await send(delivery)
        if point == f"after {what} {sent[what]}":
            os.kill(os.getpid(), signal.SIGKILL)
        if delivery.kind == "draft":
            shown.release()
        return receipt

    platform.send = send_and_die  # type: ignore[method-assign]
    return platform


async def live(life: Life) -> None:
    behavior, limits = Behavior(debounce=0.0, max_resumes=100_000), Limits(messages=100_000)
    shown = asyncio.Semaphore(0)
    model = Echo(shown) if "draft" in life.kill_at else Echo()
    async with Store.open(life.path) as store:
        platform = dying_at(platform_of(life), life.kill_at, shown)
        engine = Engine(store, model, [platform], behavior=behavior, limits=limits)
        running = asyncio.create_task(engine.run())
        if not life.messages:
            await running
        while await received(store) < life.messages:  # noqa: ASYNC110 (nobody tells when the last one is there)
            await asyncio.sleep(0.01)
        await engine.settled()
        running.cancel()
        await asyncio.wait([running])


async def received(store: Store) -> int:
    rows = [row async for row in store.export() if row["table"] == "messages"]
    return sum(not row["own"] for row in rows)


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=Life)))

"""An engine whose tool draws a picture, in a process that kills itself before or after a call."""

import os
import signal
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from engine.engines import AT_ONCE, DIRECT, said
from lives import fork_lives
from tertulia import Engine, Media, Store, tool
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall, ToolResult
from tertulia.platform import Delivery
from tertulia.sim.telegram import image
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt


class PictureLife(Struct, frozen=True, kw_only=True):
    """What a child is told."""

    path: str
    point: str = ""  # `before outbox.change 1`: it is killed before the first such call; "": it lives to its end


class Painter(Scripted):
    """Has a picture drawn, and answers when it is."""

    async def respond(self, prompt: Prompt) -> Response:
        is_drawn = any(isinstance(part, ToolResult) for part in prompt.turns[-1].parts)
        return self._response("Here." if is_drawn else ToolCall(name="draw", id="a"))


class Screen(RecordedPlatform):
    """A platform whose messages are lines of a file, which outlives the process."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def send(self, delivery: Delivery) -> str:
        with self._path.open("a") as file:
            print(delivery.id, [len(one.data or b"") for one in delivery.reply.media], file=file)
        return f"{delivery.id}-sent"


@tool(repeatable=True)
def draw() -> Media:
    """Draw a picture."""
    return Media.of(image(8, 8), mime="image/png")


def die_at(point: str, owner: Any, name: str) -> None:
    """Let a call of a method kill this process: `before NAME NUMBER`, or `after` it."""
    when, _, number = point.split()
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)
    calls: list[None] = []

    @wraps(method)
    async def fatal(*args: Any, **named: Any) -> Any:
        calls.append(None)
        if when == "before" and len(calls) == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        result = await method(*args, **named)
        if when == "after" and len(calls) == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, fatal)


async def live(life: PictureLife) -> None:
    platform = Screen(Path(life.path).with_name("screen"))
    async with Store.open(life.path, durable=False) as store:
        owners = {"media": store.media, "runs": store.runs, "outbox": store.outbox, "platform": platform}
        if life.point:
            owner, _, name = life.point.split()[1].partition(".")
            die_at(life.point, owners[owner], name)
        async with Engine(store, Painter(), [platform], behavior=AT_ONCE, tools=[draw]) as engine:
            await engine.receive(said("draw", 1, place=DIRECT))
            await engine.settled()


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=PictureLife)))

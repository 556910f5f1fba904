"""A stored chat whose process kills itself after the write that TERTULIA_KILL_AT numbers; its parts serve tests too."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from run.loop_child import toolbox
from tertulia.chat import Chat
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall
from tertulia.store import Store
from tertulia.toolbox.toolbox import Toolbox

NAME = "seats"
CALLS = [
    ToolCall(name="book", args={"seat": 1}, id="a"),
    ToolCall(name="look", args={"place": "Lviv"}, id="b"),
]
LINES: list[Any] = [CALLS, "Seat 1 is booked."]
WRITES = ("begin", "ask", "add_record", "begin_tool", "end_tool", "end", "write")


class Room:
    """A room of a store, which tells of each of its writes once it is done."""

    def __init__(self, room: Any, tell: Callable[[str], None]) -> None:
        self._room = room
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._room, name)
        if name not in WRITES:
            return method

        async def written(*values: Any, **named: Any) -> Any:
            self._tell("before")
            result = await method(*values, **named)
            self._tell(name)
            return result

        return written


def told(store: Store, tell: Callable[[str], None]) -> Any:
    return SimpleNamespace(runs=Room(store.runs, tell), chats=Room(store.chats, tell))


def a_chat(store: Any, tools: Toolbox, lines: list[Any]) -> Chat:
    return Chat(Scripted(*lines), system="You book seats.", tools=tools, store=store, name=NAME)


async def main(path: str) -> None:
    left = int(os.environ["TERTULIA_KILL_AT"])

    def tell(point: str) -> None:
        nonlocal left
        left -= point != "before"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def did(name: str) -> None:
        with Path(path).with_suffix(".log").open("a") as file:
            file.write(f"{name}\n")

    async with Store.open(path) as store:
        await a_chat(told(store, tell), toolbox(did), LINES).send_message("Book me a seat.")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""Group: the chat service of the demo, the three people in it, and the process of the bot."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from msgspec import json

from tertulia.demo.pipe_platform import BOT, GROUP, Applied, FromBot, Post, Ready, SendReceipt, Sent, ToBot
from tertulia.demo.timeline import DemoFailed, Drafted, Said, Started, Timeline
from tertulia.messages import Author, Message
from tertulia.parts import Text

STORE, LOG = "demo.db", "bot.log"


async def _nothing() -> None:
    pass


class Group:
    """`async with Group(folder, timeline, pace=0.05) as group:` ends the bot's process when the block ends.

    The service gives each message an id, shows a message again if it is sent again, and delivers what people write
    until the bot has stored it.
    """

    def __init__(self, folder: Path, timeline: Timeline, *, pace: float) -> None:
        self.posted: dict[str, str] = {}  # the texts of people, by message id
        self.shown: dict[str, str] = {}  # the texts of the bot that people see, by message id
        self.before_showing: Callable[[], Awaitable[None]] = _nothing
        self._folder = folder
        self._timeline = timeline
        self._pace = pace
        self._undelivered: dict[int, Post] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_ready = False
        self._kill_at: int | None = None  # words of a draft

    @property
    def store(self) -> Path:
        return self._folder / STORE

    async def start(self) -> int:
        """Start the process of the bot; return its id when its engine runs."""
        command = [sys.executable, "-P", "-m", "tertulia.demo.bot", str(self.store), str(self._pace)]
        with (self._folder / LOG).open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=2**20,
                start_new_session=True,  # Ctrl-C is for this process, which ends the other
            )
        self._is_ready = False
        self._reading = self._timeline.start(self._read(self._process))
        await self._timeline.until("the bot to start", lambda: self._is_ready)
        self._timeline.add(Started(pid=self._process.pid))
        for post in self._undelivered.values():
            self._write(post)
        return self._process.pid

    async def kill_at_word(self, number: int) -> tuple[int, int]:
        """Kill the process with SIGKILL while it waits for the receipt of a draft with so many words.

        Return its id and its exit status.
        """
        process, reading = self._process, self._reading
        if process is None or reading is None:
            raise DemoFailed("there is no process to kill")
        self._kill_at = number
        await self._timeline.until("the answer to begin", lambda: self._process is None)
        await reading
        return process.pid, await process.wait()

    def post(self, author: Author, text: str) -> str:
        """Post a message of a person; return its id."""
        number = len(self.posted) + 1
        message_id = f"m{number}"
        message = Message(
            id=message_id, place=GROUP, author=author, parts=(Text(text=text),), sent_at=datetime.now(UTC)
        )
        self.posted[message_id] = text
        self._undelivered[number] = Post(number=number, message=message)
        self._timeline.add(Said(author=author.name, text=text, message_id=message_id))
        self._write(self._undelivered[number])
        return message_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Read what the bot writes, to the end of its process. It ends only when we want it to."""
        if process.stdout is None:
            return
        async for line in process.stdout:
            match json.decode(line, type=FromBot):
                case Ready():
                    self._is_ready = True
                    self._timeline.wake()
                case Applied(number=number):
                    self._undelivered.pop(number, None)
                case Sent() as sent:
                    await self._show(sent)
        if process is self._process:
            lines = (self._folder / LOG).read_text("utf-8", "replace").strip().splitlines()
            raise DemoFailed(f"the bot's process ended: {lines[-1] if lines else 'it says nothing'}")

    async def _show(self, sent: Sent) -> None:
        """Show a message of the bot to the people, and give it its receipt."""
        delivery = sent.delivery
        text = delivery.reply.text
        message_id = delivery.edits or f"b{len(self.shown) + 1}"
        await self.before_showing()
        self.shown[message_id] = text
        if delivery.kind == "draft":
            self._timeline.add(Drafted(author=BOT.name, text=text, message_id=message_id))
        else:
            said = Said(author=BOT.name, text=text, message_id=message_id, reply_to=delivery.reply.reply_to)
            self._timeline.add(said)
        if self._kill_at is not None and delivery.edits and len(text.split()) >= self._kill_at:
            self._kill()
            return
        self._write(SendReceipt(number=sent.number, message_id=message_id))

    def _kill(self) -> None:
        self._kill_at = None
        if self._process:
            self._process.kill()
        self._process = None

    def _write(self, value: ToBot) -> None:
        """Write to the bot, if it lives."""
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(json.encode(value) + b"\n")

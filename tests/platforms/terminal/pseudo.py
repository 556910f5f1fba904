"""A program in a pseudo-terminal: what it writes is waited for, what a person would type is typed."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from platforms.terminal.forked_tertulia import ForkedProcess, fork_tertulia

ENTER, ALT_ENTER, CTRL_C, CTRL_D = "\r", "\x1b\r", "\x03", "\x04"
PROMPT = "\x1b[?2004h"  # the editor begins to read

_LAUNCH = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # whatever the tests themselves are told to ignore
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
_SEQUENCE = re.compile(r"\x1b\[(?!\?2004h)[0-?]*[ -/]*[@-~]|\x1b[=>]|\x08")
_PATIENCE = 30  # seconds: machines are shared


class Terminal:
    def __init__(self, master: int, process: asyncio.subprocess.Process | ForkedProcess) -> None:
        self._master = master
        self._process = process
        self._written = b""
        self._place = 0  # how far what was written has been looked at
        self._more = asyncio.Event()

    @property
    def screen(self) -> str:
        """What was written so far, without what only moves or colours."""
        return _SEQUENCE.sub("", self.raw).replace("\r", "")

    @property
    def raw(self) -> str:
        return self._written.decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def see(self, text: str) -> str:
        """Wait until *text* comes after what was seen before; what came up to its end."""
        return await self._see(re.escape(text))

    async def see_wrapped(self, text: str) -> str:
        """The same, wherever its lines are broken."""
        return await self._see(r"\s*".join(map(re.escape, "".join(text.split()))))

    async def _see(self, pattern: str) -> str:
        try:
            async with asyncio.timeout(_PATIENCE):
                while not (found := re.compile(pattern).search(self.screen, self._place)):
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            seen = self.screen[: self._place]
            raise AssertionError(f"{pattern!r} did not come after {seen!r}: {self.raw!r}") from None
        before, self._place = self._place, found.end()
        return self.screen[before : self._place]

    async def say(self, text: str, *seen: str) -> None:
        """Wait for the editor, type a line, and wait for what is *seen* after it."""
        await self.see(PROMPT)
        await self.see(">")
        self.type(text + ENTER)
        for one in seen:
            await self.see(one)

    async def quit(self) -> int:
        """Leave by the command; the exit status."""
        await self.say("/quit")
        return await self.left()

    async def left(self) -> int:
        """Wait for the end; the exit status."""
        async with asyncio.timeout(_PATIENCE):
            return await self._process.wait()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()

    def read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the program has closed its side
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self._written += data
        self._more.set()


async def _start(command: Sequence[str], slave: int, environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _LAUNCH, *command),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=dict(environment),
        start_new_session=True,
    )


async def _fork(command: Sequence[str], slave: int, environment: Mapping[str, str]) -> ForkedProcess:
    return await fork_tertulia(command[1:], slave, environment)


@asynccontextmanager
async def terminal(*command: str, environment: Mapping[str, str]) -> AsyncIterator[Terminal]:
    """The command in a terminal of its own, of 24 lines and 100 columns.

    "tertulia" as the first word is a process forked from one that has imported everything; all else is started.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = await (_fork if command[0] == "tertulia" else _start)(command, slave, environment)
    os.close(slave)
    loop = asyncio.get_running_loop()
    shown = Terminal(master, process)
    loop.add_reader(master, shown.read)
    try:
        yield shown
    finally:
        loop.remove_reader(master)
        os.close(master)
        if process.returncode is None:
            process.kill()
            await process.wait()

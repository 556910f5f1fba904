"""Processes of `tertulia` forked from one that has imported everything already, which takes a tenth of the time.

`fork_tertulia` asks for one; as a script this module is the process that forks. What is different from a process that
a person starts is tested by those tests of terminals that start one.
"""

import asyncio
import atexit
import fcntl
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import tertulia
from tertulia.cli import main

WORDS = 1 << 18  # bytes of a request, at most


class ForkedProcess:
    """As much of a process as a terminal needs."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status  # on which its exit code comes

    async def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(await asyncio.get_running_loop().sock_recv(self._status, 100))
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def fork_tertulia(arguments: Sequence[str], terminal: int, environment: Mapping[str, str]) -> ForkedProcess:
    """Fork a process that runs `tertulia` with these arguments in a terminal."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    request = json.dumps({"arguments": arguments, "environment": dict(environment)}).encode()
    with theirs:
        socket.send_fds(_server(), [request], [terminal, theirs.fileno()])
    return ForkedProcess(int(await asyncio.get_running_loop().sock_recv(ours, 100)), ours)


@cache
def _server() -> socket.socket:
    """Start the process that forks, once for all tests of this process; it ends with it."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONUTF8": "1"},
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def serve(requests: socket.socket) -> bool:
    """Fork a process for each request; say its id, and its exit code when it has ended.

    Return true in the forked process, which is ready to run its command.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.data:
                    child, status = key.data
                    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    os.write(status, str(code).encode())
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    os.close(status)
                    continue
                request, descriptors, *_ = socket.recv_fds(requests, WORDS, 2)
                if not request:
                    return False
                terminal, status = descriptors
                child = os.fork()
                if not child:
                    become(json.loads(request), terminal)
                    return True
                os.close(terminal)
                os.write(status, str(child).encode())
                selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, status))


def become(request: Mapping[str, object], terminal: int) -> None:
    """Set up everything that a new process would have: its terminal, streams, signals, environment and arguments."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(terminal, number)
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    time.tzset()
    sys.argv = [str(Path(tertulia.__file__).with_name("__main__.py")), *request["arguments"]]  # type: ignore[misc]


if __name__ == "__main__":
    for late in ("anyio", "httpcore2", "tertulia.platforms.terminal.main", "prompt_toolkit.shortcuts", "pydantic"):
        import_module(late)  # which a command imports only when it needs it
    if serve(socket.socket(fileno=int(sys.argv[1]))):
        main()

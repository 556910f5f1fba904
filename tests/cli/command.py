"""The command as a user runs it: in this process, which takes a tenth of the time, or in one of its own."""

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from tertulia.cli import main

TERTULIA = (sys.executable, "-m", "tertulia")

Ran = subprocess.CompletedProcess[str]
Here = Callable[..., tuple[int, str, str]]


def tertulia(*arguments: str, given: str = "", **environment: str) -> Ran:
    """Run the command in this process."""
    given_, out, errors = _stream(given.encode()), _stream(), _stream()
    streams = {"stdin": given_, "stdout": out, "stderr": errors, "argv": ["tertulia", *arguments]}
    with ExitStack() as stack:
        stack.enter_context(_environment(environment))
        for name, value in streams.items():
            stack.enter_context(patch.object(sys, name, value))
        status = _status()
    return Ran(["tertulia", *arguments], status, _text(out), _text(errors))


def in_this_process(*arguments: str, given: str = "") -> tuple[int, str, str]:
    """Run the command; return its status, and what it wrote to either stream."""
    ran = tertulia(*arguments, given=given)
    return ran.returncode, ran.stdout, ran.stderr


def tertulia_process(*arguments: str, given: str = "", **environment: str) -> Ran:
    """Run the command in a process of its own."""
    env = {**os.environ, **environment}
    return subprocess.run(
        [*TERTULIA, *arguments], input=given, capture_output=True, text=True, timeout=60, env=env, check=False
    )


def _status() -> int:
    try:
        main()
    except SystemExit as left:
        return int(left.code or 0)
    return 0


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    with patch.dict(os.environ, changes):
        time.tzset()
        yield
    time.tzset()


def _stream(given: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(given), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode()

"""Starts `child.py`."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def child(path: Path, what: str) -> "subprocess.Popen[str]":
    """A process that does *what* with the store at *path*."""
    command = [sys.executable, str(HERE / "child.py"), str(path), what]
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

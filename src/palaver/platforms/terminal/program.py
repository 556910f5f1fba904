"""What a person types to run this program: hints are there to be followed."""

import os
import shlex
import shutil
import sys


def program(script: str | None = None, *, python: str = sys.executable) -> str:
    """`palaver` where the shell finds it, else the path it was run by, or `python -m palaver`."""
    script = sys.argv[0] if script is None else script
    if os.path.basename(script) == "__main__.py":
        return f"{_typed(python)} -m palaver"
    return _typed(script) if os.path.basename(script) == "palaver" else "palaver"


def _typed(path: str) -> str:
    """The shortest way to type a command: its name where the shell finds it by that, else its path from here."""
    name = os.path.basename(path)
    found = shutil.which(name)
    if found and os.path.abspath(found) == os.path.abspath(path):
        return name
    near = os.path.relpath(path)
    return shlex.quote(path if near.startswith("..") else os.path.join(os.path.dirname(near) or ".", name))

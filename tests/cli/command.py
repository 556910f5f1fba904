"""The command as a user runs it."""

import os
import subprocess
import sys

PALAVER = (sys.executable, "-m", "palaver")


def palaver(*arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run(
        [*PALAVER, *arguments], input=given, capture_output=True, text=True, timeout=60, env=env, check=False
    )

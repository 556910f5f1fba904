"""The room of `examples/philosophers.py`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent


def test_three_philosophers_answer_who_is_meant_and_each_other_without_a_key() -> None:
    lines = "Socrates, what is good?\nDiogenes?\nnobody in particular\n"
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "philosophers.py")],
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "In the room are Socrates, Plato, Diogenes. Say something to one of them.",
        "Socrates: I know that I know nothing. Plato, do you know more?",
        "Plato: We see shadows on a wall.",
        "Socrates: And what do you call good?",
        "Diogenes: You stand in my light.",
    ]

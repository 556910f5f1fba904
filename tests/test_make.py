"""`make setup` tells how far it is, and says nothing when nothing is to do; `make torture` runs the full sizes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = """#!/bin/sh
# A Python that makes a .venv of itself and succeeds in all else.
if [ "$2" = venv ]; then mkdir -p .venv/bin && cp "$0" .venv/bin/python; fi
"""


def make_setup(folder: Path) -> tuple[int, str, str]:
    command = ["make", "setup", f"PYTHON={folder / 'python'}"]
    env = {"PATH": os.environ["PATH"]}  # nothing of the make that may run these tests
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_steps_of_the_set_up_are_numbered_and_done_once(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)

    first, second = make_setup(tmp_path), make_setup(tmp_path)

    steps = (
        "setting up, once; a minute or two\n"
        "[1/4] .venv...\n[2/4] packages...\n[3/4] the embedded model, 100 MB...\n[4/4] tertulia itself...\n"
    )
    assert (first, second) == ((0, steps, ""), (0, "", ""))


def test_torture_runs_all_tests_at_full_size_and_then_the_properties_with_more_examples() -> None:
    env = {"PATH": os.environ["PATH"]}
    made = subprocess.run(["make", "-n", "torture"], cwd=ROOT, env=env, capture_output=True, text=True, check=True)

    assert [line for line in made.stdout.splitlines() if "TERTULIA_EXAMPLES" in line] == [
        "TERTULIA_EXAMPLES=200 .venv/bin/pytest --timeout=3600",
        "TERTULIA_EXAMPLES=100000 .venv/bin/pytest -m torture --timeout=36000 --durations=0",
    ]


@pytest.mark.parametrize(("env", "told"), [({}, "small 10\n"), ({"TERTULIA_EXAMPLES": "200"}, "full 200\n")])
def test_sizes_are_full_where_the_number_of_examples_is_given(env: dict[str, str], told: str) -> None:
    code = "from sizes import EXAMPLES, size; print(size('small', full='full'), EXAMPLES)"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "tests", env=env, capture_output=True, text=True, check=True
    )

    assert done.stdout == told

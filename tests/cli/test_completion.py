"""Completion in a shell: commands, options, and the names of models and profiles."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import tertulia

COMPLETE = """
source ~/.bashrc
complete -p tertulia
shown() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tertulia_completion tertulia; echo "${COMPREPLY[@]}"; }
shown tertulia chat --per
shown tertulia model rm ""
shown tertulia chat --model q
"""


def bash(script: str, home: Path) -> str:
    """Run a script in which `tertulia` is on the path, with a home of its own."""
    commands = os.path.dirname(sys.executable)
    env = {"HOME": str(home), "PATH": f"{commands}:{os.environ['PATH']}", "TERTULIA_MODELS": str(home / "models")}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_bash_completes_what_was_begun_once_the_completion_is_installed(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("# mine\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").write_bytes(b"GGUF")

    told = bash("tertulia --install-completion; true", tmp_path)

    assert told.startswith(f"bash completion installed in {tmp_path}/.bash_completions/tertulia.sh\n")
    assert (tmp_path / ".bashrc").read_text().startswith("# mine\n")
    assert bash(COMPLETE, tmp_path).splitlines() == [
        "complete -o default -F _tertulia_completion tertulia",
        "--persona",
        "mine.gguf",
        "qwen",
    ]


@pytest.mark.parametrize(
    ("shell", "line", "shown"),
    [
        ("zsh", "tertulia render pl", """_arguments '*: :(("plain"))'\n"""),
        ("fish", "tertulia render pl", "plain\n"),
    ],
)
def test_other_shells_are_answered_as_they_ask(shell: str, line: str, shown: str) -> None:
    asked = {"_TERTULIA_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}

    done = tertulia(**asked, _TYPER_COMPLETE_FISH_ACTION="get-args")

    assert (done.returncode, done.stdout) == (0, shown)

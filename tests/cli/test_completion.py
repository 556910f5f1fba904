"""Completion in a shell: commands, options, and the names of models and profiles."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import palaver

COMPLETE = """
source ~/.bashrc
complete -p palaver
shown() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _palaver_completion palaver; echo "${COMPREPLY[@]}"; }
shown palaver chat --per
shown palaver model rm ""
shown palaver chat --model q
"""


def bash(script: str, home: Path) -> str:
    """Run a script in which `palaver` is on the path, with a home of its own."""
    commands = os.path.dirname(sys.executable)
    env = {"HOME": str(home), "PATH": f"{commands}:{os.environ['PATH']}", "PALAVER_MODELS": str(home / "models")}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_bash_completes_what_was_begun_once_the_completion_is_installed(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("# mine\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").write_bytes(b"GGUF")

    told = bash("palaver --install-completion; true", tmp_path)

    assert told.startswith(f"bash completion installed in {tmp_path}/.bash_completions/palaver.sh\n")
    assert (tmp_path / ".bashrc").read_text().startswith("# mine\n")
    assert bash(COMPLETE, tmp_path).splitlines() == [
        "complete -o default -F _palaver_completion palaver",
        "--persona",
        "mine.gguf",
        "qwen",
    ]


@pytest.mark.parametrize(
    ("shell", "line", "shown"),
    [
        ("zsh", "palaver render pl", """_arguments '*: :(("plain"))'\n"""),
        ("fish", "palaver render pl", "plain\n"),
    ],
)
def test_other_shells_are_answered_as_they_ask(shell: str, line: str, shown: str) -> None:
    asked = {"_PALAVER_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}

    done = palaver(**asked, _TYPER_COMPLETE_FISH_ACTION="get-args")

    assert (done.returncode, done.stdout) == (0, shown)

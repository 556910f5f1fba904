"""The command line, whatever is asked of it and however its streams are set up."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import TERTULIA, tertulia, tertulia_process
from tertulia.cli import app


def in_shell(command: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in which `tertulia` is the command; the status is that of what goes wrong first."""
    line = f'set -o pipefail; tertulia() {{ {shlex.join(TERTULIA)} "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("lint", "/nowhere.json"), "tertulia: cannot read /nowhere.json: No such file or directory\n"),
        (("lint", "/"), "tertulia: cannot read /: Is a directory\n"),
        (("lint", "/no\x1b[31m"), "tertulia: cannot read /no\\u001b[31m: No such file or directory\n"),
        (
            ("sim", "gemini", "--model-behaviour", "dance"),
            "tertulia: --model-behaviour dance: unknown behaviour 'dance': "
            "expected actor, echo, script:FILE or repeat:FILE\n",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = tertulia(*arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_an_error_of_a_file_names_the_file() -> None:
    app.command("fail")(lambda: Path("/nowhere/bot").mkdir())
    try:
        done = tertulia("fail")
    finally:
        app.registered_commands.pop()

    assert (done.returncode, done.stderr) == (1, "tertulia: /nowhere/bot: No such file or directory\n")


def test_a_traceback_is_shown_when_asked_for() -> None:
    done = tertulia("lint", "/nowhere.json", TERTULIA_TRACEBACK="1")

    assert "Traceback" in done.stderr


@pytest.mark.parametrize("command", ["--version", "sim gemini"])
def test_without_an_output_nothing_begins(command: str) -> None:
    done = in_shell(f"echo hi | tertulia {command} >&-")

    line = "tertulia: standard output is closed; to throw the output away write >/dev/null\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


@pytest.mark.parametrize(
    ("command", "status", "out"),
    [
        ("--version 2>&-", 0, "tertulia 0.1.0\n"),
        ("lint /nowhere 2>&-", 2, ""),
        ("--version 2>&- <&-", 0, "tertulia 0.1.0\n"),
    ],
)
def test_without_a_place_for_errors_all_else_is_as_ever(command: str, status: int, out: str) -> None:
    done = in_shell(f"tertulia {command}")

    assert (done.returncode, done.stdout, done.stderr) == (status, out, "")


@pytest.mark.parametrize("arguments", [["--version"], ["chat", "--help"], ["lint", "/nowhere"]])
def test_a_reader_that_has_left_is_left_quietly(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    with os.fdopen(writer, "w") as nobody:
        status = subprocess.call([*TERTULIA, *arguments], stdout=nobody, stderr=nobody, timeout=60)

    assert status == 1


@pytest.mark.parametrize("command", [("chat",), ("lint",), ("model", "get"), ("sim", "gemini"), ("sim", "openai")])
def test_every_command_has_help_with_an_example(command: tuple[str, ...]) -> None:
    done = tertulia(*command, "--help")

    assert f"Example: tertulia {' '.join(command)}" in done.stdout
    assert tertulia(*command, "-h").stdout == done.stdout


def test_the_version_is_told() -> None:
    assert tertulia_process("--version").stdout == "tertulia 0.1.0\n"


def test_help_is_quick_because_commands_import_what_they_need_themselves() -> None:
    code = "import sys, tertulia.cli; print(*{name.partition('.')[0] for name in sys.modules})"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert {"asyncio", "fastjsonschema", "httpx2", "orjson", "prompt_toolkit", "starlette"} & set(loaded) == set()

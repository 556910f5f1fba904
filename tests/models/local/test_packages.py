"""Packages come from the pip of this Python, or from the one that Python keeps; what it says becomes one line."""

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from threading import Event

import pytest

from tertulia.errors import ConnectionLost, NotInstalled
from tertulia.models.local import packages


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (
            "WARNING: x\nERROR: No matching distribution found for p\n",
            ConnectionLost,
            "is there a network.*No matching",
        ),
        ("", ConnectionLost, "exit 1"),
        (
            "ERROR: Could not install packages: [Errno 13] Permission denied: '/x'\nCheck the permissions.\n",
            NotInstalled,
            r"p==1 could not be stored; pip says: Could not install packages: \[Errno 13\] Permission denied: '/x'",
        ),
        ("ERROR: [Errno 28] No space left on device\n", OSError, "No space left"),
    ],
)
def test_what_pip_says_becomes_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, error: type[Exception], words: str
) -> None:
    done = subprocess.CompletedProcess[str]([], 1, stdout="", stderr=said)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)

    with pytest.raises(error, match=words) as caught:
        packages.pip_download("p==1", tmp_path)

    assert "\n" not in str(caught.value)


def test_the_runtime_is_that_of_the_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

    assert project["optional-dependencies"]["local"] == [packages.RUNTIME]


def test_a_runtime_that_is_here_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)

    packages.fetch_runtime()

    assert packages.has_runtime()


def test_a_python_of_the_system_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)

    with pytest.raises(NotInstalled, match=r"is managed by the operating system, .*: install tertulia into a virtual"):
        packages.fetch_runtime()


def test_without_pip_the_one_that_python_keeps_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setitem(sys.modules, "pip", None)

    packages.pip_download("p==1", tmp_path)

    assert (commands[0][0], Path(commands[0][1]).name, commands[0][2]) == (sys.executable, "pip", "download")
    assert Path(commands[0][1]).parent.is_file()


def test_the_growth_of_a_file_is_reported_in_steps(tmp_path: Path) -> None:
    sizes: list[int] = []
    reported = Event()

    def report(size: int) -> None:
        sizes.append(size)
        reported.set()

    with packages.watched(tmp_path, report):
        (tmp_path / "small").write_bytes(b"1")
        (tmp_path / "large").write_bytes(bytes(5_000_000))
        assert reported.wait(60)

    assert sizes == [5_000_000]

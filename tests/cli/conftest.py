"""The command in a folder of its own."""

from pathlib import Path

import pytest

from cli.command import Here, in_this_process


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.chdir(tmp_path)
    return in_this_process

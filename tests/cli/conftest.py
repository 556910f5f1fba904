"""The command in this process, in a folder of its own."""

from pathlib import Path

import pytest

from cli.stores import Here


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    monkeypatch.chdir(tmp_path)
    return Here(monkeypatch, capsys)

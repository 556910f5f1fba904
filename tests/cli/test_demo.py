"""`tertulia demo` that cannot start its bot says so in one line; the whole demo is in tests/demo."""

import sys
from pathlib import Path

import pytest

from cli.command import Here


def test_a_bot_that_does_not_start_is_one_line_and_a_status(
    here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no module named tertulia >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))

    status, out, errors = here("demo")

    assert status == 1
    assert out.endswith("\n\nThree people and a bot\n")
    assert errors == "tertulia: the demo failed: the bot's process ended: no module named tertulia\n"

"""The unit of docs/operations.md is one that systemd takes, and its config one that we take."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tertulia.config import read_config

ROOT = Path(__file__).parent.parent
UNIT = ROOT / "examples" / "systemd" / "tertulia.service"
PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "tertulia"  # systemd checks that it exists
    unit = UNIT.read_text("utf-8").replace("/srv/tertulia/.venv/bin/tertulia", str(command))
    (tmp_path / "tertulia.service").write_text(unit, encoding="utf-8")

    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "tertulia.service")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (verified.stdout + verified.stderr, verified.returncode) == ("", 0)


def test_the_settings_that_the_page_explains_are_in_the_unit() -> None:
    rows = re.findall(r"^\| (`.*) \|", PAGE[PAGE.index("| setting of the unit") :].partition("\n\n")[0], re.MULTILINE)
    named = {setting for row in rows for setting in re.findall(r"`([A-Z]\w+(?:=[\w-]+)?)`", row.partition(" | ")[0])}

    assert len(named) == 7
    assert [setting for setting in named if not re.search(rf"^{setting}(=|$)", UNIT.read_text(), re.MULTILINE)] == []


def test_the_caps_of_the_page_are_keys() -> None:
    text = "".join(re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL))

    limits = read_config(text, {}).config.limits

    assert (limits.person.tokens, limits.place.money, limits.total.money) == (200_000, 1.0, 20.0)

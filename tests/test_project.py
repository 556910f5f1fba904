"""The project's own description: every extra is one that a person is told of, and does something."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_extras_are_those_that_people_are_told_of_and_that_the_lock_has() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    table = page.split("| extra:")[1].split("\n\n")[0]
    hints = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    locked = set(re.findall(r"--extra (\w+)", (ROOT / "Makefile").read_text(encoding="utf-8")))

    extras = set(PROJECT["optional-dependencies"])
    assert {
        name for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    } == extras
    assert set(re.findall(r"tertulia\[(\w+)\]", hints)) <= extras
    assert locked == extras - {"local"}  # its packages have a lock of their own


def test_the_description_says_who_what_and_for_whom() -> None:
    needed = {
        "authors",
        "classifiers",
        "description",
        "keywords",
        "license",
        "maintainers",
        "readme",
        "requires-python",
    }

    assert needed <= PROJECT.keys()

"""The project's own description: its name, and every extra is one that a person is told of, and does something."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FORMER = (
    "CHANGELOG.md",
    "Makefile",
    "src/tertulia/store/sqlite/connection.py",
    "tests/store/sqlite/test_store_file.py",
)
INSTALLED = re.compile(r"\bpip install ([^`#\n|\")]*)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def tracked() -> dict[str, str]:
    """The texts of the repository, by their paths."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.split("\0") if path.endswith((".py", ".md", ".toml", ".service", "Makefile"))]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths if (ROOT / path).exists()}


def test_what_people_are_told_to_install_is_this_distribution() -> None:
    told = [
        (path, name)
        for path, text in tracked().items()
        if not path.startswith(("tests/", "Makefile"))
        for names in INSTALLED.findall(text)
        for name in re.findall(r"(?<![\w/.-])[a-z][\w/.*-]*", re.sub(r"--\S+|\[.*?\]", "", names.split("&&")[0]))
    ]

    ours = {name for path, name in told if path != "docs/testing.md"}
    assert ours == {PROJECT["name"], f"dist/{PROJECT['name']}-*.whl"}
    assert {name for path, name in told if path == "docs/testing.md"} == {"pytest", "pytest-asyncio", PROJECT["name"]}
    assert {path for path, _ in told} >= {"README.md", "docs/operations.md", "src/tertulia/cli/sim.py"}


def test_the_former_name_stands_only_where_a_file_of_it_is_refused() -> None:
    assert {path for path, text in tracked().items() if "palaver" in text.lower()} == {*FORMER, "tests/test_project.py"}


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

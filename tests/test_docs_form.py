"""The pages are easy to read: short lines, short paragraphs, links that lead somewhere, plots of measured figures."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")),
    *sorted((ROOT / "docs").glob("*.md")),
]
LINE, PARAGRAPH = 120, 5


def prose(page: Path) -> Iterator[list[tuple[int, str]]]:
    """The paragraphs and list items of a page, as numbered lines: no code, no tables, no headings."""
    some: list[tuple[int, str]] = []
    code = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        if some and (fence or code or not line.strip() or re.match(r"\||#|\s*([-*]|\d+\.) ", line)):
            yield some
            some = []
        if not (fence or code or not line.strip() or line.startswith(("|", "#"))):
            some.append((number, line))
    if some:
        yield some


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_have_at_most_120_characters(page: Path) -> None:
    lines = enumerate(page.read_text("utf-8").splitlines(), start=1)

    assert [(number, len(line)) for number, line in lines if len(line) > LINE] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paragraphs_have_at_most_five_lines(page: Path) -> None:
    assert [some[0] for some in prose(page) if len(some) > PARAGRAPH] == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_to_a_heading_leads_to_one() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = [
        (page, path, anchor)
        for page in pages
        for path, anchor in re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", page.read_text("utf-8"))
    ]

    broken = [
        (page.name, f"{path}#{anchor}")
        for page, path, anchor in links
        if anchor not in anchors(page.parent / path if path else page)
    ]

    assert links
    assert broken == []


def test_the_plots_are_what_the_committed_figures_give(tmp_path: Path) -> None:
    command = [sys.executable, "bench/plots.py", "--to", str(tmp_path)]

    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    drawn = {file.name: file.read_text("utf-8") for file in tmp_path.glob("*.svg")}
    assert drawn == {file.name: file.read_text("utf-8") for file in (ROOT / "docs" / "plots").glob("*.svg")}
    assert drawn.keys() == {"chat.svg", "prefix.svg", "recall.svg"}


def figures(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((ROOT / "bench" / "figures" / f"{name}.json").read_text("utf-8"))
    return rows


def test_the_figures_of_the_plots_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    shares = [f"| {row['data']} | {row['profile']} | {row['window']} |" for row in figures("prefix")]
    shown = dict(zip(shares, (f"| {row['stable']:.1%} |" for row in figures("prefix")), strict=True))
    turns = page[page.index("ms of CPU a turn") :]
    recalls = [
        "".join(f" {row[f'recall@{k}']:.3f}".replace(" 0", " ") for k in (5, 10, 20)) for row in figures("recall")
    ]

    assert [row for row in shown if not re.search(re.escape(row) + ".*" + re.escape(shown[row]), page)] == []
    for row in figures("chat"):
        [line] = re.findall(rf"^{row['name']}  .*\d$", turns[: turns.index("times faster")], flags=re.MULTILINE)
        assert f"{row['ms']:g}" in [f"{float(cell.replace(',', '')):g}" for cell in line.split()[-4:]]
    assert [row for row in recalls if row not in page.replace("*", "").replace(" |", "")] == []


def exists(dotted: str) -> bool:
    name, _, attribute = dotted.rpartition(".")
    if importlib.util.find_spec(name) is None:
        return False
    return hasattr(importlib.import_module(name), attribute) or importlib.util.find_spec(dotted) is not None


CURRENT = [page for page in PAGES if page.name not in {"ARCHITECTURE.md", "CHANGELOG.md"}]


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: page.name)
def test_the_code_that_a_page_names_exists(page: Path) -> None:
    """Names such as `palaver.events.Event`, and paths such as `tests/sizes.py` or `context/sources.py`."""
    code = re.findall(r"`([^`\n]+)`", page.read_text("utf-8"))
    names = {name for name in code if re.fullmatch(r"palaver(\.\w+)+", name)} - {"palaver.db"}
    paths = {path for path in code if re.fullmatch(r"[\w/]+/\w+\.py", path)}

    assert {name for name in names if not exists(name)} == set()
    assert {path for path in paths if not any((root / path).exists() for root in (ROOT, ROOT / "src/palaver"))} == set()

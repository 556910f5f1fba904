"""The pages are easy to read: short lines, short paragraphs, links that lead somewhere, plots of measured figures."""

import ast
import builtins
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tertulia.config import Config
from tertulia.config_reader import keys_of
from tertulia.demo import script
from tertulia.demo.screen import HELD

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

    assert [(number, len(line)) for number, line in lines if len(line) > LINE and not line.startswith("|")] == []


def test_every_page_is_in_the_menu_of_the_site() -> None:
    listed = re.findall(r'"([\w/-]+\.md)"', (ROOT / "docs" / "site.toml").read_text("utf-8"))

    assert sorted(listed) == sorted(str(page.relative_to(ROOT)) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_row_of_a_table_continues_as_empty_cells(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()

    rows = [(number, line) for number, line in enumerate(lines, start=1) if re.match(r"\|\s*\|", line)]
    assert [row for row in rows if not set("".join(lines[row[0] : row[0] + 1])) <= set("|-: ")] == []


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
    assert drawn.keys() == {"chat.svg", "media.svg", "prefix.svg", "recall.svg"}


def test_the_recording_shows_the_demo_as_it_is_now_and_nothing_of_the_machine() -> None:
    picture = (ROOT / "docs" / "demo.svg").read_text("utf-8")
    shown = " ".join("".join(ElementTree.fromstring(picture).itertext()).split())  # noqa: S314 (our own file)
    said = [script.FACT, *(text for _, text in script.SMALL_TALK), script.RECALL, script.EXPLAIN, script.MENU]

    beginnings = [" ".join(text.split()[:4]) for text in (*said, HELD)]

    assert [words for words in beginnings if words not in shown] == []
    assert re.findall(r"https?:[^'\"]*", picture) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"/(?:home|root|tmp|usr|var)\b", picture) == []


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

    days = [
        f"| {row['way']} | {row['tokens']:,} | {row['media']:.1f} | {row['stable']:.1%} |" for row in figures("media")
    ]
    assert [row for row in days if row not in page] == []
    assert [row for row in shown if not re.search(re.escape(row) + ".*" + re.escape(shown[row]), page)] == []
    for row in figures("chat"):
        [line] = re.findall(rf"^{row['name']}  .*\d$", turns[: turns.index("times faster")], flags=re.MULTILINE)
        assert f"{row['ms']:g}" in [f"{float(cell.replace(',', '')):g}" for cell in line.split()[-4:]]
    assert [row for row in recalls if row not in page.replace("*", "").replace(" |", "")] == []


CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]
NOT_OURS = {
    "message_history", "Model.request", "pytest_plugins", "Allergy", "50_000", "roll_dice",
    "OTEL_EXPORTER_OTLP_ENDPOINT", "Agent.run",
}  # fmt: skip


def exists(dotted: str) -> bool:
    """Whether tertulia has a module, or a module or class of it the attribute or field, of this name."""
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        owner, _, field = dotted.rpartition(".")
        return "." in owner and exists(owner) and field in getattr(pkgutil.resolve_name(owner), "__annotations__", {})
    return True


def named(page: Path) -> list[str]:
    """The code in back quotes in the text of a page; code blocks are left out, since other tests run them.

    The first column of a table on porting has the names of another library.
    """
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    if page.name == "porting.md":
        text = re.sub(r"^\|[^|\n]*\|", "|", text, flags=re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: page.name)
def test_the_modules_that_a_page_names_exist(page: Path) -> None:
    """Names such as `tertulia.events.Event` or `context.budget.Budget`, and paths such as `context/sources.py`."""
    names = {code for code in named(page) if re.fullmatch(r"tertulia(\.\w+)+", code)} - {"tertulia.db", "tertulia.toml"}
    short = {f"tertulia.{code}" for code in named(page) if re.fullmatch(r"\w+\.\w+\.\w+", code)}
    keys = {f"tertulia.{key.name}" for key in keys_of(Config)}  # such as `context.budget.window`
    names |= {name for name in short - keys if exists(name.rpartition(".")[0])}
    paths = {code for code in named(page) if re.fullmatch(r"[\w/]+/\w+\.py", code)}

    assert {name for name in names if not exists(name)} == set()
    assert {path for path in paths if not (ROOT / path).exists() and not any((ROOT / "src").rglob(path))} == set()


class Names(ast.NodeVisitor):
    """The words of the code without its docstrings, what can be called, and the members of each class."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.callable = set(dir(builtins))
        self.members: dict[str, set[str]] = {}

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.Expr(value=ast.Constant()):
                return
            case ast.ClassDef(name=name):
                self.callable.add(name)
                self.members.setdefault(name, set()).update(members_of(node))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.callable.add(name)
            case ast.alias(name=name):
                self.callable.update(name.split("."))
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                self.words.add(name)
            case ast.Constant(value=str(text)):
                self.words.update(re.findall(r"\w+", text))
        self.generic_visit(node)

    def unknown(self, code: str) -> set[str]:
        """The names in a piece of code that the project does not have."""
        calls = re.findall(r"(?<!\w)([a-z_]\w*)\(", code)
        words = re.findall(r"\b(?:\w*_\w*|[A-Z]+[a-z]\w*)\b", code)
        dotted = re.findall(r"(?<![\w.])([A-Z]\w*)(?:\([^()]*\))?\.(\w+)", code)
        return {
            *(call for call in calls if call not in self.callable),
            *(word for word in words if word not in self.words and word not in self.callable),
            *(f"{owner}.{name}" for owner, name in dotted if name not in self.members.get(owner, {name})),
        }


def members_of(of: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(of):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def names_in_code() -> Names:
    """The names of all files; reading them takes a second, so one test uses them for everything."""
    found = Names()
    for file in (file for folder in ("src", "tests", "bench", "examples") for file in (ROOT / folder).rglob("*.py")):
        found.visit(ast.parse(file.read_text("utf-8")))
        found.words.update(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "examples").rglob("*.service"):
        found.words.update(re.findall(r"\w+", file.read_text("utf-8")))
    return found


def test_the_names_that_pages_have_in_back_quotes_are_in_the_code() -> None:
    """Calls such as `record_usage(usage)`, members such as `Message.album`, and words such as `at_once`."""
    names = names_in_code()

    unknown = {page.name: {name for code in named(page) for name in names.unknown(code)} - NOT_OURS for page in CURRENT}

    assert unknown == {page.name: set() for page in CURRENT}
    assert names.unknown("Message.post") == {"Message.post"}
    assert names.unknown("Ledger().jot(prompt)") == {"jot", "Ledger.jot"}
    assert names.unknown("Message.album") == set()


def test_a_module_that_is_gone_is_found() -> None:
    gone = ("tertulia.prompt.ledger.Book", "tertulia.messages.Message.post", "tertulia.nowhere")

    assert [name for name in gone if exists(name)] == []

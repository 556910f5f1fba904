"""The parameters, fields and keywords that pages name are those of the code."""

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tertulia import Agent, Capabilities, Delivery, Engine, RunContext

ROOT = Path(__file__).parent.parent
OTHERS = {"porting.md"}  # has calls of other libraries
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in OTHERS)]
NOT_OURS = {"user_id"}  # in a format of others
TABLES: list[tuple[str, str, str, list[str]]] = [  # page, heading, first cell, and the names that its rows have
    ("engine", "Engine", "parameter", [*inspect.signature(Engine).parameters]),
    ("chat", "What does a tool know about its run?", "field", [*RunContext.__struct_fields__, "idempotency_key"]),
    ("platforms", "What does a platform have?", "field of `Capabilities`", [*Capabilities.__struct_fields__]),
    ("agents", "What is an agent?", "field of `Agent`", [*Agent.__struct_fields__]),
    ("platforms", "How do I send?", "field of `Delivery`", [*Delivery.__struct_fields__]),
]


def text_of(page: Path) -> str:
    """The text of a page without its code blocks, which other tests run, and without the names of another library."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"^\|[^|\n]*\|", "|", text, flags=re.MULTILINE) if page.name == "porting.md" else text


def first_cells(text: str, heading: str, head: str) -> list[str]:
    """The names in back quotes in the first column of a table."""
    section = text[re.search(rf"^#+ {re.escape(heading)}$", text, flags=re.MULTILINE).end() :]  # type: ignore[union-attr]
    table = section[section.index(f"\n| {head} |") + 1 :].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [name for cell in cells for name in re.findall(r"`(\w+)", cell)]


@pytest.mark.parametrize(("page", "heading", "head", "names"), TABLES, ids=lambda given: str(given)[:20])
def test_a_table_has_the_fields_that_there_are_and_no_others(
    page: str, heading: str, head: str, names: list[str]
) -> None:
    found = first_cells(text_of(ROOT / "docs" / f"{page}.md"), heading, head)

    assert sorted(found) == sorted(names)


class Keywords(ast.NodeVisitor):
    """The keywords that each class and function of the code takes; a class also takes those of its bases."""

    def __init__(self) -> None:
        self.taken: dict[str, set[str]] = defaultdict(set)
        self.bases: dict[str, set[str]] = defaultdict(set)

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.ClassDef(name=name, bases=bases, body=body):
                self.bases[name] |= {base.id for base in bases if isinstance(base, ast.Name)}
                self.taken[name] |= {
                    item.target.id
                    for item in body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                }.union(*(arguments(item) for item in body if getattr(item, "name", "") == "__init__"))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.taken[name] |= arguments(node)
        self.generic_visit(node)

    def of(self, name: str) -> set[str]:
        return self.taken[name].union(*(self.of(base) for base in self.bases[name] if base in self.taken))


def arguments(node: ast.AST) -> set[str]:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    given = node.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)} | (
        {"**"} if given.kwarg else set()
    )


def keywords_in_code() -> Keywords:
    found = Keywords()
    for file in (ROOT / "src" / "tertulia").rglob("*.py"):
        found.visit(ast.parse(file.read_text("utf-8")))
    return found


def unknown_keywords(code: str, keywords: Keywords) -> list[str]:
    """The keywords in a piece of code that what it calls does not take; of `key=value` alone, whether anything does."""
    alone = re.match(r"([a-z_]+)=[^=]", code)
    if alone:
        is_known = alone[1] in NOT_OURS or any(alone[1] in taken for taken in keywords.taken.values())
        return [] if is_known else [f"{alone[1]}="]
    try:
        tree = ast.parse(re.sub(r",\s*…", "", code).replace("…", "..."))
    except SyntaxError:
        return []
    return [
        f"{name}({keyword.arg}=)"
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and (name := ast.unparse(call.func).rpartition(".")[2]) in keywords.taken
        for keyword in call.keywords
        if keyword.arg and not {keyword.arg, "**"} & keywords.of(name)
    ]


def test_the_keywords_on_pages_are_taken_by_what_they_call_and_one_that_is_gone_is_found() -> None:
    keywords = keywords_in_code()
    gone = ["Behavior(during=1)", "Engine(store, limits=Limits(calls=1))", 'falling="next step"', "Cap(money=1.0)"]

    unknown = {
        page.name: [
            one for code in re.findall(r"`([^`\n]+)`", text_of(page)) for one in unknown_keywords(code, keywords)
        ]
        for page in PAGES
    }

    assert unknown == {page.name: [] for page in PAGES}
    assert [unknown_keywords(code, keywords) for code in gone] == [
        ["Behavior(during=)"],
        ["Limits(calls=)"],
        ["falling="],
        [],
    ]

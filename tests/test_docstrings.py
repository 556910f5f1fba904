"""Docstrings and comments name modules, names and parameters that exist."""

import ast
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tertulia"
DOTTED = re.compile(r"`(?:tertulia\.)?([a-z_]+(?:\.[a-z_]+)*\.\w+)`")
CONSTANT = re.compile(r"(?<![\w./])(?:tertulia\.)?([a-z_]+(?:\.[a-z_]+)+\.[A-Z]\w+)")
PARAMETER = re.compile(r"(?<![*\w])\*([a-z_]+)\*(?![*\w])")
Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings() -> Iterator[tuple[str, ast.AST, tuple[ast.AST, ...], str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        yield from within(str(path.relative_to(SOURCE)), tree, ())


def within(
    name: str, node: ast.AST, above: tuple[ast.AST, ...]
) -> Iterator[tuple[str, ast.AST, tuple[ast.AST, ...], str]]:
    if isinstance(node, Node) and (text := ast.get_docstring(node)):
        yield f"{name}:{getattr(node, 'name', 'module')}", node, above, text
    for child in ast.iter_child_nodes(node):
        yield from within(name, child, (*above, node))


@cache
def exists(dotted: str) -> bool:
    """Whether a module has the names behind it: read from its source, since some take seconds to import."""
    names = dotted.split(".")
    for length in range(len(names), 0, -1):
        path = SOURCE.joinpath(*names[:length])
        file = next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
        if file is not None:
            text = file.read_text("utf-8")
            made = (rf"^(?:from .* import .*\b| *(?:async def |def |class |)){name}\b" for name in names[length:])
            return all(re.search(one, text, re.MULTILINE) for one in made)
    return False


def is_foreign(dotted: str) -> bool:
    return (
        not (SOURCE / dotted.partition(".")[0]).exists()
        and importlib.util.find_spec(dotted.partition(".")[0]) is not None
    )


def parameters(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        return {argument.arg for argument in every if argument}
    if isinstance(node, ast.ClassDef):
        fields = {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        return fields.union(*(parameters(item) for item in node.body if getattr(item, "name", "") == "__init__"))
    return set()


def test_dotted_names_and_parameters_in_docstrings_exist() -> None:
    found = [*docstrings()]
    named = [(where, dotted) for where, _, _, text in found for dotted in DOTTED.findall(text) if dotted.count(".") > 1]

    assert named
    assert [(where, dotted) for where, dotted in named if not exists(dotted) and not is_foreign(dotted)] == []

    unknown = [
        (where, name)
        for where, node, above, text in found
        if not isinstance(node, ast.Module)
        for name in PARAMETER.findall(text)
        if name not in set().union(*(parameters(one) for one in (node, *above)))
    ]
    assert unknown == []


def test_constants_in_comments_exist() -> None:
    """Dotted names such as `tasks.task.POLICIES`."""
    named = [
        (path.name, dotted)
        for path in sorted(SOURCE.rglob("*.py"))
        for text in [path.read_text("utf-8")]
        if CONSTANT.search(text)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
        for dotted in CONSTANT.findall(token.string)
    ]

    assert named
    assert [(name, dotted) for name, dotted in named if not exists(dotted) and not is_foreign(dotted)] == []

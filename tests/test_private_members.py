"""Tests use what is public. Ruff counts private members (SLF001); what it does not see is counted here."""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent

MAYBE = re.compile(r"setattr|from tertulia[\w.]* import[^#]*?[ (]_[a-z]")  # parsing all files takes seconds
PATCHED = 18  # names of our modules that tests replace: sizes of caches, seconds of a lock, a race between two calls


def test_no_private_name_is_imported_and_no_more_names_of_modules_are_replaced() -> None:
    """The number only falls: a constructor's argument, or a behaviour that is observed, takes the place of a patch."""
    imported, patched = set[str](), set[str]()
    for file in sorted(HERE.rglob("*.py")):
        text, name = file.read_text(encoding="utf-8"), file.relative_to(HERE).as_posix()
        if not MAYBE.search(text):
            continue
        tree = ast.parse(text)
        modules = dict(_imported(tree))
        private = (path for path in modules.values() if path.rpartition(".")[2].startswith("_"))
        imported |= {f"{name}: {path}" for path in private}
        patched |= {f"{name}: {path}" for path in _patched(tree, modules)}

    assert imported == set()
    assert len(patched) <= PATCHED, sorted(patched)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name that is imported from our package, and the whole path of what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tertulia":
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _patched(tree: ast.Module, modules: dict[str, str]) -> Iterator[str]:
    """The names of our modules that `setattr` of a MonkeyPatch replaces."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(path)), *_]):
                if path.startswith("tertulia."):
                    yield path
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[ast.Name(id=name), ast.Constant(value=str(member)), *_]
            ):
                if name in modules and _is_module(modules[name]):
                    yield f"{modules[name]}.{member}"


def _is_module(path: str) -> bool:
    try:
        return find_spec(path) is not None
    except ModuleNotFoundError:
        return False

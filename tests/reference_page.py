"""The page docs/reference.md, made of the code: `make reference` writes it, and a test compares it.

A line about a name is its docstring, the comment beside its field, or a line of docs/reference.toml. A name that has
none is an error, and so is a line of that file which no name needs.
"""

import ast
import inspect
import re
import sys
import textwrap
import tomllib
import types
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import typer
from msgspec import Struct

import tertulia
from tertulia import errors, events
from tertulia.cli import app

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference.md"
LINES = ROOT / "docs" / "reference.toml"
WIDTH = 120
Row = tuple[str, ...]

INTRODUCTION = """\
# Reference

Every name that `from tertulia import …` has, every event, every error, and every option of every command. This page is
made of the code (`make reference`), and a test fails if it is out of date. [config.md](config.md) has the keys of
`tertulia.toml` and the variables of the environment.

| section | |
|---|---|
| [Classes](#classes) | what you call: `Engine`, `Chat`, `Store`, `Platform` … |
| [Functions](#functions) | `tool`, `model_named`, `user`, `model` |
| [Values](#values) | what you pass and get: messages, parts, settings, limits … |
| [Events](#events) | what `engine.events()` yields |
| [Errors](#errors) | by who must act |
| [Commands](#commands) | the command line |
"""


class Meanings:
    """The lines of docs/reference.toml, and which of them were used."""

    def __init__(self) -> None:
        self._lines = tomllib.loads(LINES.read_text("utf-8"))
        self._used: set[tuple[str, str]] = set()
        self.missing: list[str] = []

    def of(self, owner: str, name: str, line: str) -> str:
        """Return the line about a name: the given one, that of the file, or that of the file for all owners."""
        if line:
            return line
        for key in (owner, "any"):
            if given := self._lines.get(key, {}).get(name, ""):
                self._used.add((key, name))
                return str(given)
        self.missing.append(f"{owner}.{name}")
        return ""

    @property
    def unused(self) -> list[str]:
        lines = {(owner, name) for owner, table in self._lines.items() for name in table}
        return [".".join(line) for line in sorted(lines - self._used)]


def render(meanings: Meanings) -> str:
    """Return the whole page."""
    public = {name: getattr(tertulia, name) for name in sorted(dir(tertulia), key=str.lower)}
    kinds = {name: value for name, value in public.items() if isinstance(value, type)}
    structs = {name: kind for name, kind in kinds.items() if issubclass(kind, Struct)}
    classes = {name: kind for name, kind in kinds.items() if not issubclass(kind, Struct | Exception)}
    functions = {name: value for name, value in public.items() if inspect.isfunction(value)}
    unions = {name: value for name, value in public.items() if isinstance(value, types.UnionType)}
    sections = [
        INTRODUCTION,
        "## Classes\n",
        *(_class(name, kind, meanings) for name, kind in classes.items()),
        "## Functions\n",
        *(_function(name, value, meanings) for name, value in functions.items()),
        "## Values\n",
        "Every value is frozen; `msgspec.structs.replace(value, field=…)` returns a changed copy.\n",
        *(_union(name, union, meanings) for name, union in unions.items()),
        *(_struct(name, kind, meanings) for name, kind in structs.items()),
        _events(meanings),
        _errors(),
        _commands(),
    ]
    return "\n".join(sections)


def _class(name: str, kind: type, meanings: Meanings) -> str:
    parts = [f"### {name}\n", _paragraph(meanings.of(name, "class", _first_line(kind)))]
    if not getattr(kind, "_is_protocol", False) and "__init__" in vars(kind) and name != "Store":
        parts.append(_table(("parameter", "type", "default", "meaning"), _parameters(name, kind, meanings)))
    attributes = [(f"`{key}`", line) for key, line in _attributes(name, kind, meanings)]
    members = [(f"`{call}`", line) for call, line in _members(name, kind, meanings)]
    parts.append(_table(("member", "meaning"), [*attributes, *members]))
    return "\n".join(parts)


def _function(name: str, function: Callable[..., Any], meanings: Meanings) -> str:
    call = _call(name, function)
    return f"### {name}\n\n`{call}`\n\n" + _paragraph(meanings.of("function", name, _first_line(function)))


def _union(name: str, union: Any, meanings: Meanings) -> str:
    members = ", ".join(f"`{one.__name__}`" for one in get_args(union))
    return f"### {name}\n\n" + _paragraph(f"{meanings.of(name, 'class', '')} One of {members}.")


def _struct(name: str, kind: type[Struct], meanings: Meanings) -> str:
    parts = [f"### {name}\n", _paragraph(meanings.of(name, "class", _first_line(kind)))]
    parts.append(_table(("field", "type", "default", "meaning"), list(_fields(name, kind, meanings))))
    if members := [(f"`{call}`", line) for call, line in _members(name, kind, meanings)]:
        parts.append(_table(("member", "meaning"), members))
    return "\n".join(parts)


def _events(meanings: Meanings) -> str:
    parts = ["## Events\n", "They are in `tertulia.events`. Durable ones also have `number`, `cursor` and `at`.\n"]
    for kind in get_args(events.Event):
        own = [field for field in kind.__struct_fields__ if field not in ("place", "number", "cursor", "at")]
        rows = [row for row in _fields(kind.__name__, kind, meanings, among=own) if row]
        durable = "number" in kind.__struct_fields__
        line = meanings.of(kind.__name__, "class", _first_line(kind))
        parts.append(f"### {kind.__name__}\n")
        parts.append(_paragraph(f"{line} {'Durable' if durable else 'Ephemeral'}."))
        parts.append(_table(("field", "type", "default", "meaning"), rows))
    return "\n".join(parts)


def _errors() -> str:
    """The tree that the docstring of `tertulia.errors` draws; a test of the docs compares it with the classes."""
    tree = (errors.__doc__ or "").split("\n\n", 1)[1].strip()
    return f"## Errors\n\n```text\n{tree}\n```\n"


def _commands() -> str:
    group: Any = typer.main.get_command(app)
    parts = ["## Commands\n", "`--help` after any command prints this too, with an example.\n"]
    for path, command in _walk(group, "tertulia"):
        parts.append(f"### {path}\n")
        parts.append(_paragraph(_sentence(command.help or "")))
        rows = [(_option(one), one.help or _no_help(path, one)) for one in command.params if one.name != "help"]
        if rows:
            parts.append(_table(("argument or option", "meaning"), [row for row in rows if row[1]]))
    return "\n".join(parts)


def _walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, sub in sorted(getattr(command, "commands", {}).items()):
        yield from _walk(sub, f"{path} {name}")


def _no_help(path: str, option: Any) -> str:
    if option.name in ("install_completion", "show_completion"):
        return "Shell completion."
    raise LookupError(f"{path}: {option.name} has no help")


def _option(option: Any) -> str:
    if option.param_type_name == "argument":
        name = re.sub(r"[\[\]|]", "", (option.metavar or option.name).upper().replace("|-", ""))
        return f"`{name}`" if option.required else f"`[{name}]`"
    value = "" if option.is_flag else f" {(option.metavar or option.name).upper()}"
    return ", ".join(f"`{name}{value}`" for name in [*option.opts, *option.secondary_opts])


def _fields(owner: str, kind: type[Struct], meanings: Meanings, *, among: Iterable[str] | None = None) -> Iterator[Row]:
    written = _written_fields(kind)
    for field in msgspec.structs.fields(kind):
        if among is not None and field.name not in among:
            continue
        annotation, comment = written.get(field.name, ("", ""))
        line = meanings.of(owner, field.name, comment)
        yield f"`{field.name}`", f"`{_short(annotation)}`", _default(field), line


@cache
def _written_fields(kind: type) -> dict[str, tuple[str, str]]:
    """The annotation of each field as the code has it, and the comment beside it; those of the bases too."""
    found: dict[str, tuple[str, str]] = {}
    for base in reversed(kind.__mro__):
        if base in (Struct, object) or not base.__module__.startswith("tertulia"):
            continue
        source = textwrap.dedent(inspect.getsource(base))
        [body] = ast.parse(source).body
        lines = source.splitlines()
        for node in getattr(body, "body", []):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.end_lineno:
                comment = lines[node.end_lineno - 1].partition("  # ")[2]
                found[node.target.id] = (ast.unparse(node.annotation), comment)
    return found


def _parameters(owner: str, kind: type, meanings: Meanings) -> list[Row]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    [made] = [one for one in getattr(tree, "body", []) if getattr(one, "name", "") == "__init__"]
    arguments = [*made.args.args[1:], *([made.args.vararg] if made.args.vararg else []), *made.args.kwonlyargs]
    rows: list[Row] = []
    for argument, parameter in zip(arguments, list(inspect.signature(kind).parameters.values()), strict=True):
        default = "" if parameter.default is parameter.empty else _shown(parameter.default)
        line = meanings.of(owner, argument.arg, "")
        rows.append((f"`{argument.arg}`", f"`{_short(ast.unparse(argument.annotation))}`", default or "required", line))
    return rows


def _attributes(owner: str, kind: type, meanings: Meanings) -> Iterator[tuple[str, str]]:
    """What `__init__` sets and no parameter is called: with the comment beside it, or the line about its class."""
    source = textwrap.dedent(inspect.getsource(kind))
    given = set(inspect.signature(kind).parameters) if owner != "Store" else set()
    [made] = [one for one in ast.walk(ast.parse(source)) if getattr(one, "name", "") == "__init__"] or [ast.Pass()]
    for node in ast.walk(made):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        match target:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if not name.startswith("_") and name not in given:
                comment = source.splitlines()[(getattr(node, "end_lineno", None) or 1) - 1].partition("  # ")[2]
                called = getattr(getattr(node, "value", None), "func", None)
                found = getattr(sys.modules[kind.__module__], getattr(called, "id", ""), None)
                line = comment or re.sub("^Implements .*", "", _first_line(found))
                yield name, meanings.of(owner, name, line)


def _members(owner: str, kind: type, meanings: Meanings) -> Iterator[tuple[str, str]]:
    for name, member in vars(kind).items():
        if name.startswith("_") or not isinstance(member, types.FunctionType | property | classmethod | staticmethod):
            continue
        function = member.fget if isinstance(member, property) else getattr(kind, name)
        line = meanings.of(owner, name, _first_line(function))
        yield name if isinstance(member, property) else _call(name, function), line


def _call(name: str, function: Any) -> str:
    given = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):
            continue
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        given.append(f"{star}{parameter.name}{'' if parameter.default is parameter.empty else '=…'}")
    return f"{name}({', '.join(given)})"


def _default(field: Any) -> str:
    if field.default is not msgspec.NODEFAULT:
        return _shown(field.default)
    return _shown(field.default_factory()) if field.default_factory is not msgspec.NODEFAULT else "required"


def _shown(value: object) -> str:
    match value:
        case timedelta():
            return duration(value)
        case Struct():
            return f"`{type(value).__name__}()`"
        case _ if callable(value) or repr(value).startswith("<"):
            return "built in"
        case types.MappingProxyType():
            return "built in"
        case str():
            return f'`"{value}"`'
        case frozenset():
            return "`()`"
        case _:
            return f"`{value!r}`"


def duration(value: timedelta) -> str:
    """Return a time as a config would have it: "7 days"."""
    for unit, seconds in {"day": 86_400, "hour": 3_600, "minute": 60}.items():
        number, rest = divmod(value.total_seconds(), seconds)
        if number and not rest:
            return f"{number:g} {unit}{'s' if number > 1 else ''}"
    return f"{value.total_seconds():g} seconds"


def _short(annotation: str) -> str:
    bare = re.sub(r"Annotated\[(\w+), .*\]", r"\1", annotation).replace("'", '"')
    return re.sub(r"\bcollections\.abc\.|\"", "", bare).replace(" | ", " or ")


def _first_line(of: Any) -> str:
    """The first line of a docstring; none for what msgspec and Protocol write."""
    text = getattr(of, "__doc__", None) or ""
    return "" if isinstance(of, type) and text.startswith(f"{of.__name__}(") else _sentence(text)


def _sentence(text: str) -> str:
    line = re.sub(r"(?<![*\w])\*(\w+)\*", r"`\1`", " ".join(text.split("\n\n")[0].split()))
    return line if not line or line.endswith((".", ":", "!", "?")) else f"{line}."


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _table(heads: Row, rows: Iterable[Row]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        cells = [" ".join(cell.replace("|", "\\|").split()) for cell in row]
        lines.append(re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(cells)} |"))
    return "\n".join(lines) + "\n"


def main() -> None:
    meanings = Meanings()
    page = render(meanings)
    if meanings.missing or meanings.unused:
        sys.exit(f"docs/reference.toml lacks {meanings.missing}; nothing needs {meanings.unused}")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

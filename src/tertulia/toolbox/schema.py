"""The schema of a function: how it is declared to a model, and the type that checks its arguments."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import docstring_parser
import msgspec
from msgspec import Meta, Struct

from tertulia.errors import InvalidValue
from tertulia.jsonio import dumps, loads
from tertulia.toolbox.run_context import takes_context
from tertulia.turns import ToolSpec

_ARGUMENTS = re.compile(r"(Args|Arguments|Parameters)\s*:?\s*\n")

Function = Callable[..., Any]
Field = tuple[str, Any] | tuple[str, Any, Any]  # a parameter's name, type and default


class Declaration(Struct, frozen=True, kw_only=True):
    """A tool as read from the signature and the docstring of a function."""

    spec: ToolSpec
    arguments: Any  # the msgspec or pydantic type that checks the model's arguments
    context: str | None = None  # the name of the parameter that takes the `RunContext`


def declare(function: Function, *, name: str | None = None, description: str | None = None) -> Declaration:
    """Read the declaration of a function."""
    target = _unwrap_partial(function)
    tool_name = name or str(getattr(target, "__name__", type(target).__name__))
    written = _with_signature(target)
    if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
        raise InvalidValue(f"{tool_name}: a tool answers once; return a list of what it yields")
    fields = list(_fields(function, written, tool_name))
    context = _context_parameter(tool_name, fields)
    about, parameters = _documentation(target)
    arguments, schema = _arguments(tool_name, fields[1:] if context else fields)
    annotated = {parameter: words for parameter, kind, *_ in fields if (words := _description(kind))}
    for parameter, declared in schema.get("properties", {}).items():
        if words := annotated.get(parameter) or declared.get("description") or parameters.get(parameter):
            declared["description"] = str(words)
    spec = ToolSpec(name=tool_name, description=description or about, parameters=schema)
    return Declaration(spec=spec, arguments=arguments, context=context)


def convert_arguments(kind: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as the types of the function; numbers in quotes become numbers."""
    try:
        if issubclass(kind, Struct):
            fitting = msgspec.convert(arguments, kind, strict=False)
            return {name: getattr(fitting, name) for name in fitting.__struct_fields__}
        valid = kind.model_validate(arguments)
    except ValueError as error:
        raise InvalidValue(f"The arguments do not fit: {error}") from error
    return {field.alias: getattr(valid, name) for name, field in type(valid).model_fields.items()}


def check_arguments(check: Callable[[Any], Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the defaults of their schema, if *check* finds that they fit it."""
    try:
        fitting: dict[str, Any] = check(loads(dumps(arguments)))  # a copy: those of the call are stored
    except ValueError as error:
        raise InvalidValue(f"The arguments do not fit: {error}") from error
    return fitting


def is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(_with_signature(_unwrap_partial(function)))


def _unwrap_partial(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


def _with_signature(given: Any) -> Any:
    """Return the function whose signature has the parameters: of a callable object, the method of its class."""
    if inspect.isclass(given):
        return given.__init__ if inspect.isfunction(given.__init__) else given
    return given if inspect.isroutine(given) else type(given).__call__


def _documentation(given: Any) -> tuple[str, Mapping[str, str]]:
    """Return the docstring without its `Args:`, as one line a paragraph, and what it says of each parameter."""
    text = inspect.getdoc(given) or ""
    if not inspect.isroutine(given) and not inspect.isclass(given):
        text = inspect.cleandoc(type(given).__call__.__doc__ or type(given).__doc__ or "")
    return _parse_docstring(text)


def _parse_docstring(text: str) -> tuple[str, Mapping[str, str]]:
    try:
        found = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return _unwrap_lines(text), {}
    parameters = {one.arg_name: " ".join((one.description or "").split()) for one in found.params}
    if not parameters and _ARGUMENTS.match(text):  # the parser takes the first line for a summary
        return "", _parse_docstring(f"…\n\n{text}")[1]
    if not parameters:
        return _unwrap_lines(text), {}
    gap = "\n\n" if found.blank_after_short_description else "\n"
    about = gap.join(filter(None, (found.short_description, found.long_description)))
    if found.returns and found.returns.description:
        about += f"\n\nReturns: {found.returns.description}"
    return _unwrap_lines(about), parameters


def _unwrap_lines(text: str) -> str:
    """Return *text* with each paragraph in one line; those with lists or indented lines stay as they are."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    lists = re.compile(r"^(\s|[-*•] |\d+[.)] )", re.MULTILINE)
    return "\n\n".join(one if lists.search(one) else " ".join(one.split()) for one in paragraphs)


def _fields(function: Function, written: Any, name: str) -> Iterator[Field]:
    """Yield the parameters that the model fills in, without those that a partial has bound."""
    bound = function.keywords if isinstance(function, partial) else {}
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(written, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError, ValueError) as error:
        advice = "give the model a function of yours, with types, that calls it"
        raise InvalidValue(f"{name}: its parameters cannot be read ({error}); {advice}") from error
    for parameter in parameters:
        if parameter.name not in bound:
            yield _field(parameter, hints, name)


def _field(parameter: inspect.Parameter, hints: dict[str, Any], function: str) -> Field:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise InvalidValue(f"{function}: a tool's parameters have names; *args, **kwargs and / have no place")
    if parameter.name not in hints:
        raise InvalidValue(f"{function}: its parameter {parameter.name!r} needs a type")
    kind = hints[parameter.name]
    return (parameter.name, kind) if parameter.default is parameter.empty else (parameter.name, kind, parameter.default)


def _context_parameter(function: str, fields: list[Field]) -> str | None:
    """Return the name of the parameter that gets the `RunContext`."""
    found = [
        name
        for number, (name, kind, *_) in enumerate(fields)
        if takes_context(kind, first=number == 0, tool=function, parameter=name)
    ]
    return found[0] if found else None


def _arguments(name: str, fields: list[Field]) -> tuple[Any, dict[str, Any]]:
    """Return the type that checks the arguments, and its JSON schema."""
    if any(map(_is_pydantic, (note for _, kind, *default in fields for note in (*_notes(kind), *default)))):
        return _arguments_by_pydantic(name, fields)
    try:
        described: list[Any] = [(field, _with_description(kind), *default) for field, kind, *default in fields]
        arguments = msgspec.defstruct("_Arguments", described, kw_only=True, forbid_unknown_fields=True)
        return arguments, _schema_of(arguments)
    except TypeError:
        return _arguments_by_pydantic(name, fields)


def _notes(kind: Any) -> Iterator[Any]:
    """Return the notes of a type, `Annotated[…]`, also of those inside it, as in `Annotated[int, …] | None`."""
    for part in get_args(kind):
        yield part
        yield from _notes(part)


def _description(kind: Any) -> str | None:
    """Return the first description among the notes of a type: a text, or that of a `Meta` or a `Field`."""
    if get_origin(kind) is Annotated:
        for note in get_args(kind)[1:]:
            if words := note if isinstance(note, str) else getattr(note, "description", None):
                return str(words)
    if get_origin(kind) in (Annotated, Union, UnionType):
        return next(filter(None, map(_description, get_args(kind))), None)
    return None


def _is_pydantic(note: object) -> bool:
    """Return whether a note of a type, or a default, is pydantic's `Field(…)`."""
    return type(note).__module__.startswith("pydantic.fields")


def _with_description(kind: Any) -> Any:
    """Return the type with its description, `Annotated[str, "what it means"]`, in the form of msgspec."""
    if get_origin(kind) is not Annotated:
        return kind
    base, *notes = get_args(kind)
    metas = [Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[base, *metas]


def _schema_of(arguments: Any) -> dict[str, Any]:
    (root,), components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    schema = components.pop(root["$ref"].rpartition("/")[2])
    schema.pop("title", None)
    if components:
        schema["$defs"] = components
    return schema if schema.get("properties") else {}


def _arguments_by_pydantic(name: str, fields: list[Field]) -> tuple[Any, dict[str, Any]]:
    """Return the same as `_arguments`, made with pydantic, for parameters of pydantic types."""
    refusal = f"{name}: the types of its parameters cannot be declared to a model"
    try:
        import pydantic
        import pydantic_core
    except ImportError as error:
        raise InvalidValue(refusal) from error

    def aliased(field: str, kind: Any, default: Any = ...) -> tuple[Any, Any]:
        if _is_pydantic(default):
            kind, default = Annotated[kind, default], ... if default.is_required() else default.default
        return kind, pydantic.Field(default, alias=field)

    # Fields get names of ours, since pydantic reserves some.
    pydantic_fields: dict[str, Any] = {f"parameter_{index}": aliased(*field) for index, field in enumerate(fields)}
    config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        made: Any = pydantic.create_model("Arguments", __config__=config, **pydantic_fields)
        schema: dict[str, Any] = made.model_json_schema()
    except (pydantic.PydanticUserError, pydantic_core.SchemaError, TypeError, ValueError) as error:
        lines = str(error).splitlines()
        why = lines[-1 if isinstance(error, pydantic_core.SchemaError) else 0].partition(". ")[0]
        advice = "use plain types, dataclasses, or msgspec or pydantic types"
        raise InvalidValue(f"{refusal} ({why}); {advice}") from error
    schema.pop("title", None)
    return made, schema

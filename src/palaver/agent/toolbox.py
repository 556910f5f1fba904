"""Plain functions as tools: declared to a model, checked, and run side by side."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from palaver.errors import InvalidValue, PalaverError
from palaver.models.json import dumps
from palaver.parts import Media, ToolCall, ToolResult
from palaver.turns import ToolSpec

log = logging.getLogger(__name__)

Function = Callable[..., Any]


class Tool(Struct, frozen=True, kw_only=True):
    """A declaration, and the function behind it; without one, the caller answers the calls."""

    spec: ToolSpec
    function: Function | None = None
    arguments: Any = None  # what the arguments are checked against: a msgspec or pydantic type
    timeout: float | None = None
    repeatable: bool = False  # whether it may run again when a crash has left its outcome unknown


@overload
def tool(function: Function) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout: float | None = None, repeatable: bool = False
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    repeatable: bool = False,
) -> Tool | Callable[[Function], Tool]:
    """`@tool` or `@tool(timeout=5)`: a function as a tool, where its name and docstring alone do not say enough."""

    def made(real: Function) -> Tool:
        arguments, schema = _declared(real)
        spec = ToolSpec(
            name=name or str(getattr(real, "__name__", "")),
            description=description or _first_paragraph(real),
            parameters=schema,
        )
        return Tool(spec=spec, function=real, arguments=arguments, timeout=timeout, repeatable=repeatable)

    return made if function is None else made(function)


class Toolbox:
    """The tools of an agent. A call that cannot be run is answered to the model, never raised."""

    def __init__(
        self, tools: Iterable[Function | Tool | ToolSpec] = (), *, timeout: float = 60.0, largest: int = 50_000
    ) -> None:
        self._timeout = timeout
        self._largest = largest  # characters of a result, as JSON
        self._tools: dict[str, Tool] = {}
        for given in tools:
            one = _as_tool(given)
            if one.spec.name in self._tools:
                raise InvalidValue(f"two tools are called {one.spec.name!r}")
            self._tools[one.spec.name] = one

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(one.spec for one in self._tools.values())

    def leaves(self, call: ToolCall) -> bool:
        """Whether the caller is to answer this call: no function is behind its declaration, or behind any."""
        found = self._tools.get(call.name)
        if found is None:
            return all(one.function is None for one in self._tools.values())
        return found.function is None

    async def run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """The results of *calls*, which run side by side, in their order."""
        return list(await asyncio.gather(*(self._run(call) for call in calls)))

    async def _run(self, call: ToolCall) -> ToolResult:
        found = self._tools.get(call.name)
        if found is None or found.function is None:
            return _failure(
                call, f"There is no tool called {call.name!r}. There are: {', '.join(self._tools) or 'none'}."
            )
        if call.broken is not None:
            return _failure(call, f"The arguments were no JSON object: {call.broken[:200]}")
        try:
            arguments = _checked(found.arguments, call.args)
        except ValueError as error:
            return _failure(call, f"The arguments do not fit: {error}")
        return self._within_size(await self._outcome(call, found, arguments))

    async def _outcome(self, call: ToolCall, found: Tool, arguments: dict[str, Any]) -> ToolResult:
        timeout = self._timeout if found.timeout is None else found.timeout
        try:
            async with asyncio.timeout(timeout) as limit:
                return _result(call, await _called(found.function, arguments))
        except TimeoutError as error:
            late = f"{call.name} took longer than {timeout:g} seconds and was given up."
            return _failure(call, late if limit.expired() else f"TimeoutError: {error}")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return _failure(call, f"{call.name} was cancelled from within.")
        except (ValueError, PalaverError) as error:  # what the tool itself says is wrong
            log.info("tool %s: %s", call.name, error)
            return _failure(call, str(error))
        except Exception as error:  # a tool's failure is an answer to the model
            log.warning("tool %s failed", call.name, exc_info=True)
            return _failure(call, f"{type(error).__name__}: {error}")

    def _within_size(self, result: ToolResult) -> ToolResult:
        text = result.value if isinstance(result.value, str) else dumps(result.value).decode()
        if len(text) <= self._largest:
            return result
        note = f"The result has {len(text)} characters; only the first {self._largest} are here."
        return replace(result, value={"beginning": text[: self._largest], "note": note})


def _as_tool(given: Function | Tool | ToolSpec) -> Tool:
    if isinstance(given, Tool):
        return given
    if isinstance(given, ToolSpec):
        return Tool(spec=given)
    if not callable(given):
        raise InvalidValue(f"a tool is a function, a Tool or a ToolSpec, not {given!r}")
    return tool(given)


def _declared(function: Function) -> tuple[Any, dict[str, Any]]:
    """The type that checks a function's arguments, and its JSON schema."""
    name = getattr(function, "__name__", repr(function))
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidValue(f"the types of {name} cannot be read: {error}") from error
    fields = [_field(parameter, hints, name) for parameter in inspect.signature(function).parameters.values()]
    try:
        arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        return arguments, _schema_of(arguments)
    except TypeError:
        return _declared_by_pydantic(name, fields)


def _field(parameter: inspect.Parameter, hints: dict[str, Any], function: str) -> Any:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise InvalidValue(f"{function}: a tool's parameters have names; *args, **kwargs and / have no place")
    if parameter.name not in hints:
        raise InvalidValue(f"{function}: its parameter {parameter.name!r} needs a type")
    kind = _described(hints[parameter.name])
    if parameter.default is parameter.empty:
        return parameter.name, kind
    return parameter.name, kind, parameter.default


def _described(kind: Any) -> Any:
    """A type whose description, given as `Annotated[str, "what it means"]`, msgspec can read."""
    if get_origin(kind) is not Annotated:
        return kind
    base, *notes = get_args(kind)
    metas = [Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[base, *metas]


def _schema_of(arguments: Any) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    root = components.pop("Arguments")
    root.pop("title", None)
    if components:
        root["$defs"] = components
    return root if root.get("properties") else {}


def _declared_by_pydantic(name: str, fields: list[Any]) -> tuple[Any, dict[str, Any]]:
    """The same by pydantic, for parameters of the user's own pydantic types."""
    try:
        import pydantic
    except ImportError as error:
        raise InvalidValue(f"{name}: the types of its parameters cannot be declared to a model") from error
    declared: dict[str, Any] = {field[0]: (field[1], field[2] if len(field) > 2 else ...) for field in fields}
    config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        made: Any = pydantic.create_model("Arguments", __config__=config, **declared)
        schema: dict[str, Any] = made.model_json_schema()
    except (pydantic.PydanticUserError, pydantic.PydanticSchemaGenerationError) as error:
        raise InvalidValue(f"{name}: the types of its parameters cannot be declared to a model: {error}") from error
    schema.pop("title", None)
    return made, schema


def _checked(arguments: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function's own types; numbers in quotes are taken as numbers."""
    if issubclass(arguments, Struct):
        checked = msgspec.convert(given, arguments, strict=False)
        return {name: getattr(checked, name) for name in checked.__struct_fields__}
    valid = arguments.model_validate(given)
    return {name: getattr(valid, name) for name in type(valid).model_fields}


async def _called(function: Any, arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    outcome = await asyncio.to_thread(_in_thread, function, arguments)
    return await outcome if inspect.isawaitable(outcome) else outcome


def _in_thread(function: Any, arguments: dict[str, Any]) -> Any:
    try:
        return function(**arguments)
    except StopIteration as error:  # no future can carry it
        raise RuntimeError(f"StopIteration: {error}") from error


def _result(call: ToolCall, outcome: Any) -> ToolResult:
    match outcome:
        case ToolResult():
            return replace(outcome, id=call.id, name=call.name)
        case Media():
            return ToolResult(id=call.id, name=call.name, value={"media": outcome.words}, media=(outcome,))
        case _:
            value = msgspec.to_builtins(outcome, enc_hook=_plain)
            return ToolResult(id=call.id, name=call.name, value=value)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def _failure(call: ToolCall, message: str) -> ToolResult:
    return ToolResult(id=call.id, name=call.name, value=message, failed=True)


def _first_paragraph(function: Function) -> str:
    text = inspect.getdoc(function) or ""
    return " ".join(text.partition("\n\n")[0].split())

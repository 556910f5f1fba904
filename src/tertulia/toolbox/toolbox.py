"""Toolbox: checks the arguments of tool calls, runs the calls concurrently, and makes results of their outcomes."""

import asyncio
import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime
from functools import partial
from secrets import token_hex
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import InvalidValue, TertuliaError
from tertulia.json_schema import validator
from tertulia.jsonio import dumps, json_copy
from tertulia.parts import Media, ToolCall, ToolResult, made_media
from tertulia.redaction import redact_keys
from tertulia.toolbox.run_context import RunContext
from tertulia.toolbox.schema import Function as Function
from tertulia.toolbox.schema import check_arguments, convert_arguments, declare, is_async
from tertulia.turns import ToolSpec

log = logging.getLogger(__name__)

LARGEST = 1_000_000  # characters of a result that are stored; a model is shown `parts.LONGEST` of them

Portable = Exception | SystemExit | asyncio.CancelledError  # errors that a thread can hand to a future
KnownResults = list[tuple[ToolCall, ToolResult]]

RESULTS: ContextVar[KnownResults | None] = ContextVar(
    "RESULTS", default=None
)  # results, noted before a cancellation can lose them


if TYPE_CHECKING:
    import typing_extensions  # as a type checker knows it; it need not be installed

    P = typing_extensions.ParamSpec("P", default=...)  # so that `Tool` alone is a tool of any function
    R = typing_extensions.TypeVar("R", default=Any)
else:
    P, R = ParamSpec("P"), TypeVar("R")


class Tool(Struct, Generic[P, R], frozen=True, kw_only=True):
    """A declaration and its function, which it calls when it is called itself.

    Without a function the caller answers the calls of the model.
    """

    spec: ToolSpec
    function: Callable[P, R] | None = None
    arguments: Any = None  # the msgspec or pydantic type that checks the arguments; None: the schema of `spec` does
    timeout: float | None = None
    repeatable: bool = False  # whether it may run again after a crash left its outcome unknown
    allow_identical_calls: bool = False  # whether it runs again after the same call had the same result twice
    private_media: bool = False  # whether media that it returns are for the model alone; else people get them too
    context: str | None = None  # the parameter that takes the `RunContext`

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        """Call the function, with the arguments as given."""
        if self.function is None:
            raise InvalidValue(f"the tool {self.spec.name} has no function")
        return self.function(*args, **named)


@overload
def tool(function: Callable[P, R]) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    repeatable: bool = False,
    allow_identical_calls: bool = False,
    private_media: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Function | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    repeatable: bool = False,
    allow_identical_calls: bool = False,
    private_media: bool = False,
) -> Any:
    """`@tool` or `@tool(timeout=5)`: make a tool of a function, with options. It can be called like the function."""

    def decorate(real: Function) -> Tool:
        found = declare(real, name=name, description=description)
        return Tool(
            spec=found.spec,
            function=real,
            arguments=found.arguments,
            timeout=timeout,
            repeatable=repeatable,
            allow_identical_calls=allow_identical_calls,
            private_media=private_media,
            context=found.context,
        )

    return decorate if function is None else decorate(function)


class Toolbox:
    """The tools of an agent. A call that fails becomes a failed result for the model, never an exception."""

    def __init__(
        self,
        tools: Iterable[Function | Tool | ToolSpec] = (),
        *,
        timeout: float = 60.0,
        grace: float = 1.0,
        largest: int = LARGEST,
    ) -> None:
        self._timeout = timeout
        self._grace = grace  # seconds that a cancelled tool has to end
        self._largest = largest  # characters of a result as JSON
        self._tools: dict[str, Tool] = {}
        for given in tools:
            one = _as_tool(given)
            if one.spec.name in self._tools:
                raise InvalidValue(f"two tools are called {one.spec.name!r}")
            self._tools[one.spec.name] = one
        self._checks = {name: _check(one) for name, one in self._tools.items() if one.function is not None}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(one.spec for one in self._tools.values())

    def is_for_caller(self, call: ToolCall) -> bool:
        """Return whether the caller answers: the tool has no function, or is unknown and no tool has one."""
        found = self._tools.get(call.name)
        if found is None:
            return all(one.function is None for one in self._tools.values())
        return found.function is None

    def is_repeatable(self, call: ToolCall) -> bool:
        """Return whether the call may run again if its outcome is unknown."""
        found = self._tools.get(call.name)
        return found is not None and found.repeatable

    def allows_identical(self, call: ToolCall) -> bool:
        """Return whether the call may run again after it had the same result twice."""
        found = self._tools.get(call.name)
        return found is not None and found.allow_identical_calls

    async def run(self, calls: Sequence[ToolCall], context: RunContext | None = None) -> list[ToolResult]:
        """Run *calls* concurrently and return their results in order.

        *context* belongs to the first call; each further call gets it with its own number. Without it, the calls get a
        new run id.
        """
        run = context or RunContext(run_id=token_hex(10), step=0, now=datetime.now(UTC))
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(self._run(call, replace(run, call=run.call + index)))
                for index, call in enumerate(calls)
            ]
        return [task.result() for task in running]

    async def _run(self, call: ToolCall, context: RunContext) -> ToolResult:
        """Return the result of *call*. A tool that goes on after it was cancelled is abandoned."""
        found = self._tools.get(call.name)
        limit = self._timeout if found is None or found.timeout is None else found.timeout
        work = asyncio.create_task(self._check_and_call(call, context))
        try:
            await asyncio.wait([work], timeout=limit)
        finally:
            stopped = not work.done()
            if stopped:
                work.cancel()
                await asyncio.wait([work], timeout=self._grace)
            result = _result_of(work, stopped=stopped)
            if result is not None:
                _note(call, result)
        if result is None:
            late = f"{call.name} took longer than {limit:g} seconds and was given up."
            result = tool_failure(call, late if stopped else f"{call.name} was cancelled from within.")
            _note(call, result)
        return result

    async def _check_and_call(self, call: ToolCall, context: RunContext) -> ToolResult:
        """Validate the arguments and call the function; return its result or failure. Raise only if cancelled."""
        found = self._tools.get(call.name)
        if found is None or found.function is None:
            there = ", ".join(self._tools) or "none"
            return tool_failure(call, f"There is no tool called {call.name!r}. There are: {there}.")
        if call.broken is not None:
            return tool_failure(call, f"The arguments were no JSON object: {call.broken[:200]}")
        try:
            arguments = self._checks[call.name](call.args)
            if found.context is not None:
                arguments[found.context] = context
            outcome = await call_function(found.function, arguments)
            if isinstance(outcome, str):  # cut first: making megabytes plain takes long
                return tool_result(call, self._cut(outcome, outcome))
            whole = tool_result(call, outcome)
            text = whole.value if isinstance(whole.value, str) else dumps(whole.value).decode()
            is_private = bool(whole.media) and (whole.private_media or found.private_media)
            return replace(whole, value=self._cut(whole.value, text), private_media=is_private)
        except asyncio.CancelledError:
            raise
        except (ValueError, TertuliaError) as error:  # the tool says what is wrong
            log.debug("tool %s: %s", call.name, error_message(error))
            return tool_failure(call, error_message(error))
        except BaseException as error:  # noqa: BLE001 (a tool is foreign code; its failure is a result)
            log.warning("tool %s failed:\n%s", call.name, redact_keys(traceback.format_exc().strip()))
            return tool_failure(call, f"{type(error).__name__}: {error_message(error)}")

    def _cut(self, value: Any, text: str) -> Any:
        """Return *value*; if its *text* is too long, the beginning of that and its length."""
        if len(text) <= self._largest:
            return value
        note = f"The result has {len(text)} characters; only the first {self._largest} are here."
        return {"beginning": text[: self._largest], "note": note}


def _check(one: Tool) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function that checks and converts the arguments of a tool."""
    if one.arguments is not None:
        return partial(convert_arguments, one.arguments)
    return partial(check_arguments, validator(one.spec.parameters, of=f"tool {one.spec.name!r}"))


def _as_tool(given: Function | Tool | ToolSpec) -> Tool:
    if isinstance(given, Tool):
        return given
    if isinstance(given, ToolSpec):
        return Tool(spec=given)
    if not callable(given):
        hint = "; ToolSpec.of(…) reads a declaration" if isinstance(given, dict) else ""
        raise InvalidValue(f"a tool is a function, a Tool or a ToolSpec, not {given!r}{hint}")
    return tool(given)


def _result_of(work: asyncio.Task[ToolResult], *, stopped: bool) -> ToolResult | None:
    """Return the result of a task, if it has one. A failure after it was stopped says nothing of what it has done."""
    result = work.result() if work.done() and not work.cancelled() else None
    return None if result is not None and result.failed and stopped else result


def _note(call: ToolCall, result: ToolResult) -> None:
    results = RESULTS.get()
    if results is not None:
        results.append((call, result))


async def call_function(function: Function, arguments: dict[str, Any]) -> Any:
    """Call *function*, in a thread if it is not async, and return its result."""
    if is_async(function):
        return await function(**arguments)
    outcome = await _in_thread(lambda: function(**arguments))
    return await outcome if inspect.isawaitable(outcome) else outcome


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run *work* in a daemon thread of its own, so that a function which never ends blocks nobody."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(outcome: Any, error: Portable | None) -> None:
        if done.done():
            return  # the caller has given up
        if error is None:
            done.set_result(outcome)
        else:
            done.set_exception(error)

    def body() -> None:
        outcome, error = _run_to_end(lambda: context.run(work))
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, outcome, error)

    Thread(target=body, name="tertulia tool", daemon=True).start()
    return await done


def _run_to_end(work: Callable[[], Any]) -> tuple[Any, Portable | None]:
    """Return what *work* returns and the error it raises. Errors that would end the program become `RuntimeError`."""
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 (raised again where the tool is awaited)
        if isinstance(error, Portable) and not isinstance(error, StopIteration):
            return None, error
        wrapper = RuntimeError(f"{type(error).__name__}: {error_message(error)}")
        wrapper.__cause__ = error
        return None, wrapper


def error_message(error: BaseException) -> str:
    """Return `str(error)`, or a fixed text if that raises."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 (the code is the tool's)
        return "(it cannot be put into words)"


def tool_result(call: ToolCall, outcome: Any) -> ToolResult:
    """Return what a function returned as the result of *call*: plain values, with media beside them."""
    media: list[Media] = []
    result = outcome if isinstance(outcome, ToolResult) else ToolResult(name=call.name, value=outcome)
    value = _take_media(result.value, media)
    all_media = (*result.media, *media) if media else result.media
    made = json_copy(replace(result, id=call.id, name=call.name, value=value, media=all_media))
    return replace(made, media=tuple(made_media(one, name=token_hex(16)) for one in made.media)) if made.media else made


def _take_media(value: Any, media: list[Media]) -> Any:
    """Return the value with captions in place of media; the media are added to *media*."""
    match value:
        case Media():
            media.append(value)
            return {"media": value.caption}
        case dict():
            return {key: _take_media(item, media) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_take_media(item, media) for item in value]
        case _:
            return value


def tool_failure(call: ToolCall, message: str) -> ToolResult:
    return json_copy(ToolResult(id=call.id, name=call.name, value=message, failed=True))

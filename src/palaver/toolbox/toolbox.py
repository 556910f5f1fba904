"""Plain functions as tools: declared to a model, checked, and run side by side."""

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, overload

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import InvalidValue, PalaverError
from palaver.jsonio import dumps
from palaver.parts import ToolCall, ToolResult
from palaver.redaction import redact_keys
from palaver.toolbox.call import call_function, error_message, tool_failure, tool_result
from palaver.toolbox.run_context import RunContext
from palaver.toolbox.schema import Function as Function
from palaver.toolbox.schema import check_arguments, declare
from palaver.turns import ToolSpec

log = logging.getLogger(__name__)

LARGEST = 1_000_000  # characters of a result that are kept; of these a model is shown `parts.LONGEST`

KnownResults = list[tuple[ToolCall, ToolResult]]

RESULTS: ContextVar[KnownResults | None] = ContextVar(
    "RESULTS", default=None
)  # where results are noted as soon as they are known


class Tool(Struct, frozen=True, kw_only=True):
    """A declaration, and the function behind it; without one, the caller answers the calls."""

    spec: ToolSpec
    function: Function | None = None
    arguments: Any = None  # what the arguments are checked against: a msgspec or pydantic type
    timeout: float | None = None
    repeatable: bool = False  # whether it may run again when a crash has left its outcome unknown
    allow_identical_calls: bool = False  # whether it runs again where the same call has given the same result twice
    context: str | None = None  # the parameter that takes the `RunContext`


@overload
def tool(function: Function) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    repeatable: bool = False,
    allow_identical_calls: bool = False,
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    repeatable: bool = False,
    allow_identical_calls: bool = False,
) -> Tool | Callable[[Function], Tool]:
    """`@tool` or `@tool(timeout=5)`: a function as a tool, where its name and docstring alone do not say enough."""

    def made(real: Function) -> Tool:
        found = declare(real, name=name, description=description)
        return Tool(
            spec=found.spec,
            function=real,
            arguments=found.arguments,
            timeout=timeout,
            repeatable=repeatable,
            allow_identical_calls=allow_identical_calls,
            context=found.context,
        )

    return made if function is None else made(function)


class Toolbox:
    """The tools of an agent. A call that cannot be run is answered to the model, never raised."""

    def __init__(
        self,
        tools: Iterable[Function | Tool | ToolSpec] = (),
        *,
        timeout: float = 60.0,
        grace: float = 1.0,
        largest: int = LARGEST,
    ) -> None:
        self._timeout = timeout
        self._grace = grace  # seconds in which a tool that is cancelled may end
        self._largest = largest  # characters of a result, as JSON, that are kept
        self._tools: dict[str, Tool] = {}
        for given in tools:
            one = _as_tool(given)
            if one.spec.name in self._tools:
                raise InvalidValue(f"two tools are called {one.spec.name!r}")
            self._tools[one.spec.name] = one

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(one.spec for one in self._tools.values())

    def is_for_caller(self, call: ToolCall) -> bool:
        """Whether the caller is to answer this call: no function is behind its declaration, or behind any."""
        found = self._tools.get(call.name)
        if found is None:
            return all(one.function is None for one in self._tools.values())
        return found.function is None

    def is_repeatable(self, call: ToolCall) -> bool:
        """Whether the call may be run again when nobody knows what became of it."""
        found = self._tools.get(call.name)
        return found is not None and found.repeatable

    def allows_identical(self, call: ToolCall) -> bool:
        """Whether the call may be run again where it has given the same result twice."""
        found = self._tools.get(call.name)
        return found is not None and found.allow_identical_calls

    async def run(self, calls: Sequence[ToolCall], context: RunContext | None = None) -> list[ToolResult]:
        """The results of *calls*, which run side by side, in their order.

        *context* is that of the first call; the others get it with their own positions. Without one, the calls are a
        run of their own.
        """
        run = context or RunContext(run_id=token_hex(10), step=0, now=datetime.now(UTC))
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(self._run(call, replace(run, call=run.call + index)))
                for index, call in enumerate(calls)
            ]
        return [task.result() for task in running]

    async def _run(self, call: ToolCall, context: RunContext) -> ToolResult:
        """The answer to *call*; a tool that goes on though it was cancelled is left behind."""
        limit = self._limit(call)
        work = asyncio.create_task(self._outcome(call, context))
        try:
            await asyncio.wait([work], timeout=limit)
        finally:
            stopped = not work.done()
            await self._stop(work)
            answer = _answer_of(work, stopped=stopped)
            if answer is not None:
                _note(call, answer)
        if answer is None:
            late = f"{call.name} took longer than {limit:g} seconds and was given up."
            answer = tool_failure(call, late if stopped else f"{call.name} was cancelled from within.")
            _note(call, answer)
        return answer

    def _limit(self, call: ToolCall) -> float:
        found = self._tools.get(call.name)
        return self._timeout if found is None or found.timeout is None else found.timeout

    async def _stop(self, work: asyncio.Task[ToolResult]) -> None:
        if not work.done():
            work.cancel()
            await asyncio.wait([work], timeout=self._grace)

    async def _outcome(self, call: ToolCall, context: RunContext) -> ToolResult:
        """What became of *call*; raises only when its own task is cancelled."""
        found = self._tools.get(call.name)
        if found is None or found.function is None:
            there = ", ".join(self._tools) or "none"
            return tool_failure(call, f"There is no tool called {call.name!r}. There are: {there}.")
        if call.broken is not None:
            return tool_failure(call, f"The arguments were no JSON object: {call.broken[:200]}")
        try:
            arguments = check_arguments(found.arguments, call.args)
            if found.context is not None:
                arguments[found.context] = context
            outcome = await call_function(found.function, arguments)
            if isinstance(outcome, str):  # cut before it is made plain: that takes long for megabytes
                return tool_result(call, self._within_size(outcome, outcome))
            whole = tool_result(call, outcome)
            text = whole.value if isinstance(whole.value, str) else dumps(whole.value).decode()
            return replace(whole, value=self._within_size(whole.value, text))
        except asyncio.CancelledError:
            raise
        except (ValueError, PalaverError) as error:  # what the tool itself says is wrong
            log.info("tool %s: %s", call.name, error_message(error))
            return tool_failure(call, error_message(error))
        except BaseException as error:  # noqa: BLE001 (a tool's failure is an answer to the model)
            log.warning("tool %s failed:\n%s", call.name, redact_keys(traceback.format_exc().strip()))
            return tool_failure(call, f"{type(error).__name__}: {error_message(error)}")

    def _within_size(self, value: Any, text: str) -> Any:
        """*value*, or where its *text* is too long the beginning of that and how long it was."""
        if len(text) <= self._largest:
            return value
        note = f"The result has {len(text)} characters; only the first {self._largest} are here."
        return {"beginning": text[: self._largest], "note": note}


def _as_tool(given: Function | Tool | ToolSpec) -> Tool:
    if isinstance(given, Tool):
        return given
    if isinstance(given, ToolSpec):
        return Tool(spec=given)
    if not callable(given):
        raise InvalidValue(f"a tool is a function, a Tool or a ToolSpec, not {given!r}")
    return tool(given)


def _answer_of(work: asyncio.Task[ToolResult], *, stopped: bool) -> ToolResult | None:
    """What the tool answered, if it did; how one that was stopped fails says nothing of what it has done."""
    answer = work.result() if work.done() and not work.cancelled() else None
    return None if answer is not None and answer.failed and stopped else answer


def _note(call: ToolCall, answer: ToolResult) -> None:
    known = RESULTS.get()
    if known is not None:
        known.append((call, answer))

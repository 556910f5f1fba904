"""Calling a tool's function, in a thread of its own where it does not await, and its outcome as a result."""

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Any

from msgspec.structs import replace

from palaver.jsonio import json_copy
from palaver.parts import Media, ToolCall, ToolResult
from palaver.toolbox.schema import Function, is_async

Carried = Exception | SystemExit | asyncio.CancelledError  # what a tool's thread hands on as it is


async def call_function(function: Function, arguments: dict[str, Any]) -> Any:
    """What *function* returns, or raises."""
    if is_async(function):
        return await function(**arguments)
    outcome = await _in_thread(lambda: function(**arguments))
    return await outcome if inspect.isawaitable(outcome) else outcome


async def _in_thread(work: Callable[[], Any]) -> Any:
    """What *work* returns; it has a daemon thread to itself, so that one which never ends holds nobody up."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(outcome: Any, error: Carried | None) -> None:
        if done.done():
            return  # it was given up
        if error is None:
            done.set_result(outcome)
        else:
            done.set_exception(error)

    def body() -> None:
        outcome, error = _tried(lambda: context.run(work))
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, outcome, error)

    Thread(target=body, name="palaver tool", daemon=True).start()
    return await done


def _tried(work: Callable[[], Any]) -> tuple[Any, Carried | None]:
    """What *work* returned or raised, as something that a future can carry and that ends no program."""
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 (raised again where the tool is awaited)
        return None, error if isinstance(error, Carried) and not isinstance(error, StopIteration) else _carried(error)


def _carried(error: BaseException) -> RuntimeError:
    carried = RuntimeError(f"{type(error).__name__}: {error_message(error)}")
    carried.__cause__ = error
    return carried


def error_message(error: BaseException) -> str:
    """What the error says, whatever its own code does."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 (the code is the tool's)
        return "(it cannot be put into words)"


def tool_result(call: ToolCall, outcome: Any) -> ToolResult:
    """What a function returned as the result of *call*, in plain values, media beside them."""
    media: list[Media] = []
    made = outcome if isinstance(outcome, ToolResult) else ToolResult(name=call.name, value=outcome)
    value = _without_media(made.value, media)
    beside = (*made.media, *media) if media else made.media
    return json_copy(replace(made, id=call.id, name=call.name, value=value, media=beside))


def _without_media(value: Any, media: list[Media]) -> Any:
    """The value with words where media stood, which are added to *media*."""
    match value:
        case Media():
            media.append(value)
            return {"media": value.caption}
        case dict():
            return {key: _without_media(item, media) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_without_media(item, media) for item in value]
        case _:
            return value


def tool_failure(call: ToolCall, message: str) -> ToolResult:
    return json_copy(ToolResult(id=call.id, name=call.name, value=message, failed=True))

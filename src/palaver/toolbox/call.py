"""Calls of tool functions, in a thread if they are not async, and their outcomes as results."""

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

Portable = Exception | SystemExit | asyncio.CancelledError  # errors that a thread can hand to a future


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

    Thread(target=body, name="palaver tool", daemon=True).start()
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
    return json_copy(replace(result, id=call.id, name=call.name, value=value, media=all_media))


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

"""A stream that has begun and has not ended: who reads it, and whether its reader has left it."""

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any

from palaver.models.base import Response
from palaver.parts import Part

Pieces = AsyncGenerator[Part | Response, None]
Task = asyncio.Task[Any]


class Standing:
    """All of it is held weakly: a stream that nobody holds any more is closed by the event loop."""

    def __init__(self) -> None:
        self._stream: weakref.ref[Pieces] | None = None
        self._owner = _this_task()  # who asked for the stream
        self._reader: weakref.ref[Task] | None = None  # who took the last piece; `wait_for` may have a task for each

    def of(self, stream: Pieces) -> Pieces:
        self._stream = weakref.ref(stream)
        return stream

    def read_on(self) -> None:
        self._reader = _this_task()

    async def close_if_left(self) -> None:
        """Close the stream if nobody reads on: its reader is the one who speaks now, or is gone like its owner."""
        stream = self._stream() if self._stream else None
        if stream is not None and self._left() and not getattr(stream, "ag_running", False):
            await stream.aclose()

    def _left(self) -> bool:
        me = _this_task()
        return self._reader == me or (_gone(self._reader) and (self._owner == me or _gone(self._owner)))


def _gone(reference: weakref.ref[Task] | None) -> bool:
    task = reference() if reference else None
    return task is None or task.done()


def _this_task() -> weakref.ref[Task] | None:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop is running here
        return None
    return weakref.ref(task) if task else None

"""Timeline: all that was observed in a demo, in order; whoever waits for an observation is woken by it."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T", bound="Observation")

PATIENCE = 30.0  # seconds that something may take before the demo has failed


class DemoFailed(Exception):
    """Something that the demo waited for did not happen."""


class Observation(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The base of all that is shown."""


class Scene(Observation, frozen=True, kw_only=True, tag="scene"):
    title: str


class Said(Observation, frozen=True, kw_only=True, tag="said"):
    """A message that people see, whole."""

    author: str
    text: str
    message_id: str
    reply_to: str | None = None


class Drafted(Observation, frozen=True, kw_only=True, tag="drafted"):
    """What people see of a message that the bot still writes."""

    author: str
    text: str
    message_id: str


class Learned(Observation, frozen=True, kw_only=True, tag="learned"):
    fact_id: str
    about: str
    text: str
    sources: dict[str, str]  # texts of messages, by their ids


class PromptShown(Observation, frozen=True, kw_only=True, tag="prompt"):
    """What the model was sent."""

    run_id: str
    step: int
    layers: dict[str, int]  # tokens of the tools and of each layer
    remembered: tuple[str, ...]  # the facts that it holds
    end: str  # the last part of it


class ToolRan(Observation, frozen=True, kw_only=True, tag="tool"):
    name: str
    args: dict[str, Any]
    result: Any


class TaskStored(Observation, frozen=True, kw_only=True, tag="task"):
    task_id: str
    what: str
    due_at: datetime


class Started(Observation, frozen=True, kw_only=True, tag="started"):
    pid: int


class Killed(Observation, frozen=True, kw_only=True, tag="killed"):
    """The bot's process is gone, and what it left in its store."""

    pid: int
    status: int  # negative: the signal
    words: int  # of the answer that people saw
    open_runs: int
    answers: int  # of these runs that are in the outbox


class Resumed(Observation, frozen=True, kw_only=True, tag="resumed"):
    run_id: str
    pid: int


class Check(Observation, frozen=True, kw_only=True, tag="check"):
    """Whether something holds at the end."""

    text: str
    held: bool


class Timeline:
    def __init__(self, show: Callable[[Observation], None]) -> None:
        self.seen: list[Observation] = []
        self._show = show
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None

    def add(self, observation: Observation) -> None:
        self.seen.append(observation)
        self._show(observation)
        self._changed.set()

    def wake(self) -> None:
        """Wake those who wait: something other than an observation has changed."""
        self._changed.set()

    def of(self, kind: type[T]) -> list[T]:
        """Return all observations of a kind, in order."""
        return [one for one in self.seen if isinstance(one, kind)]

    def fail(self, error: BaseException) -> None:
        """Raise *error* where somebody waits, now and later."""
        self._failure = self._failure or error
        self._changed.set()

    def start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task whose error fails the demo."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    async def until(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until *is_so*; raise `DemoFailed` if that takes too long."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (self._failure or is_so()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise DemoFailed(f"waited {PATIENCE:g} seconds for {what}") from error
        if self._failure:
            raise self._failure

    async def pause(self, seconds: float) -> None:
        """Give people time to read."""
        await asyncio.sleep(seconds)
        if self._failure:
            raise self._failure

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            self.fail(error)

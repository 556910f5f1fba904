"""Runs of scripted models: their calls, prompts and tools."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from people import NOON
from run.loop_child import MODEL, toolbox
from run.loops import run_to_end
from store.builders import a_run
from tertulia.engine.store_protocols import RunStore
from tertulia.models import Model
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.run.journal import FallbackStep
from tertulia.run.loop import (
    RunAnswered,
)
from tertulia.toolbox.toolbox import Toolbox, tool
from tertulia.turns import Prompt, model, user

RUN = a_run()
BOOK, LOOK = ToolCall(name="book", args={"seat": 1}, id="a"), ToolCall(name="look", args={"place": "Lviv"}, id="b")
REBOOK = ToolCall(name="book", args={"seat": 2}, id="c")


def names(tried: Iterable[FallbackStep]) -> tuple[str, ...]:
    return tuple(one.fallback for one in tried)


class Slept(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def ran_with(runs: RunStore, answering: Model, prompt: Prompt, **changes: Any) -> RunAnswered:
    fields: dict[str, Any] = {"toolbox": toolbox(lambda _: None), "now": lambda: NOON, "sleep": Slept()}
    run = replace(RUN, model=answering.name)
    return await run_to_end(runs, run, prompt, **{"models": [answering]} | fields | changes)


TOOLS = toolbox(lambda _: None).specs
OLD_CALL = ToolCall(name="look", args={"place": "Kyiv"}, id="old", signature="b2xk")
HISTORY = (
    user("Look."),
    user("At Kyiv."),
    model(OLD_CALL, by=MODEL),
    user(ToolResult(name="look", id="old", value="It is green.")),
    model(Text(text="Green.", signature="c2ln"), by=MODEL),
)
TALK = Prompt.of(*HISTORY, "And now?", system="You look.", tools=TOOLS)


def counting(answers: Sequence[Any], **options: Any) -> tuple[Toolbox, list[Any]]:
    """A tool that gives these answers one after the other, and those it has given."""
    given: list[Any] = []

    def poll(job: str) -> Any:
        """Asks how a job is doing."""
        given.append(answers[len(given)])
        return given[-1]

    return Toolbox([replace(tool(poll), **options)]), given


def polls(*jobs: str) -> list[Any]:
    return [[ToolCall(name="poll", args={"job": job}, id=str(number))] for number, job in enumerate(jobs)]

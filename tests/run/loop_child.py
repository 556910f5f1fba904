"""A durable run whose process kills itself at the write point that TERTULIA_KILL_AT names; parts serve tests too."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from run.loops import run_to_end
from store.builders import a_run
from tertulia.context.values import LeftOut, RecalledThing
from tertulia.engine.store_protocols import RunStore
from tertulia.models import Gemini
from tertulia.models.calls import Call
from tertulia.run.journal import FallbackStep, Run, ToolRun
from tertulia.store import Store
from tertulia.tasks.task import Policy, cancels_sends
from tertulia.toolbox.toolbox import Toolbox, tool
from tertulia.turns import Prompt, Record

MODEL = "gemini-3.8-flash"


class Watched:
    """The writes of a run, each named before it is passed on and after it is kept."""

    def __init__(self, runs: RunStore, tell: Callable[[str, str, tuple[Any, ...]], None]) -> None:
        self._runs = runs
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def begin(
        self,
        run: Run,
        prompt: Prompt,
        *,
        at: datetime,
        cancels: Policy = cancels_sends,
        changes: int | None = None,
        edits_matter: bool = True,
        left_out: Sequence[LeftOut] = (),
        recalled: Iterable[RecalledThing] = (),
    ) -> None:
        named = {"cancels": cancels, "changes": changes, "edits_matter": edits_matter, "left_out": left_out}
        await self._write("begin", "begin", run, prompt, at=at, recalled=recalled, **named)

    async def ask(
        self, run: Run, step: int, prompt: Prompt, *, at: datetime, tried: FallbackStep | None = None
    ) -> None:
        await self._write(f"ask {step}", "ask", run, step, prompt, at=at, tried=tried)

    async def add_record(self, run: Run, step: int, record: Record, *, call: Call | None = None) -> None:
        await self._write(f"record {step}", "add_record", run, step, record, call=call)

    async def add_call(self, run: Run, call: Call) -> None:
        await self._write(f"call {call.attempt}", "add_call", run, call)

    async def begin_tool(self, run: Run, begun: ToolRun) -> None:
        await self._write(f"begin {begun.step}.{begun.number}", "begin_tool", run, begun)

    async def end_tool(self, run: Run, ended: ToolRun) -> None:
        await self._write(f"end {ended.step}.{ended.number}", "end_tool", run, ended)

    async def _write(self, point: str, method: str, *values: Any, **named: Any) -> None:
        self._tell(f"before {point}", "", ())
        await getattr(self._runs, method)(*values, **named)
        self._tell(f"after {point}", method, (values, named))


def toolbox(did: Callable[[str], None]) -> Toolbox:
    """A tool that must not run twice and one that may; *did* hears of each time one has done its work."""

    @tool
    async def book(seat: int) -> dict[str, int]:
        """Books a seat."""
        did("book")
        return {"booked": seat}

    @tool(repeatable=True)
    async def look(place: str) -> str:
        """Looks at a place."""
        did("look")
        return f"{place} is green"

    return Toolbox([book, look])


def build_prompt(tools: Toolbox) -> Prompt:
    return Prompt.of("Book me a seat.", system="You book seats.", tools=tools.specs)


def kill_at(point: str) -> None:
    if point == os.environ.get("TERTULIA_KILL_AT"):
        os.kill(os.getpid(), signal.SIGKILL)


async def main(path: str, url: str, log: str) -> None:
    def did(name: str) -> None:
        with Path(log).open("a") as file:
            file.write(f"{name}\n")
        kill_at(f"within {name}")

    tools = toolbox(did)
    async with Store.open(path) as store, Gemini(MODEL, key="k", base_url=url) as model:
        runs = Watched(store.runs, lambda point, *_: kill_at(point))
        await run_to_end(runs, a_run(), build_prompt(tools), model=model, toolbox=tools)
        kill_at("after the run")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

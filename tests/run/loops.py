"""Runs begun in a store and looped to their end."""

from typing import Any

from msgspec.structs import replace

from people import NOON
from tertulia.engine.store_protocols import RunStore
from tertulia.messages import Message
from tertulia.run.journal import Journal, Run, ToolRun
from tertulia.run.loop import RunAnswered, RunLoop, RunOptions, without_tools
from tertulia.run.model_calls import ModelCalls
from tertulia.run.run_host import RunHost
from tertulia.toolbox.run_context import RunContext
from tertulia.turns import Prompt

CALLS = ("sleep", "timeout", "retries", "streaming", "now")
OPTIONS = ("steps", "fallbacks", "prices")
HOST = ("attachments", "expired_files", "message")


class PlaceHost(RunHost):
    """The host of runs in a place, which answer *message*."""

    def __init__(self, *, message: Message | None = None, **media: Any) -> None:
        super().__init__(**media)
        self._message = message

    def tool_context(self, run: Run, tool: ToolRun) -> RunContext:
        message, context = self._message, super().tool_context(run, tool)
        author = message.author if message else None
        return replace(context, place=run.place, author=author, message=message, batch=run.taken)


async def run_to_end(runs: RunStore, run: Run, prompt: Prompt, **fields: Any) -> RunAnswered:
    first = without_tools(prompt) if fields.get("steps") == 0 else prompt
    await runs.begin(run, first, at=NOON)
    return await resumed(runs, Journal(run=run, prompt=first), **fields)


async def resumed(runs: RunStore, journal: Journal, **fields: Any) -> RunAnswered:
    return await a_loop(runs, journal, **fields).run_to_end()


def a_loop(runs: RunStore, journal: Journal, **fields: Any) -> RunLoop:
    calls, options, host = (
        {name: fields.pop(name) for name in names if name in fields} for names in (CALLS, OPTIONS, HOST)
    )
    models = fields.pop("models", None) or [fields.pop("model")]
    return RunLoop(
        journal,
        fields.pop("host", None) or PlaceHost(**host),
        store=runs,
        models=models,
        calls=ModelCalls(**{"now": lambda: NOON} | calls),
        options=RunOptions(**options),
        **fields,
    )

"""Runs begun in a store and looped to their end."""

from typing import Any

from people import NOON
from tertulia.engine.store_protocols import RunStore
from tertulia.run.journal import Journal, Run
from tertulia.run.loop import RunAnswered, RunLoop, without_tools
from tertulia.run.model_calls import ModelCalls
from tertulia.turns import Prompt


async def run_to_end(runs: RunStore, run: Run, prompt: Prompt, **fields: Any) -> RunAnswered:
    first = without_tools(prompt) if fields.get("steps") == 0 else prompt
    await runs.begin(run, first, at=NOON)
    return await resumed(runs, Journal(run=run, prompt=first), **fields)


async def resumed(runs: RunStore, journal: Journal, **fields: Any) -> RunAnswered:
    calls = {name: fields.pop(name) for name in ("sleep", "timeout", "retries", "streaming") if name in fields}
    models = fields.pop("models", None) or [fields.pop("model")]
    given: dict[str, Any] = {"now": lambda: NOON, "calls": ModelCalls(**calls), "models": models} | fields
    return await RunLoop(journal, store=runs, **given).run_to_end()

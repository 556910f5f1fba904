"""Every text that a model reads, compared byte for byte with a snapshot.

A text in `tests/snapshots/` changes only on purpose, after the embedded Qwen was measured with the old and the new one.
`make snapshots` writes the files anew and shows what has changed.
"""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from pathlib import Path

import pytest

from model_text import agents, memory, prompts, runs, tools, wire
from tertulia.profiles import PROFILES

SNAPSHOTS = Path(__file__).parent / "snapshots"
RENEW = "TERTULIA_RENEW_SNAPSHOTS"

AREAS: dict[str, Callable[[], str | Awaitable[str]]] = {
    **{f"profile_{name}.txt": partial(prompts.of_profile, name) for name in PROFILES},
    **{f"agents_{name}.txt": partial(agents.of_profile, name) for name in PROFILES},
    "profile_block_without_metadata.txt": prompts.block_without_metadata,
    "profile_single_quotes.txt": prompts.quotes_in_words,
    "profile_doubtful_replies.txt": prompts.doubtful_replies,
    "references.txt": prompts.references,
    "tools.json": tools.specs,
    "tool_results_calculator.txt": tools.calculator,
    "tool_results_clock.txt": tools.clocks,
    "tool_results_memory.txt": tools.memories,
    "tool_results_recorded.txt": tools.recorded,
    "tool_results_reminders.txt": tools.reminders,
    "tool_results_services.txt": tools.services,
    "tool_failures.txt": tools.toolbox,
    "run_chats.txt": runs.chats,
    "run_cut_words.txt": runs.cut_words,
    "run_fallbacks.txt": runs.fallbacks,
    "run_loop.txt": runs.loop,
    "run_task_blocks.txt": runs.task_blocks,
    "memory_instructions.txt": memory.instructions,
    "memory_patterns.txt": memory.patterns,
    "memory_recollections.txt": memory.recollections,
    "wire_embedded_model.txt": wire.embedded,
    "wire_repairs.txt": wire.repairs,
    "wire_requests.txt": wire.requests,
    "wire_rules.txt": wire.rules,
}


@pytest.mark.parametrize("name", AREAS)
async def test_a_model_reads_what_the_snapshot_holds(name: str) -> None:
    built = AREAS[name]()
    text = await built if isawaitable(built) else built
    assert isinstance(text, str)
    file = SNAPSHOTS / name
    if os.environ.get(RENEW):
        file.write_text(text, encoding="utf-8", newline="")
        pytest.skip(f"{name} was written anew")

    assert text == file.read_bytes().decode()


def test_every_snapshot_has_an_area() -> None:
    assert {file.name for file in SNAPSHOTS.iterdir()} == set(AREAS)

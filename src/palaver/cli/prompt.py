"""`palaver prompt`: what a model was sent in a run, step by step."""

from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.options import DB, open_beside
from palaver.cli.output import local_time, one_line, print_json, print_line, resolve_id
from palaver.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from palaver.parts import Part
    from palaver.run.journal import SentPrompt


def prompt(
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="[RUN_ID]", help="As in the log; its beginning is enough. Default: the last run."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of prompts, one for each step.")] = False,
    db: DB = None,
) -> None:
    """Show what the model was sent in a run, step by step. A bot may be running meanwhile."""
    import asyncio

    found = asyncio.run(_read(db, run_id))
    if as_json:
        return print_json(found)
    if not found:
        print_line(f"run {one_line(run_id)} sent no prompt" if run_id else "no prompt was sent yet")
    for sent in found:
        _print_prompt(sent)
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: palaver prompt 85a6")(prompt)


async def _read(db: "Path | None", given: str | None) -> "Sequence[SentPrompt]":
    async with open_beside(db) as store:
        if given is None:
            return await store.prompts.sent_by()
        if not given:
            raise InvalidValue("the id of a run is not empty")
        return await store.prompts.sent_by(resolve_id(given, await store.prompts.runs(given), "run"))


def _print_prompt(sent: "SentPrompt") -> None:
    tokens = sum(layer.tokens for layer in sent.layers)
    about = f"{one_line(sent.model)}, {local_time(sent.at)}, about {tokens:,} tokens"
    print_line(f"run {one_line(sent.run_id)}, step {sent.step}: {about}", bold=True)
    if sent.tried:
        print_line(f"sent because the one before failed ({one_line(sent.tried.fallback)}): {one_line(sent.tried.why)}")
    if tools := sent.prompt.tools:
        print_line(f"tools: {', '.join(one_line(tool.name) for tool in tools)}")
    for layer in sent.prompt.layers:
        if layer.instruction or layer.turns:
            print_line(f"── {one_line(layer.name)}", bold=True)
        if layer.instruction:
            _print_text(layer.instruction)
        for turn in layer.turns:
            _print_text(f"{turn.role}: " + "\n".join(filter(None, map(_part_text, turn.parts))))
    for left in sent.left_out:
        print_line(f"left out of {one_line(left.source)}: {left.count} ({one_line(left.why)})")


def _print_text(text: str) -> None:
    """Print a text as it was sent; what would steer the terminal is escaped."""
    from palaver.platforms.terminal.output import escape_controls

    print_line(escape_controls(text))


def _part_text(part: "Part") -> str:
    from palaver.jsonio import dumps
    from palaver.parts import Media, Text, ToolCall, ToolResult

    match part:
        case Text():
            return part.text
        case Media():
            return part.words
        case ToolCall():
            return f"[call {part.name} {dumps(part.args).decode()}]"
        case ToolResult():
            return f"[result of {part.name} {dumps(part.value).decode()}]"
        case _:
            return f"[{type(part).__name__.lower()}]"

"""`tertulia prompt`: what a model was sent in a run, step by step."""

from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, open_beside
from tertulia.cli.output import local_time, one_line, print_json, print_line, resolve_id
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tertulia.parts import Media, Part
    from tertulia.run.journal import SentPrompt
    from tertulia.turns import Role
    from tertulia.wire.media_limits import MediaTaken


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
        import msgspec

        return print_json([{**msgspec.to_builtins(sent), "notes": _notes(sent)} for sent in found])
    if not found:
        print_line(f"run {one_line(run_id)} sent no prompt" if run_id else "no prompt was sent yet")
    for sent in found:
        _print_prompt(sent)
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia prompt 85a6")(prompt)


async def _read(db: "Path | None", given: str | None) -> "Sequence[SentPrompt]":
    async with open_beside(db) as store:
        if given is None:
            return await store.prompts.sent_by()
        if not given:
            raise InvalidValue("the id of a run is not empty")
        return await store.prompts.sent_by(resolve_id(given, await store.prompts.runs(given), "run"))


def _print_prompt(sent: "SentPrompt") -> None:
    about = f"{one_line(sent.model)}, {local_time(sent.at)}, about {_tokens(sent):,} tokens"
    print_line(f"run {one_line(sent.run_id)}, step {sent.step}: {about}", bold=True)
    if sent.tried:
        why = one_line(sent.tried.why, None)
        print_line(f"sent because the one before failed ({one_line(sent.tried.fallback)}): {why}")
    if tools := sent.prompt.tools:
        print_line(f"tools: {', '.join(one_line(tool.name) for tool in tools)}")
    for layer in sent.prompt.layers:
        if layer.instruction or layer.turns:
            print_line(f"── {one_line(layer.name)}", bold=True)
        if layer.instruction:
            _print_text(layer.instruction)
        for turn in layer.turns:
            texts = (_part_text(part, sent.model, turn.role) for part in turn.parts)
            _print_text(f"{turn.role}: " + "\n".join(filter(None, texts)))
    for left in sent.left_out:
        print_line(f"left out of {one_line(left.source)}: {left.count} ({one_line(left.why, None)})")
    for note in _notes(sent):
        print_line(one_line(note, None))


def _tokens(sent: "SentPrompt") -> int:
    """Return about how many tokens it has, with media in the form in which they go to its model."""
    from tertulia.media.sent_forms import media_tokens, sent_as
    from tertulia.tokens import count_media

    taken = _taken(sent.model)
    tokens = sum(layer.tokens for layer in sent.layers)
    for media, role in _media(sent):
        counted, goes = count_media(media), media_tokens(media, taken)
        tokens += (min(counted, goes) if sent_as(media, taken, role) == "text" else goes) - counted
    return tokens


def _notes(sent: "SentPrompt") -> list[str]:
    """Return what the request had that the stored prompt does not show."""
    from tertulia.media.sent_forms import sent_as

    taken, media = _taken(sent.model), _media(sent)
    texts = sum(sent_as(one, taken, role) == "text" for one, role in media)
    blind = f"{sent.model} reads text only: media went in words; it was told so beside those that nothing describes"
    read = f"documents that went as the beginning of their text, which is not shown: {texts}"
    return [*([blind] if media and _reads_text_only(sent.model) else []), *([read] if texts else [])]


def _media(sent: "SentPrompt") -> "list[tuple[Media, Role]]":
    from tertulia.parts import media_in

    turns = (turn for layer in sent.prompt.layers for turn in layer.turns)
    return [(one, turn.role) for turn in turns for part in turn.parts for one in media_in(part)]


def _taken(model: str) -> "MediaTaken":
    from tertulia.wire.media_limits import MediaTaken, limits_of

    return MediaTaken() if _reads_text_only(model) else limits_of(model)


def _reads_text_only(model: str) -> bool:
    """Return whether its client takes no media at all: that of an embedded model we know, and DeepSeek's."""
    from tertulia.models.local.weights import WEIGHTS

    return model in WEIGHTS or model.startswith("deepseek-")


def _print_text(text: str) -> None:
    """Print a text as it was sent; what would steer the terminal is escaped."""
    from tertulia.platforms.terminal.output import escape_controls

    print_line(escape_controls(text))


def _part_text(part: "Part", model: str, role: "Role") -> str:
    from tertulia.jsonio import dumps
    from tertulia.parts import Media, Text, ToolCall, ToolResult
    from tertulia.wire.part_forms import words_unseen

    match part:
        case Text():
            return part.text
        case Media():
            return words_unseen(part) if role == "user" and _reads_text_only(model) else part.words
        case ToolCall():
            return f"[call {part.name} {dumps(part.args).decode()}]"
        case ToolResult():
            return f"[result of {part.name} {dumps(part.value).decode()}]"
        case _:
            return f"[{type(part).__name__.lower()}]"

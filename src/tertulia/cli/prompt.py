"""`tertulia prompt`: what a model was sent in a run, step by step."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, open_beside
from tertulia.cli.output import local_time, one_line, place_label, print_json, print_line, resolve_id, write_json
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tertulia.context.values import RecalledThing
    from tertulia.engine.rebuilt_request import RebuiltRequest
    from tertulia.media.values import StoredFile
    from tertulia.models.calls import Call
    from tertulia.parts import Media, Part
    from tertulia.run.journal import SentPrompt
    from tertulia.store import Store
    from tertulia.turns import Role
    from tertulia.wire.media_limits import MediaTaken


MOST_CALLS = 1_000  # of one run

Shown = tuple["SentPrompt", list[str], "Sequence[RecalledThing]"]


def prompt(
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="[RUN_ID]", help="As in the log; its beginning is enough. Default: the last run."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of prompts, one for each step.")] = False,
    request: Annotated[
        bool,
        typer.Option("--request", help="Print the bodies of its requests; say whether they are as sent."),
    ] = False,
    db: DB = None,
) -> None:
    """Show what the model was sent in a run, step by step, with media in the form in which they went.

    A bot may be running meanwhile.
    """
    import asyncio

    if request:
        return _print_requests(asyncio.run(_read_requests(db, run_id)))
    found = asyncio.run(_read(db, run_id))
    if as_json:
        import msgspec

        return print_json(
            [
                {**msgspec.to_builtins(sent), "media": media, "notes": _notes(sent), "recalled": shown}
                for sent, media, shown in found
            ]
        )
    if not found:
        print_line(f"run {one_line(run_id)} sent no prompt" if run_id else "no prompt was sent yet")
    for sent, media, shown in found:
        _print_prompt(sent, iter(media), shown)
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia prompt 85a6")(prompt)


async def _read(db: str | None, given: str | None) -> "Sequence[Shown]":
    """Return the prompts of a run, each with its media as they went."""
    if given == "":
        raise InvalidValue("the id of a run is not empty")
    async with open_beside(db) as store:
        run = None if given is None else resolve_id(given, await store.prompts.runs(given), "run")
        steps = await store.prompts.sent_by(run)
        shown = await store.runs.recalled(steps[0].run_id) if steps else ()
        return [(sent, await _sent_media(store, sent), shown) for sent in steps]


async def _read_requests(db: str | None, given: str | None) -> "list[tuple[Call, RebuiltRequest]]":
    """Return the calls of a run, each with its request."""
    from tertulia.engine.rebuilt_request import rebuild_request

    async with open_beside(db) as store:
        run = None if given is None else resolve_id(given, await store.prompts.runs(given), "run")
        steps = {sent.step: sent for sent in await store.prompts.sent_by(run)}
        calls = [
            one
            for sent in list(steps.values())[:1]
            for one in await store.usage.calls(run=sent.run_id, most=MOST_CALLS)
            if one.call.step in steps
        ]
        return [(one.call, await rebuild_request(store, steps[one.call.step or 0], one)) for one in calls]


def _print_requests(found: "Sequence[tuple[Call, RebuiltRequest]]") -> None:
    """Print each body on a line, and to standard error whether it is the one that was sent."""
    for call, rebuilt in found:
        digest = f", sha256 {call.request.sha256}" if call.request else ""
        print(f"step {call.step}, try {call.attempt}: {one_line(rebuilt.why, None)}{digest}", file=sys.stderr)
        if rebuilt.body:
            write_json(rebuilt.body)


async def _sent_media(store: "Store", sent: "SentPrompt") -> list[str]:
    """Return what went for each medium of a prompt, in order, by what the model takes and the forms that are stored."""
    taken, media = _taken(sent.model), _media(sent)
    if _reads_text_only(sent.model):
        from tertulia.wire.part_forms import words_unseen

        words = [words_unseen(one) if role == "user" else one.words for one, role in media]
    else:
        words = [one.words for one, _ in media]
    files = await store.media.get({one.sha256 for one, _ in media if one.sha256})
    return [
        f"{said}{await _form(store, one, role, taken, files)}" for said, (one, role) in zip(words, media, strict=True)
    ]


async def _form(
    store: "Store", media: "Media", role: "Role", taken: "MediaTaken", files: "Mapping[str, StoredFile]"
) -> str:
    """Return the file or the text that went for a medium; nothing where words alone did."""
    from tertulia.media.content_types import text_of
    from tertulia.media.forms import candidates, is_useful
    from tertulia.media.sent_forms import DOCUMENT_CHARACTERS, sent_as
    from tertulia.media.values import FileForm

    file = files.get(media.sha256 or "")
    if file is None:
        went = sent_as(media, taken, role)
        gone = ", which is no longer stored" if media.sha256 else ""
        return "" if went == "words" else f" (sent as {'its text' if went == 'text' else f'a {went}'}{gone})"
    for form in candidates(media, file, taken, role):
        made = await store.media.form(file.sha256, form.name)
        if form.how == "itself":
            made = FileForm(file=file)
        if form.how == "text":
            data = None if made else store.media.folder.read(file.sha256, clean=False)
            text = made.text if made else text_of(data or b"", DOCUMENT_CHARACTERS) or ""
            return "\n".join([" (sent as its text)", *(f"> {line}" for line in text.splitlines())]) if text else ""
        if made and made.file and taken.takes(form.mime) and is_useful(made.file, file, form):
            return f" (sent as {form.mime}, {made.file.size:,} bytes)"
    return ""


def _print_prompt(sent: "SentPrompt", media: "Iterator[str]", shown: "Sequence[RecalledThing]") -> None:
    about = f"{one_line(sent.model)}, {local_time(sent.at)}, about {_tokens(sent):,} tokens"
    print_line(f"run {one_line(sent.run_id)}, step {sent.step}: {about}", bold=True)
    if sent.tried:
        why = one_line(sent.tried.why, None)
        print_line(f"sent because the one before failed ({one_line(sent.tried.fallback)}): {why}")
    if tools := sent.prompt.tools:
        print_line(f"tools: {', '.join(one_line(tool.name) for tool in tools)}")
    if prefix := _prefix(sent):
        print_line(prefix)
    for layer, tokens in zip(sent.prompt.layers, sent.size.layers, strict=True):
        if layer.instruction or layer.turns:
            print_line(f"── {one_line(layer.name)}, about {tokens:,} tokens", bold=True)
        if layer.instruction:
            _print_text(layer.instruction)
        for turn in layer.turns:
            texts = (_part_text(part, media) for part in turn.parts)
            _print_text(f"{turn.role}: " + "\n".join(filter(None, texts)))
    for one in shown:
        where = f" in {place_label(one.place)}" if one.place else ""
        score = "" if one.score is None else f", {one.score:.2f}"
        print_line(f"recalled: {one.kind} {one_line(one.id)}{where}{score}: {one_line(one.why, None)}")
    for left in sent.left_out:
        print_line(f"left out of {one_line(left.source)}: {left.count} ({one_line(left.why, None)})")
    for note in _notes(sent):
        print_line(one_line(note, None))


def _tokens(sent: "SentPrompt") -> int:
    """Return about how many tokens it has, with media in the form in which they go to its model."""
    from tertulia.media.sent_forms import media_tokens, sent_as
    from tertulia.tokens import count_media

    taken = _taken(sent.model)
    tokens = sent.size.total
    for media, role in _media(sent):
        counted, goes = count_media(media), media_tokens(media, taken)
        tokens += (min(counted, goes) if sent_as(media, taken, role) == "text" else goes) - counted
    return tokens


def _prefix(sent: "SentPrompt") -> str:
    """Return how much of a prompt begins like the one before it in its place, and what ended that."""
    size = sent.size
    if not size.stable and not size.broken_by:
        return size.cause
    until = f", up to {one_line(size.broken_by)}: {size.cause}" if size.broken_by else ""
    return f"{size.stable:,} of {size.total:,} tokens as in the prompt before{until}"


def _notes(sent: "SentPrompt") -> list[str]:
    """Return what is to be known of the media of a prompt."""
    blind = f"{sent.model} reads text only: media went in words; it was told so beside those that nothing describes"
    return [blind] if _media(sent) and _reads_text_only(sent.model) else []


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


def _part_text(part: "Part", media: "Iterator[str]") -> str:
    from tertulia.jsonio import dumps
    from tertulia.parts import Media, Text, ToolCall, ToolResult, media_in

    shown = [next(media) for _ in media_in(part)]
    match part:
        case Text():
            return part.text
        case Media():
            return shown[0]
        case ToolCall():
            return f"[call {part.name} {dumps(part.args).decode()}]"
        case ToolResult():
            return "\n".join([f"[result of {part.name} {dumps(part.value).decode()}]", *shown])
        case _:
            return f"[{type(part).__name__.lower()}]"

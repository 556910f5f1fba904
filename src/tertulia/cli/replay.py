"""`tertulia replay`: past conversations on a changed bot, side by side with what was said."""

import os
import sys
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tertulia.cli.options import DB, find_place, open_beside
from tertulia.cli.output import (
    ProgressBar,
    count_of,
    local_time,
    one_line,
    print_json,
    print_line,
    read_input,
    truncate,
)
from tertulia.errors import InvalidValue, SpendCapReached, StoreRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from contextlib import AsyncExitStack

    from tertulia.config import ConfigFile
    from tertulia.context.values import Persona
    from tertulia.engine.inspection import Spent
    from tertulia.engine.replay.comparison import Word
    from tertulia.engine.replay.past_runs import PastRun
    from tertulia.engine.replay.replayer import Replayer
    from tertulia.engine.replay.values import Answered, ChangedBot, ReplayedRun, ReplayedTool, RequestCheck
    from tertulia.formats.document import Conversation
    from tertulia.models.base import Model
    from tertulia.store.store import StoreOpener

WIDEST = 160  # columns of both sides together
SIDES = 72  # columns of a terminal from which on they stand beside each other
GAP = " │ "


def _profile_names() -> list[str]:
    from tertulia.profiles import PROFILES

    return list(PROFILES)


class Asked(NamedTuple):
    """What is replayed, and what is changed."""

    what: str
    persona: str | None
    model: str | None
    profile: str | None
    runs: int
    since: datetime | None

    @property
    def is_changed(self) -> bool:
        return any(one is not None for one in (self.persona, self.model, self.profile))


class Found(NamedTuple):
    """What is shown; it grows while a replay goes on."""

    runs: "list[ReplayedRun]"
    checks: "list[RequestCheck]"


def replay(
    what: Annotated[
        str,
        typer.Argument(
            metavar="PLACE|FILE", help="A place of the store, or a conversation as `tertulia render` reads."
        ),
    ],
    persona: Annotated[
        str | None, typer.Option(metavar="TEXT|FILE", help="Another persona, as a text or the path of one.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Another model. Default: the first of the tertulia.toml here.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Another profile: layered, tail, native, block, headers, single or plain.",
            autocompletion=_profile_names,
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="How many of the newest answers.")] = 40,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="Only answers from this day on.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    db: DB = None,
) -> None:
    """Show what a changed bot would have said. Nothing is sent to people, no tool runs, and the log stays as it is.

    A tool is answered with the result that it had; others are unknown to the model. What it costs counts against the
    caps of the tertulia.toml here. Without a change it says whether the requests of that time are rebuilt as they were
    sent, byte for byte. A bot may be running meanwhile.
    """
    import asyncio

    asked, found, why = Asked(what, persona, model, profile, runs, since), Found([], []), None
    try:
        asyncio.run(_replay(asked, db, found))
    except (SpendCapReached, KeyboardInterrupt) as error:
        if not found.runs:
            raise
        why = error
    if as_json:
        from tertulia.engine.replay.values import summed

        print_json({"runs": found.runs, "sum": summed(found.runs)} if asked.is_changed else {"checks": found.checks})
    elif asked.is_changed:
        _print_runs(found.runs)
    else:
        _print_checks(found.checks)
    if why:
        raise why


def add_to(app: typer.Typer) -> None:
    app.command(epilog='Example: tertulia replay Friends --persona "You are a pirate." --runs 10')(replay)


async def _replay(asked: Asked, db: str | None, found: Found) -> None:
    """Add to *found* what is asked for."""
    from contextlib import AsyncExitStack

    from msgspec.structs import replace

    from tertulia.app import open_replayer
    from tertulia.config import find_config, load_config, read_config
    from tertulia.engine.replay.past_runs import runs_to_replay, told_runs

    path = find_config()
    file = load_config(path) if path else read_config("", os.environ)
    talk = _conversation(asked.what)
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(_store(db, is_needed=talk is None))
        replayer = await open_replayer(store, file, os.environ, zone=talk.zone if talk else "")
        if talk:
            pasts = (await told_runs(talk))[-asked.runs :]
            if not pasts:
                raise InvalidValue(f"{asked.what}: the agent answers nothing in it")
            if not asked.is_changed:
                raise InvalidValue(
                    "a file has no requests to check; say what is changed: --persona, --model, --profile"
                )
            bot = await _bot(asked, file, opened, talk.persona)
            bot = replace(bot, persona=bot.persona or talk.persona)
            await opened.enter_async_context(aclosing(replayer))
            return await _show_progress(_told(replayer, pasts, bot), len(pasts), found)
        place = await find_place(store, asked.what)
        since = asked.since and asked.since.astimezone()
        run_ids = await runs_to_replay(store, place, most=asked.runs, since=since)
        if not run_ids:
            raise InvalidValue(f"nothing was answered in {one_line(asked.what)}" + " since then" * bool(since))
        if not asked.is_changed:
            await opened.enter_async_context(aclosing(replayer))
            for run in run_ids:
                found.checks.extend(await replayer.checks(run))
            return None
        bot = await _bot(asked, file, opened, replayer.persona)
        await opened.enter_async_context(aclosing(replayer))  # after the models: it deletes what was uploaded to them
        return await _show_progress(replayer.replay_runs(run_ids, bot), len(run_ids), found)


def _conversation(what: str) -> "Conversation | None":
    """Return the conversation of a file, if *what* is one."""
    if what != "-" and not Path(what).is_file():
        return None
    from tertulia.formats.document import read_conversation

    return read_conversation(read_input(what))


def _store(db: str | None, *, is_needed: bool) -> "StoreOpener":
    """Open the store beside its bot; for a file, whose costs count there too, one in memory where there is none."""
    from tertulia.store import Store

    try:
        return open_beside(db)
    except (StoreRefused, InvalidValue):
        if db or is_needed:
            raise
        return Store.open(":memory:")


async def _bot(asked: Asked, file: "ConfigFile", opened: "AsyncExitStack", now: "Persona") -> "ChangedBot":
    """Return the bot with its changes; *now* is its persona."""
    from msgspec.structs import replace

    from tertulia.app import open_model
    from tertulia.engine.replay.values import ChangedBot
    from tertulia.model_choice import choose_model
    from tertulia.profiles import profile_of

    profile = profile_of(asked.profile, file.config.context) if asked.profile else None
    persona = None if asked.persona is None else replace(now, text=_text(asked.persona))
    if asked.model:
        model = choose_model(asked.model).model
        opened.push_async_callback(model.aclose)
        models: tuple[Model, ...] = (model,)
    elif file.config.models:
        models = tuple([await open_model(name, file, opened, os.environ) for name in file.config.models])
    else:
        raise InvalidValue("which model is to be asked? Say it with --model; no tertulia.toml here names one")
    return ChangedBot(models=models, persona=persona, profile=profile)


def _text(given: str) -> str:
    """Return the text of a file, if there is one of that path, else the text itself."""
    try:
        is_file = Path(given).is_file()
    except OSError:  # too long for a path
        is_file = False
    if not is_file and given.endswith((".md", ".txt")) and not set(given) & set(" \n"):
        raise InvalidValue(f"there is no file {given}; a persona that is no file has more than one word")
    try:
        return Path(given).read_text(encoding="utf-8") if is_file else given
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"cannot read {given}: {error}") from error


async def _told(
    replayer: "Replayer", pasts: "Sequence[PastRun]", bot: "ChangedBot"
) -> "AsyncGenerator[ReplayedRun, None]":
    for past in pasts:
        yield await replayer.replay(past, bot)


async def _show_progress(runs: "AsyncGenerator[ReplayedRun, None]", total: int, found: Found) -> None:
    bar = ProgressBar(sys.stderr)
    bar.show(0, count_of(total, "answers"))
    try:
        async with aclosing(runs):
            async for one in runs:
                found.runs.append(one)
                money = sum(run.after.spent.money for run in found.runs)
                bar.show(len(found.runs) / total, f"{len(found.runs)} of {total}, ${money:.4f}")
    finally:
        bar.end()


def _print_checks(checks: "Sequence[RequestCheck]") -> None:
    for one in checks:
        if not one.is_same:
            print_line(
                f"run {one_line(one.run)}, step {one.step}, try {one.attempt}: {one_line(one.why, None)}", fg="red"
            )
    if not checks:
        print_line("none of these answers was asked for over a wire: there is no request to check")
        return
    same = sum(one.is_same for one in checks)
    print_line(f"{same} of {count_of(len(checks), 'requests')} rebuilt byte for byte", bold=True)


def _print_runs(runs: "Sequence[ReplayedRun]") -> None:
    from tertulia.engine.replay.values import summed

    for one in runs:
        _print_run(one)
    total = summed(runs)
    failed = f", {total.failed} failed" if total.failed else ""
    print_line(f"{total.changed} of {count_of(total.runs, 'answers')} changed{failed}", bold=True)
    then = f"then {_spent(total.before)}; " if total.before.calls else ""
    print_line(f"{then}now {_spent(total.after)}")


def _spent(spent: "Spent") -> str:
    money = f"at least ${spent.money:.4f}" if spent.unpriced and spent.money else f"${spent.money:.4f}"
    price = "price unknown" if spent.unpriced and not spent.money else money
    return f"{count_of(spent.calls, 'requests')}, {spent.input + spent.output:,} tokens, {price}"


def _print_run(run: "ReplayedRun") -> None:
    from tertulia.engine.replay.comparison import compare_words

    print_line(f"{local_time(run.at)}, run {one_line(run.run)}", bold=True)
    for line in run.asked:
        print_line(one_line(line, None))
    if run.after.error:
        print_line(f"not answered: {one_line(run.after.error, None)}", fg="red")
    elif not run.is_changed:
        print_line("the same: " + one_line(" ".join(run.after.texts), None))
    else:
        before, after = compare_words(_said(run.before), _said(run.after))
        _print_sides((_by(run.before, "then"), before, "red"), (_by(run.after, "now"), after, "green"))
    known = {(tool.name, _arguments(tool)) for tool in run.before.tools}
    for tool in run.after.tools:
        if not tool.is_known or (tool.name, _arguments(tool)) not in known:
            print_line(f"{_arguments(tool)}: its result is unknown", fg="yellow")
    print_line("")


def _said(answer: "Answered") -> str:
    said = "\n".join(answer.texts) or f"(nothing{answer.error and ': '}{answer.error})"
    return said + "".join(f"\n[{kind} later]" for kind in answer.tasks)


def _by(answer: "Answered", when: str) -> str:
    return one_line(", ".join(filter(None, (when, answer.model, answer.profile))))


def _arguments(tool: "ReplayedTool") -> str:
    from tertulia.jsonio import dumps

    return one_line(f"{tool.name} {dumps(tool.args).decode()}")


def _print_sides(*sides: "tuple[str, Sequence[Word], str]") -> None:
    """Print two texts beside each other, or below where the terminal is narrow; changed words are coloured."""
    import shutil
    from itertools import zip_longest

    from rich.cells import cell_len

    columns = shutil.get_terminal_size().columns
    is_wide = columns >= SIDES
    width = (min(columns, WIDEST) - len(GAP)) // 2 if is_wide else columns
    blocks = []
    for title, words, colour in sides:
        head = truncate(title, width)
        blocks.append([(head, cell_len(head)), *_wrapped(words, width, colour)])
    if is_wide:
        for (left, size), (right, _) in zip_longest(*blocks, fillvalue=("", 0)):
            print_line(f"{left}{' ' * (width - size)}{GAP}{right}")
        return
    for block in blocks:
        for line, _ in block:
            print_line(line)


def _wrapped(words: "Sequence[Word]", width: int, colour: str) -> "Iterator[tuple[str, int]]":
    """Yield lines of words that fit, each with its columns."""
    from rich.cells import cell_len

    from tertulia.platforms.terminal.output import escape_controls, wants_colour

    styled = wants_colour(sys.stdout)
    line, size = "", 0
    for word in words:
        for piece in _pieces(escape_controls(word.text), width):
            length = cell_len(piece)
            if line and (not word.text or size + 1 + length > width):
                yield line, size
                line, size = "", 0
            shown = typer.style(piece, fg=colour) if styled and word.is_changed and piece else piece
            line, size = (f"{line} {shown}", size + 1 + length) if line else (shown, length)
    yield line, size


def _pieces(word: str, width: int) -> "Iterator[str]":
    """Yield the pieces of a word that fit into a line; an empty word is one."""
    from rich.cells import chop_cells

    yield from chop_cells(word, width) or [""]

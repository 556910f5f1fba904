"""`tertulia why`, `runs` and `transcript`: what was said in a place, why it was answered, and by which runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, PlaceName, find_place, open_beside
from tertulia.cli.output import (
    author_label,
    local_time,
    one_line,
    place_label,
    print_json,
    print_line,
    print_table,
    short_ids,
)
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tertulia.decisions import Decision
    from tertulia.messages import Message
    from tertulia.run.journal import Run

Decided = tuple["Message", tuple["Decision", ...]]

Last = Annotated[int, typer.Option(min=1, metavar="N", help="The newest N.")]


def why(
    place: PlaceName,
    message: Annotated[str | None, typer.Argument(metavar="[MESSAGE]", help="The id of one message.")] = None,
    last: Last = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of messages with decisions and runs.")] = False,
    db: DB = None,
) -> None:
    """Show why messages of a place were answered or not, and how they spoke to the bot.

    Messages that the bot only sees are in it too. Commands, and messages of places that behavior.allowed_places does
    not list, are not stored. A bot may be running meanwhile.
    """
    import asyncio

    found, runs = asyncio.run(_read_decided(db, place, message, last))
    if as_json:
        print_json([_as_json(one, made, runs) for one, made in found])
    elif message is not None:
        _print_reasons(*found[0], runs)
    elif found:
        _print_decided(found, runs)
    else:
        print_line("nobody has written there")


def runs(
    place: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Of one place: its title, id, or platform:id.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed or were stopped.")] = False,
    last: Last = 20,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print a list of runs; seconds are of work, without the time between two processes."
        ),
    ] = False,
    db: DB = None,
) -> None:
    """Show the runs that answered messages: which model, how long, and why they failed.

    `tertulia prompt ID` shows what the model was sent in one. A bot may be running meanwhile.
    """
    import asyncio

    found = asyncio.run(_read_runs(db, place, failed, last))
    if as_json:
        print_json(found)
    elif found:
        _print_runs(found)
    else:
        print_line("no run has failed" if failed else "nothing was answered yet")


def transcript(
    place: PlaceName,
    last: Last = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of messages.")] = False,
    db: DB = None,
) -> None:
    """Show what was said in a place, by people and by the bot. A bot may be running meanwhile.

    Messages that were deleted or forgotten have no text.
    """
    import asyncio

    found = asyncio.run(_read_messages(db, place, last))
    if as_json:
        return print_json(found)
    for message in found:
        _print_message(message)
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia why Friends 1742")(why)
    app.command(epilog="Example: tertulia runs --place telegram:-100123 --failed")(runs)
    app.command(epilog="Example: tertulia transcript Friends --last 1000 > friends.txt")(transcript)


async def _read_decided(
    db: str | None, given: str, message_id: str | None, last: int
) -> "tuple[Sequence[Decided], dict[str, Run]]":
    async with open_beside(db) as store:
        place = await find_place(store, given)
        found = await store.inbox.decided(place, message_id, most=last)
        if not found and message_id is not None:
            own = await store.log.get(place, message_id)
            what = "is the bot's own" if own else "is not stored: it may be a command"
            raise InvalidValue(f"message {one_line(message_id)} of {place_label(place)} {what}")
        ids = list(dict.fromkeys(made.run_id for _, all_made in found for made in all_made if made.run_id))
        return found, {one.run.id: one.run for one in await store.inspection.runs(ids=ids, most=len(ids))}


async def _read_runs(db: str | None, given: str | None, failed: bool, last: int) -> "Sequence[Run]":
    async with open_beside(db) as store:
        place = None if given is None else await find_place(store, given)
        newest = await store.inspection.runs(place=place, status="failed" if failed else None, most=last)
        return [one.run for one in reversed(newest)]


async def _read_messages(db: str | None, given: str, last: int) -> "Sequence[Message]":
    async with open_beside(db) as store:
        place = await find_place(store, given)
        count = await store.log.count(place)
        return await store.log.read(place, count - last, count)


def _as_json(message: "Message", decisions: "Sequence[Decision]", runs: "Mapping[str, Run]") -> dict[str, object]:
    import msgspec

    from tertulia.inspector.words import REASONS

    return {
        "message": message,
        "decisions": [
            {**msgspec.structs.asdict(made), "why": REASONS[made.reason], "run": runs.get(made.run_id or "")}
            for made in decisions
        ],
    }


def _print_decided(found: "Sequence[Decided]", runs: "Mapping[str, Run]") -> None:
    from tertulia.inspector.words import address_words

    names = short_ids(runs)
    rows = [
        (
            one_line(message.id),
            local_time(message.sent_at) if message.sent_at else "",
            one_line(message.author.name, 20),
            one_line(_text(message), 40),
            one_line(made.agent) if made else "",
            address_words(made) if made else "",
            made.reason if made else "imported",
            _run_label(made, runs, names) if made else "",
        )
        for message, all_made in found
        for made in all_made or (None,)
    ]
    red = [
        bool(made and made.reason in ("rate limit", "spend cap"))
        for _, all_made in found
        for made in all_made or (None,)
    ]
    print_table(("message", "sent", "who", "text", "agent", "addressed", "decision", "run"), rows, red=red)


def _print_reasons(message: "Message", decisions: "Sequence[Decision]", runs: "Mapping[str, Run]") -> None:
    from tertulia.inspector.words import IMPORTED, REASONS, address_words

    when = f", {local_time(message.sent_at)}" if message.sent_at else ""
    who = author_label(message.author.name, message.author.id)
    print_line(f"message {one_line(message.id)} by {who}{when}: {one_line(_text(message))}", bold=True)
    if not decisions:
        print_line(IMPORTED)
    asked = {run.id for run in runs.values() if run.horizon}  # with a prompt
    for made in decisions:
        lines = {
            "agent": one_line(made.agent),
            "decision": REASONS[made.reason],
            "when": local_time(made.at) if made.at else "",
            "addressed": address_words(made),
            "run": _run_label(made, runs, {}),
            "sent": f"tertulia prompt {made.run_id}" if made.run_id in asked else "",
        }
        for name, said in lines.items():
            if said:
                print_line(f"{name + ':':10} {said}")


def _run_label(made: "Decision", runs: "Mapping[str, Run]", names: "Mapping[str, str]") -> str:
    """`85a6, failed: the model is overloaded`, `a notice`"""
    if made.run_id is None:
        return ""
    if made.reason in ("rate limit", "spend cap"):
        return "a notice"
    name = names.get(made.run_id) or one_line(made.run_id)
    run = runs.get(made.run_id)
    return f"{name}, {_status(run)}" if run else f"{name}, removed"


def _status(run: "Run") -> str:
    why = f": {one_line(run.why)}" if run.why else ""
    return {"open": "under way", "done": "done", "failed": f"failed{why}"}[run.status]


def _print_runs(found: "Sequence[Run]") -> None:
    names = short_ids(run.id for run in found)
    rows = [
        (
            names[run.id],
            local_time(run.began_at),
            place_label(run.place),
            one_line(run.agent),
            one_line(run.target),
            str(len(run.taken)),
            one_line(run.model) if run.horizon else "",
            f"{run.seconds:.1f} s" if run.ended_at else "",
            "under way" if run.status == "open" else run.status,
            one_line(run.why),
        )
        for run in found
    ]
    head = ("id", "began", "place", "agent", "message", "messages", "model", "took", "status", "why")
    print_table(head, rows, red=[run.status == "failed" for run in found])


def _print_message(message: "Message") -> None:
    """Print a message: its time, author, what it replies to, and its text, whose further lines are indented."""
    from tertulia.platforms.terminal.output import escape_controls

    when = f"{local_time(message.sent_at)}  " if message.sent_at else ""
    quote = message.reply_to
    about = ""
    if quote:
        whom = one_line(quote.author.name) if quote.author else ""
        said = one_line(quote.inline_text)
        about = f" (to {': '.join(filter(None, (whom, said))) or one_line(quote.message_id)})"
    first, *others = escape_controls(_text(message)).splitlines() or [""]
    print_line(f"{when}{one_line(message.author.name) or '?'}{about}: {first}")
    for line in others:
        print_line(f"    {line}")


def _text(message: "Message") -> str:
    from tertulia.parts import Media, Text

    if message.deleted:
        return "(deleted)"
    words = (
        part.text if isinstance(part, Text) else part.words for part in message.parts if isinstance(part, Text | Media)
    )
    edited = "(edited)" if message.edited_at else ""
    doubtful = "(perhaps not received)" if message.doubtful else ""
    return " ".join(filter(None, (*words, edited, doubtful)))

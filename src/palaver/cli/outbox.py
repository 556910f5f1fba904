"""`palaver outbox`."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from palaver.cli.files import DB, beside
from palaver.cli.streams import write_json
from palaver.cli.tables import from_now, json_of, local, one_line, place_words, say, short_ids, show, the_id
from palaver.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from palaver.conversation.journal import Outgoing

HEAD = ("id", "made", "", "place", "status", "attempts", "text", "why")
UNSETTLED = ("waiting", "sending", "doubtful")
WHY = "decided at the command line"

Decision = Literal["waiting", "dropped"]


def outbox(
    db: DB = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was sent or dropped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of replies, or the one decided on.")] = False,
    send: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Send a doubtful or dropped reply again; the beginning of its id does."),
    ] = None,
    drop: Annotated[str | None, typer.Option(metavar="ID", help="Drop a reply that is not sent.")] = None,
) -> None:
    """Show the replies that are not sent, or decide what becomes of one. A bot may be running meanwhile.

    A reply is doubtful when the program stopped while sending it, and the platform cannot say whether it arrived.
    """
    import asyncio

    if send is not None and drop is not None:
        raise InvalidValue("--send and --drop are one decision each; give one of them")
    if send is not None or drop is not None:
        decided = asyncio.run(_decide(db, send or drop or "", "dropped" if send is None else "waiting"))
        return write_json(json_of(decided)) if as_json else _tell(decided)
    known = asyncio.run(_listed(db))
    found = [outgoing for outgoing in known if everything or outgoing.status in UNSETTLED]
    if as_json:
        write_json(json_of(found))
    elif found:
        _show(found, short_ids(outgoing.id for outgoing in known))
    else:
        say("there are no replies" if everything else "everything is sent")
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: palaver outbox --send 3f9a")(outbox)


async def _listed(db: "Path | None") -> "Sequence[Outgoing]":
    async with beside(db) as store:
        return await store.outbox.listed()


async def _decide(db: "Path | None", given: str, status: Decision) -> "Outgoing":
    async with beside(db) as store:
        name = the_id(given, (outgoing.id for outgoing in await store.outbox.listed()), "reply")
        decided = await store.outbox.decide(name, status, why=WHY)
    if decided is None:
        raise InvalidValue(f"there is no reply {one_line(name)} any more")
    return decided


def _tell(decided: "Outgoing") -> None:
    then = (
        "it is sent when the bot has next answered something, or starts"
        if decided.status == "waiting"
        else "dropped; it is not sent"
    )
    said = _text(decided)
    say(f"{one_line(decided.id)} to {place_words(decided.reply.place)}{said and f', {said}'}: {then}")


def _show(found: "Sequence[Outgoing]", names: dict[str, str]) -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    rows = [
        (
            names[outgoing.id],
            local(outgoing.made_at),
            from_now(outgoing.made_at, now),
            place_words(outgoing.reply.place),
            outgoing.status,
            str(outgoing.attempts),
            _text(outgoing),
            one_line(outgoing.why),
        )
        for outgoing in found
    ]
    show(HEAD, rows, [outgoing.status == "doubtful" for outgoing in found])


def _text(outgoing: "Outgoing") -> str:
    edit = "" if outgoing.edits is None else "(edit) "
    part = "" if outgoing.reply_id is None else f"(part {outgoing.part + 1}) "
    return one_line(edit + part + " ".join((outgoing.reply.text, *(media.caption for media in outgoing.reply.media))))

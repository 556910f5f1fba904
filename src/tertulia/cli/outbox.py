"""`tertulia outbox`: the replies that are not sent, and decisions about them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tertulia.cli.options import DB, open_beside
from tertulia.cli.output import (
    local_time,
    one_line,
    place_label,
    print_json,
    print_line,
    print_table,
    relative_time,
    resolve_id,
    short_ids,
)
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem

Attempts = Mapping[str, "Sequence[DeliveryAttempt]"]

HEAD = ("id", "made", "", "place", "agent", "status", "attempts", "last attempt", "text", "why")
UNSETTLED = ("waiting", "sending", "doubtful")
WHY = "decided at the command line"

NewStatus = Literal["waiting", "dropped"]  # by a decision of the operator


def outbox(
    db: DB = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was sent or dropped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of replies, or the one decided on.")] = False,
    send: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Send a doubtful or dropped reply again; the beginning of its id is enough."),
    ] = None,
    drop: Annotated[str | None, typer.Option(metavar="ID", help="Drop a reply that is not sent.")] = None,
) -> None:
    """Show the replies that are not sent, or decide about one. A bot may be running meanwhile.

    A reply is doubtful when the program stopped while sending it, and the platform cannot say whether it arrived.
    """
    import asyncio

    if send is not None and drop is not None:
        raise InvalidValue("--send and --drop are one decision each; give one of them")
    if send is not None or drop is not None:
        decided = asyncio.run(_decide(db, send or drop or "", "dropped" if send is None else "waiting"))
        return print_json(decided) if as_json else _print_decision(decided)
    known, attempts = asyncio.run(_read_outbox(db))
    found = [outgoing for outgoing in known if everything or outgoing.status in UNSETTLED]
    if as_json:
        import msgspec

        print_json([{**msgspec.to_builtins(one), "deliveries": attempts.get(one.id, ())} for one in found])
    elif found:
        _print_replies(found, attempts, short_ids(outgoing.id for outgoing in known))
    else:
        print_line("there are no replies" if everything else "everything is sent")
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia outbox --send 3f9a")(outbox)


async def _read_outbox(db: str | None) -> "tuple[Sequence[OutboxItem], Attempts]":
    async with open_beside(db) as store:
        found = await store.outbox.listed()
        return found, await store.outbox.attempts(*(one.id for one in found))


async def _decide(db: str | None, given: str, status: NewStatus) -> "OutboxItem":
    async with open_beside(db) as store:
        name = resolve_id(given, (outgoing.id for outgoing in await store.outbox.listed()), "reply")
        decided = await store.outbox.decide(name, status, why=WHY)
    if decided is None:
        raise InvalidValue(f"there is no reply {one_line(name)} any more")
    return decided


def _print_decision(decided: "OutboxItem") -> None:
    then = (
        "it is sent when the bot has next answered something, or starts"
        if decided.status == "waiting"
        else "dropped; it is not sent"
    )
    said = _text(decided)
    print_line(f"{one_line(decided.id)} to {place_label(decided.reply.place)}{said and f', {said}'}: {then}")


def _last_attempt(attempts: "Sequence[DeliveryAttempt]") -> str:
    """`12:31, 0.4 s, doubtful`"""
    if not attempts:
        return ""
    last = attempts[-1]
    took = f", {(last.ended_at - last.begun_at).total_seconds():.1f} s" if last.ended_at else ", under way or cut off"
    return f"{local_time(last.begun_at)}{took}{f', {last.outcome}' if last.outcome else ''}"


def _print_replies(replies: "Sequence[OutboxItem]", attempts: "Attempts", names: dict[str, str]) -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    rows = [
        (
            names[outgoing.id],
            local_time(outgoing.made_at),
            relative_time(outgoing.made_at, now),
            place_label(outgoing.reply.place),
            one_line(outgoing.agent),
            outgoing.status,
            str(outgoing.attempts),
            _last_attempt(attempts.get(outgoing.id, ())),
            _text(outgoing),
            one_line(outgoing.why),
        )
        for outgoing in replies
    ]
    print_table(HEAD, rows, red=[outgoing.status == "doubtful" for outgoing in replies])


def _text(outgoing: "OutboxItem") -> str:
    edit = "" if outgoing.edits is None else "(edit) "
    part = "" if outgoing.reply_id is None else f"(part {outgoing.part + 1}) "
    return one_line(edit + part + " ".join((outgoing.reply.text, *(media.caption for media in outgoing.reply.media))))

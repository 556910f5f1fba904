"""`tertulia calls`: the requests to services, with what became of them and what they have cost."""

from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, find_place, open_beside
from tertulia.cli.output import local_time, one_line, place_label, print_json, print_line, print_table, resolve_id
from tertulia.cli.places import Last

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tertulia.engine.limits import StoredCall
    from tertulia.models.calls import Call

HEAD = ("began", "for", "place", "step", "try", "model", "waited", "first", "took", "tokens", "cost", "status", "why")


def calls(
    run: Annotated[str | None, typer.Option(metavar="RUN_ID", help="Of one run: the beginning of its id.")] = None,
    place: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Of one place: its title, id, or platform:id.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed or were stopped.")] = False,
    last: Last = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of calls.")] = False,
    db: DB = None,
) -> None:
    """Show the requests to services: what for, which model, how long, what they cost, and why they failed.

    Each attempt is one. A bot may be running meanwhile.
    """
    import asyncio

    found = asyncio.run(_read(db, run, place, failed, last))
    if as_json:
        return print_json(found)
    if not found:
        return print_line("no call has failed" if failed else "no service was called yet")
    return print_table(HEAD, [_row(one) for one in found], red=[one.call.status == "failed" for one in found])


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia calls --failed")(calls)


async def _read(db: str | None, run: str | None, place: str | None, failed: bool, last: int) -> "Sequence[StoredCall]":
    async with open_beside(db) as store:
        run_id = None if run is None else resolve_id(run, await store.prompts.runs(run), "run")
        where = None if place is None else await find_place(store, place)
        return await store.usage.calls(run=run_id, place=where, failed=failed, most=last)


def _row(stored: "StoredCall") -> tuple[str, ...]:
    call, used = stored.call, stored.call.usage
    return (
        local_time(call.begun_at),
        call.purpose,
        place_label(stored.place) if stored.place else "",
        "" if call.step is None else str(call.step),
        str(call.attempt),
        one_line(call.answered_by or call.model),
        f"{call.waited:.1f} s" if call.waited else "",
        f"{(call.first_at - call.begun_at).total_seconds():.1f} s" if call.first_at else "",
        f"{(call.ended_at - call.begun_at).total_seconds():.1f} s",
        f"{used.input:,} + {used.output + used.thought:,}" if used.total else "",
        _cost(call),
        call.status,
        one_line(f"{call.error}: {call.why}" if call.error else call.why),
    )


def _cost(call: "Call") -> str:
    if not call.usage.total:
        return ""
    return f"${call.money:.4f}" if call.price else "?"

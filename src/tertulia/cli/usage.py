"""`tertulia usage`: tokens and money by day, place, person, agent and model."""

from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.options import DB, open_beside
from tertulia.cli.output import author_label, one_line, place_label, print_json, print_line, print_table
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from tertulia.engine.limits import UsageRow
    from tertulia.models.prices import Prices


class By(StrEnum):
    """What usage is summed up by."""

    DAY = "day"
    PLACE = "place"
    PERSON = "person"
    AGENT = "agent"
    MODEL = "model"


DEFAULT_DAYS = 30
NUMBERS = ("calls", "input", "cached", "output", "thought", "money", "unpriced_tokens")
HEAD = ("calls", "tokens in", "cached", "tokens out", "cost")


def usage(
    by: Annotated[
        list[By] | None,
        typer.Option("--by", metavar="day|place|person|agent|model", help="A column; may be repeated. [day, model]"),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, metavar="N", help=f"The last N days in UTC. [{DEFAULT_DAYS}]")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="From this day in UTC on.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    db: DB = None,
) -> None:
    """Show tokens and money by day and model, or by place or person. A bot may be running meanwhile.

    The cost is in US dollars, by the price at the time of a call. People who were forgotten stay counted, without a
    name.
    """
    import asyncio

    if days is not None and since is not None:
        raise InvalidValue("say --days or --since, not both")
    start = since.date() if since else datetime.now(UTC).date() - timedelta(days=(days or DEFAULT_DAYS) - 1)
    columns: tuple[By, ...] = tuple(dict.fromkeys(by or (By.DAY, By.MODEL)))
    found, prices = asyncio.run(_read(db, start)), _prices()
    rows, total = summed_up(found, columns, prices), summed_up(found, (), prices)[:1]
    if as_json:
        print_json({"since": start, "by": columns, "rows": rows, "total": total[0] if total else _zero()})
    elif rows:
        _print_rows(columns, [*rows, *total])
        _print_unpriced(found, prices)
    else:
        print_line(f"no model was called since {start}")


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia usage --by place --days 7")(usage)


async def _read(db: str | None, since: date) -> "Sequence[UsageRow]":
    async with open_beside(db) as store:
        return await store.usage.listed(since)


def _prices() -> "Prices":
    from tertulia.config import find_config, load_config
    from tertulia.models.prices import PRICES

    config = find_config()
    return load_config(config).config.behavior.prices if config else PRICES


def summed_up(found: "Iterable[UsageRow]", by: Sequence[By], prices: "Prices") -> list[dict[str, Any]]:
    """Sum up usage by these columns: days in order, and what costs most first."""
    sums: dict[Hashable, dict[str, Any]] = {}
    for row in found:
        keys = {
            By.DAY: row.day,
            By.PLACE: row.place and row.place.key,
            By.PERSON: row.person and (row.person.platform, row.person.id),
            By.AGENT: row.agent,
            By.MODEL: row.model,
        }
        one = sums.setdefault(
            tuple(keys[column] for column in by), {**{str(c): getattr(row, c) for c in by}, **_zero()}
        )
        for name in NUMBERS[:-1]:
            one[name] += getattr(row, name)
        if not _is_priced(row, prices):
            one["unpriced_tokens"] += _tokens(row)
    ordered = sorted(sums.values(), key=lambda one: (-one["money"], -one["input"] - one["output"]))
    return sorted(ordered, key=lambda one: one["day"]) if By.DAY in by else ordered


def _zero() -> dict[str, Any]:
    return dict.fromkeys(NUMBERS, 0)


def _tokens(row: "UsageRow") -> int:
    return row.input + row.output + row.thought


def _is_priced(row: "UsageRow", prices: "Prices") -> bool:
    """Return whether the price was known: calls that cost nothing are those of a free model, or have no tokens."""
    from tertulia.models.prices import price_of

    price = price_of(row.model, prices)
    return row.money > 0 or not _tokens(row) or (price is not None and not price.input and not price.output)


def _print_rows(by: Sequence[By], rows: Sequence[dict[str, Any]]) -> None:
    """Print rows, the last of which is the total."""
    labels = [[_label(column, row[column]) for column in by] for row in rows[:-1]]
    labels.append(["total", *[""] * (len(by) - 1)])
    cells = [
        (
            f"{row['calls']:,}",
            f"{row['input']:,}",
            f"{row['cached']:,}",
            f"{row['output'] + row['thought']:,}",
            _cost(row),
        )
        for row in rows
    ]
    print_table((*by, *HEAD), [(*label, *numbers) for label, numbers in zip(labels, cells, strict=True)])


def _label(column: By, value: Any) -> str:
    if column is By.PLACE:
        return place_label(value) if value else "(removed)"
    if column is By.PERSON:
        return author_label(value.name, value.id) if value else "(nobody, or forgotten)"
    if column is By.AGENT:
        return one_line(value) or "(default)"
    return one_line(str(value))


def _cost(row: dict[str, Any]) -> str:
    if not row["unpriced_tokens"]:
        return f"${row['money']:.4f}"
    return f"${row['money']:.4f} + ?" if row["money"] else "?"


def _print_unpriced(found: "Iterable[UsageRow]", prices: "Prices") -> None:
    models = sorted({row.model for row in found if not _is_priced(row, prices)})
    if models:
        names = ", ".join(map(one_line, models))
        print_line(f"?: no price was known for {names}; set it for later calls: behavior.prices in tertulia.toml")

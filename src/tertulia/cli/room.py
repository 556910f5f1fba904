"""`tertulia room`: rooms of the page, which people enter by a link."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, open_beside
from tertulia.cli.output import local_time, one_line, print_json, print_line, print_table, resolve_id
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tertulia.engine.rooms import Room
    from tertulia.platforms.web.room_links import RoomTerms

HEAD = ("id", "title", "people", "ends", "cap a day", "state")


def new(
    title: Annotated[str, typer.Argument(help="What people see above it.")] = "",
    people: Annotated[int, typer.Option(help="How many may join; a room of one is a direct chat.")] = 10,
    days: Annotated[float, typer.Option(help="After how many days it ends.")] = 7.0,
    tokens: Annotated[int, typer.Option(help="What it may spend a day, in tokens; 0: no cap.")] = 500_000,
    money: Annotated[float, typer.Option(help="The same in dollars, for models with a price; 0: no cap.")] = 0.0,
    db: DB = None,
) -> None:
    """Open a room and print its link, which is shown once. The bot that serves the page may be running.

    Who has the link joins under a name of their choice, until the room is full, has ended or is revoked.
    """
    import asyncio

    import msgspec

    from tertulia.platforms.web.room_links import ELSEWHERE, RoomTerms

    given = {"title": title, "people": people, "days": days, "tokens": tokens or None, "money": money or None}
    try:
        terms = msgspec.convert(given, RoomTerms)
    except msgspec.ValidationError as error:
        raise InvalidValue(f"a room cannot be opened so: {error}") from error
    link, is_served = asyncio.run(_open(db, terms))
    print_line(link)
    if not is_served:
        print(f"tertulia: {ELSEWHERE}", file=sys.stderr)


def list_rooms(
    db: DB = None, as_json: Annotated[bool, typer.Option("--json", help="Print a list of rooms.")] = False
) -> None:
    """Show the rooms, the newest first. Their links are not stored."""
    import asyncio

    found = asyncio.run(_read(db))
    if as_json:
        print_json(found)
    elif found:
        _print_rooms(found)
    else:
        print_line("there are no rooms; `tertulia room new` opens one")


def revoke(room: Annotated[str, typer.Argument(metavar="ROOM", help="Its id.")], db: DB = None) -> None:
    """End a room: nobody enters, reads or writes any more. What was said there stays stored."""
    import asyncio

    name, ended = asyncio.run(_revoke(db, room))
    print_line(f"{one_line(name)} {'has ended' if ended else 'had ended already'}")


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Rooms of the page: people enter them by a link.", no_args_is_help=True)
    group.command(epilog='Example: tertulia room new "Dinner plans" --people 4 --days 2')(new)
    group.command("list", epilog="Example: tertulia room list")(list_rooms)
    group.command(epilog="Example: tertulia room revoke 3f9a0c21d4")(revoke)
    app.add_typer(group, name="room")


async def _open(db: str | None, terms: "RoomTerms") -> tuple[str, bool]:
    """Open a room; return its link, and whether the config has the bot serve the page."""
    from datetime import UTC, datetime

    from tertulia.config import find_config, load_config, read_config
    from tertulia.platforms.web.page_address import page_address
    from tertulia.platforms.web.room_links import link_of, open_room

    found = find_config()
    file = load_config(found) if found else read_config("", os.environ)
    with file.naming("web"):
        address = page_address(file.config.web)
    async with open_beside(db) as store:
        room, key = await open_room(store.rooms, terms, at=datetime.now(UTC))
    return link_of(address.url, room.id, key), file.web is not None


async def _read(db: str | None) -> "Sequence[Room]":
    async with open_beside(db) as store:
        return await store.rooms.listed()


async def _revoke(db: str | None, given: str) -> tuple[str, bool]:
    from datetime import UTC, datetime

    async with open_beside(db) as store:
        name = resolve_id(given, (room.id for room in await store.rooms.listed()), "room")
        return name, await store.rooms.revoke(name, at=datetime.now(UTC))


def _print_rooms(rooms: "Sequence[Room]") -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    rows = [
        (
            room.id,
            one_line(room.title, 40),
            f"{room.joined} of {room.people}",
            local_time(room.ends_at),
            _cap(room),
            "revoked" if room.revoked_at else "open" if room.is_open(now) else "ended",
        )
        for room in rooms
    ]
    print_table(HEAD, rows)


def _cap(room: "Room") -> str:
    """`500,000 tokens, $2`"""
    tokens = "" if room.cap.tokens is None else f"{room.cap.tokens:,} tokens"
    money = "" if room.cap.money is None else f"${room.cap.money:g}"
    return ", ".join(filter(None, (tokens, money))) or "none"

"""`tertulia web`: the page of a store, beside the bot that has it or without one."""

import os
import sys
from typing import Annotated

import typer

from tertulia.cli.options import existing_store, open_beside
from tertulia.cli.output import print_line


def web(
    store: Annotated[
        str | None, typer.Argument(metavar="STORE", help="A file, or a URL of PostgreSQL. Default: as --db elsewhere.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Where it listens. Default: web.port of the tertulia.toml.")] = None,
) -> None:
    """Serve the page of a store until Ctrl-C: what a bot did, why, and what it cost. A bot may be running meanwhile.

    The table [web] of the tertulia.toml here says where. What changes something is an order that the bot carries out.
    """
    import asyncio

    asyncio.run(_serve(store, port))


async def _serve(path: str | None, port: int | None) -> None:
    from datetime import UTC, datetime

    from msgspec.structs import replace

    from tertulia.app import known_agents, replays_of
    from tertulia.config import cast_of, find_config, load_config, read_config
    from tertulia.engine.platform_runner import stop_signals
    from tertulia.platforms.web.page_server import serve_page
    from tertulia.platforms.web.site import Site

    found = find_config()
    file = load_config(found) if found else read_config("", os.environ)
    config = file.config.web if port is None else replace(file.config.web, port=port)
    path = existing_store(path, option="STORE")
    async with stop_signals() as stopped, open_beside(path) as store:
        site = Site(
            store=store,
            now=lambda: datetime.now(UTC),
            daily=file.config.limits.total,
            agent=cast_of(file).default.name,
            configured=lambda: known_agents(file, store),
            language=file.config.behavior.language,
            replays=replays_of(store, file),
        )
        async with serve_page(site, config, store=path, folder=file.folder) as page:
            for line in page.lines:
                print_line(line)
            sys.stdout.flush()
            await stopped.wait()


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia web tertulia.db")(web)

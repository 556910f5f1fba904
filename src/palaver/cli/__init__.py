"""The command line: a module for each group of commands, and what happens when one goes wrong."""

import os
import sys
from typing import Annotated

import typer

from palaver.cli import chat, db, importing, index, lint, memory, model, outbox, render, sim, tasks
from palaver.cli.streams import abandon_streams, open_streams
from palaver.errors import InvalidValue, PalaverError

app = typer.Typer(
    name="palaver",
    help="A conversation engine for chat agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: it answers three times as fast
    pretty_exceptions_enable=False,
)
for group in (chat, db, importing, index, lint, memory, model, outbox, render, sim, tasks):
    group.add_to(app)


def main() -> None:
    """Run the command; what goes wrong is one line that says what to do, unless a traceback is asked for."""
    try:
        _run()
    except BrokenPipeError:  # the reader has left; so do we, quietly
        abandon_streams()
        sys.exit(1)


def _run() -> None:
    try:
        open_streams()
        _log()
        app()
    except PalaverError as error:
        _leave(str(error), status=2)
    except BrokenPipeError:
        raise
    except OSError as error:
        _leave(error.strerror or str(error), status=1)
    finally:
        sys.stdout.flush()


def _log() -> None:
    """Let the log be seen where LOGLEVEL asks for it."""
    if level := os.environ.get("LOGLEVEL", "").strip().upper():
        import logging

        if level not in logging.getLevelNamesMapping():
            raise InvalidValue(f"LOGLEVEL is DEBUG, INFO, WARNING or ERROR, not {os.environ['LOGLEVEL']!r}")
        logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
        logging.getLogger("palaver").setLevel(level)


def _leave(why: str, *, status: int) -> None:
    if os.environ.get("PALAVER_TRACEBACK"):
        import traceback

        traceback.print_exc()
    print(f"palaver: {why}", file=sys.stderr)
    sys.exit(status)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"palaver {version('palaver')}")
        raise typer.Exit


@app.callback(epilog="Example: palaver chat. LOGLEVEL=DEBUG shows the log, PALAVER_TRACEBACK=1 an error's traceback.")
def palaver(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass

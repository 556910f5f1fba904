"""The command line: a module for each command or group of commands, and how errors end them."""

import os
import sys
from typing import Annotated

import typer

from tertulia.cli import (
    bot,
    calls,
    chat,
    db,
    demo,
    import_command,
    index,
    inspect,
    memory,
    model,
    outbox,
    places,
    prompt,
    replay,
    request,
    room,
    sim,
    tasks,
    usage,
    web,
)
from tertulia.cli.options import log_level
from tertulia.cli.output import abandon_streams, open_streams
from tertulia.errors import TertuliaError

app = typer.Typer(
    name="tertulia",
    help="A conversation engine for chat agents.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: it answers three times as fast
    pretty_exceptions_enable=False,
)
for module in (
    bot,
    calls,
    chat,
    db,
    demo,
    import_command,
    index,
    inspect,
    memory,
    model,
    outbox,
    places,
    prompt,
    replay,
    request,
    room,
    sim,
    tasks,
    usage,
    web,
):
    module.add_to(app)
app.registered_commands.sort(key=lambda command: str(command.name or getattr(command.callback, "__name__", "")))
app.registered_groups.sort(key=lambda group: str(group.name))


def main() -> None:
    """Run the command; an error is one line that says what to do, with a traceback if that is asked for."""
    try:
        _run()
    except BrokenPipeError:  # whoever read the output has stopped reading
        abandon_streams()
        sys.exit(1)


def _run() -> None:
    try:
        open_streams()
        _configure_log()
        app(prog_name="tertulia")
    except TertuliaError as error:
        _exit(str(error), status=2)
    except BrokenPipeError:
        raise
    except OSError as error:
        named = f"{error.filename}: " if isinstance(error.filename, str) else ""
        _exit(f"{named}{error.strerror or error}", status=1)
    finally:
        sys.stdout.flush()


def _configure_log() -> None:
    """Print the log to standard error where LOGLEVEL asks for it."""
    if level := log_level(os.environ):
        import logging

        logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
        logging.getLogger("tertulia").setLevel(level)


def _exit(why: str, *, status: int) -> None:
    from tertulia.platforms.terminal.output import escape_controls

    if os.environ.get("TERTULIA_TRACEBACK"):
        import traceback

        traceback.print_exc()
    print(f"tertulia: {escape_controls(why)}", file=sys.stderr)
    sys.exit(status)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"tertulia {version('tertulia')}")
        raise typer.Exit


@app.callback(epilog="Example: tertulia chat. LOGLEVEL=DEBUG shows the log, TERTULIA_TRACEBACK=1 an error's traceback.")
def tertulia(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass

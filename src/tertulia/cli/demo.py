"""`tertulia demo`: a group, a bot that is killed and resumes, without a model."""

import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.output import INTERRUPTED, print_line
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from tertulia.demo.screen import Screen


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Without pauses for reading; the default in a pipe.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Watch a bot for thirty seconds: memory, a reminder, a kill -9 in mid-answer. No model, no key, nothing stored."""
    import asyncio

    from tertulia.demo.timeline import DemoFailed

    if sys.platform == "win32":
        raise InvalidValue("the demo needs pipes and signals that Windows does not have; it runs in WSL")
    screen = _screen(as_json)
    try:
        held = asyncio.run(_play(screen, is_fast=fast or not sys.stdout.isatty()))
    except DemoFailed as error:
        screen.close()
        print(f"tertulia: the demo failed: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(INTERRUPTED) from None
    finally:
        screen.close()
    screen.end(held)
    raise typer.Exit(0 if held else 1)


async def _play(screen: "Screen", *, is_fast: bool) -> bool:
    """Play the demo. A closed terminal and SIGTERM end it as Ctrl-C does, so that nothing is left behind."""
    import asyncio

    from tertulia.demo.story import FAST, Tempo, play

    playing = asyncio.ensure_future(play(screen.show, FAST if is_fast else Tempo()))
    for ending in (signal.SIGTERM, signal.SIGHUP):
        with suppress(ValueError, NotImplementedError, RuntimeError):  # not the main thread, or another loop
            asyncio.get_running_loop().add_signal_handler(ending, playing.cancel)
    return await playing


def _screen(as_json: bool) -> "Screen":
    from rich.console import Console

    from tertulia.demo.screen import JsonScreen, PlainScreen, TerminalScreen

    if as_json:
        return JsonScreen(_print_now)
    console = Console(highlight=False)
    is_screen = console.is_terminal and not console.is_dumb_terminal
    if is_screen and console.encoding.lower().startswith("utf"):
        return TerminalScreen(console)
    return PlainScreen(_print_now)


def _print_now(line: str) -> None:
    """Print a line that whoever reads a pipe sees at once."""
    print_line(line)
    sys.stdout.flush()


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia demo --fast")(demo)

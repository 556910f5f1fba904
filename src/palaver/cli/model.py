"""`palaver model`: the models that run here."""

import sys
from typing import Annotated, TextIO

import typer

models = typer.Typer(
    help="The models that run here, without a key or a service.",
    epilog="Example: palaver model get qwen",
    no_args_is_help=True,
    rich_markup_mode=None,
)

INTERRUPTED = 130  # as shells have it


@models.command("get", epilog="Example: palaver model get qwen")
def get(
    name: Annotated[str, typer.Argument(help="smollm2 (94 MB) or qwen (1.1 GB, chooses tools well).")],
) -> None:
    """Fetch a model's weights. What came before an interruption is not fetched again."""
    from palaver.models.local import fetch, weights

    if weights.find(name) is None:
        print(f"fetching {name}: {weights.weights_named(name).size >> 20} MB", file=sys.stderr, flush=True)
    try:
        path = fetch.get(name, progress=Progress(sys.stderr))
    except KeyboardInterrupt:
        start = "\n" if sys.stderr.isatty() else ""  # below the bar
        print(f"{start}palaver: interrupted; the same command fetches the rest", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(f"{name} is at {path}")


class Progress:
    """How much is here: a bar for people, a line every tenth of the way elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._tenths = 0

    def __call__(self, done: int, total: int) -> None:
        if self._out.isatty():
            filled = round(30 * done / total)
            bar = f"[{'█' * filled}{'·' * (30 - filled)}] {done >> 20} of {total >> 20} MB"
            print(f"\r{bar}", end="\n" if done == total else "", file=self._out, flush=True)
            return
        tenths = 10 * done // total
        if tenths > self._tenths:
            self._tenths = tenths
            print(f"{tenths * 10} %: {done >> 20} of {total >> 20} MB", file=self._out, flush=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(models, name="model")

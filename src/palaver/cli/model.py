"""`palaver model`: the models that run in this process."""

import sys
from typing import Annotated

import typer

from palaver.cli.streams import INTERRUPTED, ProgressBar

models = typer.Typer(
    help="The models that run here, without a key or a service.",
    epilog="Example: palaver model get qwen",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@models.command("get", epilog="Example: palaver model get qwen")
def get(
    name: Annotated[str, typer.Argument(help="smollm2 (94 MB) or qwen (1.1 GB, chooses tools well).")],
) -> None:
    """Fetch a model's weights. What came before an interruption is not fetched again."""
    from palaver.models.local import weights

    if weights.find_weights(name) is None:
        print(f"fetching {name}: {weights.weights_named(name).size >> 20} MB", file=sys.stderr, flush=True)
    bar = ProgressBar(sys.stderr)
    try:
        path = weights.fetch_weights(name, progress=bar.show_bytes)
    except KeyboardInterrupt:
        bar.note("interrupted; the same command fetches the rest")
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(f"{name} is at {path}")


def add_to(app: typer.Typer) -> None:
    app.add_typer(models, name="model")

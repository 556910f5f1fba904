"""`palaver chat`: a conversation in the terminal; `palaver model`: the models that run in this process."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.options import default_db
from palaver.cli.output import INTERRUPTED, ProgressBar
from palaver.errors import StoreRefused


def chat(
    model: Annotated[
        str | None,
        typer.Option(help="gemini-…, openai:NAME, smollm2, qwen or a .gguf file. Default: the embedded model."),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Where the model is served.", metavar="URL")] = None,
    persona: Annotated[Path | None, typer.Option(help="A text that says who the model is.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line; messages are lines too.")] = False,
    weather: Annotated[bool, typer.Option("--weather", help="Let the model ask open-meteo.com.")] = False,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="PATH",
            help="The file of the conversation. :memory: stores nothing. Default: PALAVER_DB, or your data folder.",
        ),
    ] = None,
) -> None:
    """Talk with a model, and go on where you left off. /help shows what you can do."""
    from palaver.platforms.terminal import run

    path = db or _default_db_with_folder()
    raise typer.Exit(run(model, base_url=base_url, persona=persona, as_json=as_json, weather=weather, db=path))


def _default_db_with_folder() -> Path:
    """Return the default path of the store; create its folder."""
    path = default_db()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreRefused(f"the store {path}: {error.strerror}; --db names another") from error
    return path


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
    app.command(epilog="Example: palaver chat --model gemini-3.8-flash")(chat)
    app.add_typer(models, name="model")

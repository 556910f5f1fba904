"""`palaver chat`: a conversation in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.options import default_db, model_names
from palaver.errors import StoreRefused


def chat(
    model: Annotated[
        str | None,
        typer.Option(
            help="gemini-…, openai:NAME, smollm2, qwen or a .gguf file. Default: the embedded model.",
            autocompletion=model_names,
        ),
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


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: palaver chat --model gemini-3.8-flash")(chat)

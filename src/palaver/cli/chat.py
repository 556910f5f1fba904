"""`palaver chat`."""

from pathlib import Path
from typing import Annotated

import typer


def chat(
    model: Annotated[
        str | None,
        typer.Option(help="gemini-…, openai:NAME, smollm2, qwen or a .gguf file. Default: the embedded model."),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Where the model is served.", metavar="URL")] = None,
    persona: Annotated[Path | None, typer.Option(help="A text that says who the model is.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line; messages are lines too.")] = False,
    weather: Annotated[bool, typer.Option("--weather", help="Let the model ask open-meteo.com.")] = False,
) -> None:
    """Talk with a model. /help shows what you can do."""
    from palaver.platforms.terminal import run

    raise typer.Exit(run(model, base_url=base_url, persona=persona, as_json=as_json, weather=weather))


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: palaver chat --model gemini-3.8-flash")(chat)

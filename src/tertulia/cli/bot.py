"""`tertulia init`, `tertulia check` and `tertulia run`: a bot from one file."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from tertulia.bot_check import Finding

FILE = "tertulia.toml"
PERSONA = "persona.md"
PERSONA_TEXT = "You are a friendly member of this chat. Answer briefly, in the language of whoever asks.\n"

ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="PATH", help="Default: TERTULIA_CONFIG, or tertulia.toml in this folder."),
]


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write it.")] = Path(),
) -> None:
    """Write a tertulia.toml with every key and its default, and a persona to fill in."""
    from importlib.resources import files

    from tertulia.config import local_zone

    if (folder / FILE).exists():
        raise InvalidValue(f"{folder / FILE} exists already; it is not replaced")
    template = files("tertulia.cli").joinpath("template.toml").read_text(encoding="utf-8")
    (model, pasted), zone = _suggest_model(), local_zone(os.environ)
    text = _for_model(model, template).replace("{model}", model).replace("{zone}", zone)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(text, encoding="utf-8")
        if not (folder / PERSONA).exists():
            (folder / PERSONA).write_text(PERSONA_TEXT, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"{error.filename or folder} could not be written: {error.strerror}") from error
    print(f"wrote {folder / FILE} and {folder / PERSONA}")
    if pasted:
        print(f"The key that you pasted is for tertulia chat alone: set {pasted} for the bot")
    if not os.environ.get("TERTULIA_TELEGRAM_TOKEN"):
        print("Set TERTULIA_TELEGRAM_TOKEN, or name a platform in tertulia.toml.")
    entered = "" if folder == Path() else f"cd {folder}, "
    print(f"Say who the bot is in persona.md, then: {entered}tertulia check, tertulia run")


def _suggest_model() -> tuple[str, str]:
    """Return the model that `tertulia chat` would find here, and the variable of its key if that was pasted there."""
    from tertulia.model_choice import SMALL, program_command
    from tertulia.platforms.terminal.found_model import find_model, load_choice, model_for_key

    choice = load_choice()
    found = find_model({**choice.keys, **os.environ}, choice, program=program_command())
    model = found.name if found else SMALL
    pasted = [name for name in choice.keys if model_for_key(name) == model and not os.environ.get(name)]
    return model, next(iter(pasted), "")


def _for_model(model: str, template: str) -> str:
    """Return the template with short prompts and no tools for a model that runs here: it is slow, and calls in vain."""
    from tertulia.models import provider_of

    if provider_of(model) == "local":
        template = template.replace('# profile = "layered"', 'profile = "plain"')
        template = template.replace('# tools = ["calculator", "clock", "reminders", "memory"]', "tools = []")
    return template


def check(
    config: ConfigPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each line.")] = False,
) -> None:
    """Say whether the key, the model, the store, the zone and the platforms of a bot work. The model is asked once."""
    import asyncio

    from tertulia.bot_check import check_bot

    async def print_findings() -> bool:
        works = True
        async for finding in check_bot(_config_path(config), os.environ):
            works &= finding.ok
            _print_finding(finding, as_json=as_json)
        return works

    if not asyncio.run(print_findings()):
        raise typer.Exit(1)


def run(config: ConfigPath = None) -> None:
    """Run the bot of a tertulia.toml until Ctrl-C or SIGTERM. Changes of persona and limits are taken over at once."""
    from tertulia.app import run_bot
    from tertulia.bot_process import run_process
    from tertulia.cli.options import log_level
    from tertulia.logs import configure_logs

    configure_logs(log_level(os.environ) or "INFO")
    raise typer.Exit(run_process(run_bot(_config_path(config))))


def _config_path(given: Path | None) -> Path:
    from tertulia.config import find_config

    return given or find_config() or Path(FILE)


def _print_finding(finding: "Finding", *, as_json: bool) -> None:
    if as_json:
        from tertulia.jsonio import dumps

        print(dumps({"what": finding.what, "ok": finding.ok, "line": finding.line}).decode())
        return
    from tertulia.platforms.terminal.output import wants_colour

    colour, plain = ("\x1b[32m" if finding.ok else "\x1b[31m", "\x1b[0m") if wants_colour(sys.stdout) else ("", "")
    print(f"{colour}{'✓' if finding.ok else '✗'}{plain} {finding.what}: {finding.line}", flush=True)


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia init mybot")(init)
    app.command(epilog="Example: tertulia check -c mybot/tertulia.toml")(check)
    app.command(epilog="Example: tertulia run")(run)

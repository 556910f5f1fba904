"""`tertulia chat`: a conversation in the terminal."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import default_db, model_names
from tertulia.errors import InvalidValue, StoreRefused
from tertulia.store_url import is_url

if TYPE_CHECKING:
    from tertulia.config import ConfigFile
    from tertulia.platforms.terminal.found_model import FoundModel


def chat(
    question: Annotated[
        str | None, typer.Argument(help="Asked once, and answered on standard output.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="gemini-…, openai:NAME, ollama:NAME, smollm2, qwen or a .gguf file. Default: the one that is found.",
            autocompletion=model_names,
        ),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Where the model is served.", metavar="URL")] = None,
    persona: Annotated[Path | None, typer.Option(help="A text that says who the model is.", metavar="FILE")] = None,
    agent: Annotated[
        str, typer.Option(help="Which agent of the tertulia.toml answers. Default: who did before.", metavar="NAME")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line; messages are lines too.")] = False,
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", help="A file for the first message; again for more.", metavar="FILE"),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            help="Another conversation. Default: one for each local model, one for all others.", metavar="NAME"
        ),
    ] = None,
    choose: Annotated[bool, typer.Option("--choose", help="Ask again which model answers.")] = False,
    weather: Annotated[bool, typer.Option("--weather", help="Let the model ask open-meteo.com.")] = False,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="PATH",
            help="The file of the conversation; :memory: stores nothing. "
            "Default: TERTULIA_DB, else that of the tertulia.toml here, else tertulia.db in your data folder.",
        ),
    ] = None,
) -> None:
    """Talk with a model, and go on where you left off. /help shows what you can do.

    Without --model it is the model of a tertulia.toml in this folder; else what you chose before, the service whose key
    is set, an Ollama that answers, or an embedded model. If there is nothing, it asks.
    """
    from tertulia.config import find_config, from_environment, load_config
    from tertulia.platforms.terminal import ChatOptions, run
    from tertulia.platforms.terminal.found_model import FoundModel, load_choice

    bot = load_config(path) if (path := find_config()) else None
    speaker = _agent_named(agent, bot) if agent else None
    own = bot.agents[speaker].models if bot and speaker else ()
    configured = () if choose else own or (bot.config if bot else from_environment(os.environ)).models
    named = model or next(iter(configured), None)
    found = FoundModel(name=named) if named else None if base_url else _found_model(choose=choose, as_json=as_json)
    if named and _can_ask(as_json=as_json):
        from tertulia.cli.model_choice import offer_to_fetch

        offer_to_fetch(named)
    options = ChatOptions(
        model=found,
        base_url=base_url,
        persona=persona,
        agent=speaker or "",
        as_json=as_json,
        weather=weather,
        question=question,
        attached=attach or (),
        conversation=conversation,
        db=db or _default_db_with_folder(),
        bot=bot,
        keys=load_choice().keys,
    )
    raise typer.Exit(run(options))


def _agent_named(name: str, bot: "ConfigFile | None") -> str:
    """Return the name of an agent as the config has it."""
    from tertulia.config import cast_of

    if bot is None or not bot.agents:
        where = f"{bot.path} has no table [agents.NAME]" if bot else "there is no tertulia.toml in this folder"
        raise InvalidValue(f"--agent {name}: {where}")
    found = cast_of(bot).get(name)
    if found is None:
        raise InvalidValue(f"--agent {name}: there is no such agent in {bot.path}; the agents: {', '.join(bot.agents)}")
    return found.name


def _found_model(*, choose: bool, as_json: bool) -> "FoundModel | None":
    """Find a model, or ask for one on a terminal; None if there is none to be found, and nobody to be asked."""
    from tertulia.cli.model_choice import ask_for_model
    from tertulia.model_choice import program_command
    from tertulia.platforms.terminal.found_model import FoundModel, find_model, load_choice

    can_ask = _can_ask(as_json=as_json)
    choice = load_choice()
    environment = {**choice.keys, **os.environ}
    found = None if choose and can_ask else find_model(environment, choice, program=program_command())
    if found or not can_ask:
        return found
    return FoundModel(name=ask_for_model("" if choose else "No key and no Ollama was found. "))


def _can_ask(*, as_json: bool) -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not as_json


def _default_db_with_folder() -> str:
    """Return the default path of the store; create its folder."""
    path = default_db()
    if is_url(path):
        return path
    try:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreRefused(f"the store {path}: {error.strerror}; --db names another") from error
    return path


def add_to(app: typer.Typer) -> None:
    app.command(epilog='Example: tertulia chat "What is on it?" --attach cat.jpg')(chat)

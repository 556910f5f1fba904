"""`tertulia import`: what another program stored, converted to ours or added to a store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.options import DB, default_db
from tertulia.cli.output import read_input, write_json
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from tertulia.formats.importers import ImportedConversation

TURNS, MESSAGES = "turns", "messages"

Form = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="telegram, gryag, cw, genai, openai, compact or meta. Default: detected from the content.",
    ),
]
Bot = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN|ID", help="Whose past it becomes. Default: the bot of TERTULIA_TELEGRAM_TOKEN or tertulia.toml."
    ),
]


def import_(
    file: Annotated[str, typer.Argument(help="What to read; - reads standard input.", metavar="[FILE|-]")] = "-",
    form: Form = None,
    to: Annotated[
        str | None, typer.Option(help="turns or messages. Default: turns of genai and openai, messages of the others.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who the agent is. In compact lines: who speaks without #number.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Which model made its turns. Default: the `model` that the input names, if any.")
    ] = None,
    bot: Bot = None,
    chat: Annotated[
        list[str] | None, typer.Option(metavar="ID|TITLE", help="Import only this chat; may be given several times.")
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Let the bot learn facts from the messages, with its model; it costs.")
    ] = False,
    db: DB = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was imported as a JSON object.")] = False,
) -> None:
    """Read what another program stored.

    telegram, an export of Telegram Desktop in JSON, and gryag, its database or a dump of it, are added to the store:
    they become the past of a Telegram bot. They are context and are not answered. Of cw, a dump of cw-telegram-agent,
    the descriptions of media are added. The same command again adds nothing; one that was interrupted is continued.

    The others are conversations, which are printed. genai: a list of contents, as google-genai has it. openai: a list
    of chat-completions messages. Either may be the body of a request. compact: lines such as `Alice#987654: text`.
    meta: contents that begin with a `[meta]` block. Turns are written as a JSON array, or as {"system", "turns"} where
    there is an instruction; messages as the document that `tertulia render` reads.
    """
    stored_form = _store_form(file, form)
    if stored_form:
        if to or model:
            raise InvalidValue("--to and --model are for conversations that are printed; this goes into the store")
        _import_into_store(file, stored_form, bot=bot, agent=agent, chats=chat, learn=learn, db=db, as_json=as_json)
        return
    if bot or chat or learn or db or as_json:
        raise InvalidValue("--bot, --chat, --learn, --db and --json are for what goes into a store; this is printed")
    _print_conversation(file, form, to=to, agent=agent, model=model)


def _print_conversation(file: str, form: str | None, *, to: str | None, agent: str | None, model: str | None) -> None:
    from tertulia.formats.importers import import_conversation
    from tertulia.jsonio import dumps

    if to not in (None, TURNS, MESSAGES):
        raise InvalidValue(f"--to is turns or messages, not {to!r}")
    found = import_conversation(read_input(file), form=form, agent=agent, model=model)
    if form is None:
        _note(f"read as {found.form}")
    if agent is None and found.form == "compact":
        _note(f"the agent is {found.agent}" if found.agent else "no agent speaks in it; --agent says who it is")
    wanted = to or (MESSAGES if found.messages or found.form in ("compact", "meta") else TURNS)
    written = dumps(_as_turns(found) if wanted == TURNS else _as_document(found))
    _note_omissions(found, wanted)
    write_json(written)


def _store_form(file: str, form: str | None) -> str | None:
    """Return the form of a file that goes into a store, or None."""
    from tertulia.cli.import_sources import FORM_WORDS, export_file, find_form

    if form is not None and form not in FORM_WORDS:
        return None
    if file == "-":
        if form:
            raise InvalidValue(f"--from {form} needs a file, not standard input")
        return None
    try:
        return form or find_form(export_file(Path(file)))
    except OSError as error:
        raise InvalidValue(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:  # ours, or a path with a null character
        raise error if isinstance(error, InvalidValue) else InvalidValue(f"cannot read {file}: {error}") from error


def _import_into_store(
    file: str,
    form: str,
    *,
    bot: str | None,
    agent: str | None,
    chats: list[str] | None,
    learn: bool,
    db: str | None,
    as_json: bool,
) -> None:
    from tertulia.cli.import_sources import CW, ImportSource, export_file
    from tertulia.cli.import_store import find_bot, import_into_store

    bot_id = "" if form == CW else find_bot(bot)
    source = ImportSource(export_file(Path(file)), form, bot_id=bot_id, agent=agent or "", chats=tuple(chats or ()))
    import_into_store(db or default_db(), source, form, bot_id=bot_id, learn=learn, as_json=as_json)


def add_to(app: typer.Typer) -> None:
    app.command("import", epilog="Example: tertulia import ChatExport_2026-11-16/result.json --bot 123456")(import_)


def _as_turns(found: "ImportedConversation") -> Any:
    import msgspec

    from tertulia.formats.importers import as_turns

    turns = msgspec.to_builtins(as_turns(found))
    return {"system": found.system, "turns": turns} if found.system else turns


def _as_document(found: "ImportedConversation") -> Any:
    from datetime import UTC, datetime

    from tertulia.formats.importers import as_document

    return as_document(found, now=datetime.now(UTC).replace(microsecond=0))


def _note_omissions(found: "ImportedConversation", wanted: str) -> None:
    if found.left_out:
        _note(f"left out, being neither turns nor instruction: {', '.join(found.left_out[:10])}")
    if found.unsaid and (wanted == MESSAGES or found.form == "meta"):
        how = "--from genai" if found.form == "meta" else "--to turns"
        _note(f"left out thoughts, tool calls and results ({found.unsaid}), which are no messages; {how} keeps them")
    if found.names and wanted == TURNS:
        _note("left out the names of those who speak; --to messages keeps them")


def _note(text: str) -> None:
    print(f"tertulia: {text}", file=sys.stderr)

"""`palaver import`: a conversation of another program, converted to ours."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palaver.cli.output import read_input, write_json
from palaver.errors import InvalidValue

if TYPE_CHECKING:
    from palaver.formats.importers import ImportedConversation

TURNS, MESSAGES = "turns", "messages"


def import_(
    file: Annotated[str, typer.Argument(help="What to read; - reads standard input.", metavar="[FILE|-]")] = "-",
    form: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FORMAT", help="genai, openai, compact or meta. Default: detected from the content."
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="turns or messages. Default: turns of genai and openai, messages of the others.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who the agent is. In compact lines: who speaks without #number.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Which model made its turns. Default: the `model` that the input names, if any.")
    ] = None,
) -> None:
    """Read a conversation that another program wrote.

    genai: a list of contents, as google-genai has it. openai: a list of chat-completions messages. Either may be the
    body of a request. compact: lines such as `Alice#987654: text`. meta: contents that begin with a `[meta]` block.
    Turns are written as a JSON array, or as {"system", "turns"} where there is an instruction; messages as the document
    that `palaver render` reads.
    """
    from palaver.formats.importers import import_conversation
    from palaver.jsonio import dumps

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


def add_to(app: typer.Typer) -> None:
    app.command("import", epilog="Example: palaver import old.txt | palaver render native")(import_)


def _as_turns(found: "ImportedConversation") -> Any:
    import msgspec

    from palaver.formats.importers import as_turns

    turns = msgspec.to_builtins(as_turns(found))
    return {"system": found.system, "turns": turns} if found.system else turns


def _as_document(found: "ImportedConversation") -> Any:
    from datetime import UTC, datetime

    from palaver.formats.importers import as_document

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
    print(f"palaver: {text}", file=sys.stderr)

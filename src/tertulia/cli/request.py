"""`tertulia render`: the request that a profile makes of a conversation; `tertulia lint`: what a service refuses."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tertulia.cli.output import read_input, write_json
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from tertulia.context.gather import ContextOptions
    from tertulia.context.values import Context
    from tertulia.models.openai.vendors import Vendor
    from tertulia.profiles import Profile
    from tertulia.turns import Prompt, ToolSpec


Wire = Literal["gemini", "openai"]
MODELS: dict[Wire, str] = {"gemini": "gemini-3.8-flash", "openai": "gpt-5.6"}
UNKNOWN = "any-model"  # the model that `single` is rendered for by default: of no service that we know


def _profile_names() -> list[str]:
    from tertulia.profiles import PROFILES

    return list(PROFILES)


def render(
    profile: Annotated[
        str,
        typer.Argument(help="layered, tail, native, block, headers, single or plain.", autocompletion=_profile_names),
    ],
    file: Annotated[
        str, typer.Argument(help="The conversation as JSON; - reads standard input.", metavar="[FILE|-]")
    ] = "-",
    to: Annotated[
        str | None, typer.Option(help="gemini or openai: whose JSON to write. Default: gemini, for single openai.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model the request is for.")] = None,
    personality: Annotated[str | None, typer.Option(help="Which agent answers, by name.")] = None,
) -> None:
    """Show the exact request that a profile makes of a conversation.

    The input is described in docs/prompt.md. For `single` it may also be a message with references.
    """
    wire = _wire(to, profile)
    default = UNKNOWN if profile == "single" and wire == "openai" else MODELS[wire]
    write_json(_render(file, profile, wire, model or default, personality))


def lint(
    file: Annotated[str, typer.Argument(help="A request's JSON body; - reads standard input.", metavar="FILE|-")],
    model: Annotated[
        str | None, typer.Option(help="Whose rules. Default: the request's own `model`, else gemini-3.8-flash.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also list what is refused only sometimes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of {rule, where, message}.")] = False,
) -> None:
    """List what a service would refuse in a request. Exit 1 when there is anything.

    A body with `messages` is judged by the rules of OpenAI-compatible services, one with `contents` by Gemini's.
    """
    import msgspec
    import orjson

    from tertulia.wire import lint as find_violations

    body = read_input(file)
    violations = find_violations(body, model=model or _model_in(body), strict=strict)
    if as_json:
        typer.echo(orjson.dumps(msgspec.to_builtins(violations)).decode())
    for violation in () if as_json else violations:
        place = typer.style(violation.where or "request", bold=True)
        typer.echo(f"{place}: {typer.style(violation.rule, fg='red')}: {violation.message.strip()}")
    if not violations and not as_json:
        typer.echo(typer.style("legal", fg="green"))
    raise typer.Exit(1 if violations else 0)


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia render native < conversation.json")(render)
    app.command(epilog="Example: tertulia lint request.json --model gemini-3.8-flash --strict")(lint)


def _wire(to: str | None, profile: str) -> Wire:
    match to or ("openai" if profile == "single" else "gemini"):
        case "gemini":
            return "gemini"
        case "openai":
            return "openai"
    raise InvalidValue(f"--to is gemini or openai, not {to!r}")


def _read_document(file: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(read_input(file))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidValue(f"the input is no JSON: {error}") from error


def _render(file: str, profile: str, wire: Wire, model: str, personality: str | None) -> bytes:
    import os

    from tertulia.config import from_environment
    from tertulia.engine.prompt_builder import build_prompt
    from tertulia.profiles import profile_of

    options = from_environment(os.environ).context
    chosen = profile_of(profile, options)  # before the terminal is read
    found = _read_document(file)
    if profile == "single" and not (isinstance(found, dict) and "messages" in found):
        return _encode_references(found, wire, model, personality or "")
    context, tools = _gather_context(found, chosen, options, personality)
    return _encode(build_prompt(context, chosen, tools=tools), wire, model)


def _encode_references(found: Any, wire: Wire, model: str, personality: str) -> bytes:
    """Encode a message with references as a request; an unknown service gets the messages as they are."""
    import logging

    from tertulia.formats.references import combine_references
    from tertulia.jsonio import dumps
    from tertulia.models.openai.decode import decode_turn
    from tertulia.turns import Prompt

    messages = combine_references(found, personality=personality, warn=logging.getLogger("tertulia").warning)
    if wire == "openai" and _vendor(model).audio == "unknown":
        return dumps({"model": model, "messages": messages})
    return _encode(Prompt.of(*map(decode_turn, messages)), wire, model)


def _gather_context(
    found: Any, profile: "Profile", options: "ContextOptions", personality: str | None
) -> "tuple[Context, tuple[ToolSpec, ...]]":
    import asyncio

    from tertulia.context import gather
    from tertulia.context.gather import SourceInputs
    from tertulia.context.sources import agent_settings, stickers, workspace
    from tertulia.formats.document import read_conversation

    talk = read_conversation(found, agent=personality)
    set_up = agent_settings(
        persona=talk.persona,
        zone=talk.zone,
        delimiter=talk.delimiter,
    )
    drawn_on = profile.sources(SourceInputs(log=talk.log, memory=talk.remembered, options=options))
    given = [set_up, *drawn_on, workspace(talk.workspace), stickers(talk.stickers)]
    return asyncio.run(gather(talk.target, given, talk.now)), talk.tools


def _encode(prompt: "Prompt", wire: Wire, model: str) -> bytes:
    """Encode the request for the service that serves the model, or that the environment names."""
    import logging

    from tertulia.models.gemini import encode as gemini
    from tertulia.models.openai import encode as openai
    from tertulia.wire.repair import repair_prompt

    sent = repair_prompt(prompt, model, wire=wire)
    if wire == "gemini":
        return gemini.encode_request(sent, model=model)
    vendor = _vendor(model)
    for receipt in openai.media_receipts(sent, vendor):
        logging.getLogger("tertulia").warning("%s: %s", receipt.where, receipt.action)
    return openai.encode_request(sent, model=model, vendor=vendor)


def _vendor(model: str) -> "Vendor":
    import os

    from tertulia.models.openai.vendors import for_model, vendor_of

    return for_model(vendor_of(model, os.environ.get("TERTULIA_OPENAI_BASE_URL", "")), model)


def _model_in(body: bytes) -> str:
    import orjson

    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    named = found.get("model") if isinstance(found, dict) else None
    return named if isinstance(named, str) and named else "gemini-3.8-flash"

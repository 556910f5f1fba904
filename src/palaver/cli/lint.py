"""`palaver lint`: what a service would refuse in a request."""

from typing import Annotated

import typer

from palaver.cli.streams import read_input


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

    from palaver.wire import lint as find_violations

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
    app.command(epilog="Example: palaver lint request.json --model gemini-3.8-flash --strict")(lint)


def _model_in(body: bytes) -> str:
    import orjson

    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    named = found.get("model") if isinstance(found, dict) else None
    return named if isinstance(named, str) and named else "gemini-3.8-flash"

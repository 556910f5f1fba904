"""The command line."""

import asyncio
import errno
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from palaver.errors import InvalidValue, NotInstalled, PalaverError

app = typer.Typer(
    name="palaver",
    help="A conversation engine for chat agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: it answers three times as fast
    pretty_exceptions_enable=False,
)
models = typer.Typer(
    help="The models that run here, without a key or a service.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
sim = typer.Typer(
    help="Run a strict local stand-in for a service, for tests and offline work.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(models, name="model")
app.add_typer(sim, name="sim")


def main() -> None:
    """Run the command; what goes wrong is one line that says what to do, unless a traceback is asked for."""
    try:
        app()
    except PalaverError as error:
        if os.environ.get("PALAVER_TRACEBACK"):
            traceback.print_exc()
        print(f"palaver: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"palaver: {error.strerror or error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has left; so do we, quietly
        sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"palaver {version('palaver')}")
        raise typer.Exit


@app.callback(epilog="PALAVER_TRACEBACK=1 shows the traceback of an error.")
def palaver(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: palaver chat --model gemini-3.8-flash")
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


@models.command("get", epilog="Example: palaver model get qwen")
def model_get(
    name: Annotated[str, typer.Argument(help="smollm2 (94 MB) or qwen (1.1 GB, chooses tools well).")],
) -> None:
    """Fetch a model's weights. What came before an interruption is not fetched again."""
    from palaver.models.local import get

    path = get(name, progress=_progress if sys.stderr.isatty() else None)
    typer.echo(f"{name} is at {path}")


def _progress(done: int, total: int) -> None:
    filled = round(30 * done / total)
    bar = f"[{'█' * filled}{'·' * (30 - filled)}] {done >> 20} of {total >> 20} MB"
    print(f"\r{bar}", end="\n" if done == total else "", file=sys.stderr, flush=True)


@app.command(epilog="Example: palaver lint request.json --model gemini-3.8-flash --strict")
def lint(
    file: Annotated[str, typer.Argument(help="A request's JSON body; - reads standard input.", metavar="FILE|-")],
    model: Annotated[
        str | None, typer.Option(help="Whose rules. Default: the request's own `model`, else gemini-3.8-flash.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also name what is refused only sometimes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of {rule, where, message}.")] = False,
) -> None:
    """Name what a service would refuse in a request. Exit 1 when there is anything.

    A body with `messages` is judged by the rules of OpenAI-compatible services, one with `contents` by Gemini's.
    """
    import msgspec
    import orjson

    from palaver.wire import lint as find

    body = _read(file)
    found = find(body, model=model or _model_in(body), strict=strict)
    if as_json:
        typer.echo(orjson.dumps(msgspec.to_builtins(found)).decode())
    for violation in () if as_json else found:
        place = typer.style(violation.where or "request", bold=True)
        typer.echo(f"{place}: {typer.style(violation.rule, fg='red')}: {violation.message.strip()}")
    if not found and not as_json:
        typer.echo(typer.style("legal", fg="green"))
    raise typer.Exit(1 if found else 0)


def _read(file: str) -> bytes:
    if file == "-" and sys.stdin is None:
        raise InvalidValue("standard input is closed; name a FILE")
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidValue(f"cannot read {file}: {error.strerror or error}") from error


def _model_in(body: bytes) -> str:
    import orjson

    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    named = found.get("model") if isinstance(found, dict) else None
    return named if isinstance(named, str) and named else "gemini-3.8-flash"


_Host = Annotated[str, typer.Option(help="The address to listen on.")]
_Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")]
_Behaviour = Annotated[
    str, typer.Option("--model-behaviour", help="actor (calls tools, thinks, answers), echo, or script:FILE.")
]
_Plain = Annotated[bool, typer.Option("--plain", help="Refuse only what the service always refuses.")]
_Fail = Annotated[
    list[str] | None,
    typer.Option("--fail", metavar="FAULT[:TIMES]", help="Go wrong so often first: rate-limited, overloaded, …"),
]


@sim.command("gemini", epilog="Example: palaver sim gemini --port 8910 --fail overloaded:2")
def sim_gemini(
    host: _Host = "127.0.0.1",
    port: _Port = 8910,
    behaviour: _Behaviour = "actor",
    plain: _Plain = False,
    fail: _Fail = None,
) -> None:
    """The Gemini API: any key but bad-key is good."""
    import time

    gemini = _simulator("gemini")
    served = gemini.GeminiSim(
        strict=not plain,
        host=host,
        port=port,
        behaviour=_behaviour(gemini, behaviour),
        clock=time.time,
        tell=_tell,
    )
    _serve(served, gemini, fail or [], "PALAVER_GEMINI_BASE_URL", "GEMINI_API_KEY")


@sim.command("openai", epilog="Example: palaver sim openai --port 8911 --model-behaviour echo")
def sim_openai(
    host: _Host = "127.0.0.1",
    port: _Port = 8911,
    behaviour: _Behaviour = "actor",
    plain: _Plain = False,
    fail: _Fail = None,
) -> None:
    """Chat completions as OpenAI and its kind serve them: any key is good that does not begin with bad."""
    openai = _simulator("openai")
    served = openai.OpenAISim(
        strict=not plain, host=host, port=port, behaviour=_behaviour(openai, behaviour), tell=_tell
    )
    _serve(served, openai, fail or [], "PALAVER_OPENAI_BASE_URL", "OPENAI_API_KEY")


def _tell(received: Any) -> None:
    """One line a request: what it was answered with and, if it was refused, by which rule."""
    colour = "green" if received.status < 400 else "red"
    why = f"  {received.rule}" if received.rule else ""
    typer.echo(f"{typer.style(received.status, fg=colour)}  {received.method} {received.path}{why}")


def _simulator(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"palaver.sim.{name}")
    except ModuleNotFoundError as error:
        raise NotInstalled(f"the simulators need {error.name}: pip install 'palaver[web]'") from error


def _behaviour(simulator: Any, text: str) -> Any:
    try:
        return simulator.behaviour_named(text)
    except (ValueError, OSError) as error:
        raise InvalidValue(f"--model-behaviour {text}: {error}") from error


def _serve(served: Any, simulator: Any, faults: list[str], url_name: str, key_name: str) -> None:
    for text in faults:
        fault, times = _fault(simulator, text)
        served.fail(fault, times=times)
    try:
        asyncio.run(_serve_until_stopped(served, url_name, key_name))
    except OSError as error:
        advice = "choose another --port" if error.errno == errno.EADDRINUSE else "check --host and --port"
        raise InvalidValue(f"cannot listen: {error.strerror or error}; {advice}") from error


async def _serve_until_stopped(served: Any, url_name: str, key_name: str) -> None:
    async with served:
        print(f"serving at {served.url} (Ctrl-C stops)")
        print(f"  export {url_name}={served.url} {key_name}=any", flush=True)
        for stop in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(stop, served.stop)
        await served.forever()
    print("stopped")


def _fault(simulator: Any, text: str) -> tuple[Any, int]:
    """A fault by its name in small letters, and how often; `rate-limited:2` is RateLimited, twice."""
    name, _, times = text.partition(":")
    wanted = name.replace("-", "").lower()
    kinds = {kind.__name__.lower(): kind for kind in get_args(simulator.Fault) if not _wants_arguments(kind)}
    if wanted not in kinds:
        known = ", ".join(sorted(kind.__name__ for kind in kinds.values()))
        raise InvalidValue(f"--fail {text}: no such fault; there are {known}, each with an optional :TIMES")
    if times and not (times.isdecimal() and int(times)):
        raise InvalidValue(f"--fail {text}: {times!r} is not how often; write a number, as in {name}:2")
    return kinds[wanted](), int(times or "1")


def _wants_arguments(kind: Any) -> bool:
    import msgspec

    return any(field.required for field in msgspec.structs.fields(kind))

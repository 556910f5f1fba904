"""`tertulia sim`: strict local simulators of the services."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, get_args

import typer

from tertulia.errors import InvalidValue, NotInstalled

sims = typer.Typer(
    help="Run a strict local simulator of a service, for tests and offline work.",
    epilog="Example: tertulia sim gemini --port 8910",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class ServiceCommand(NamedTuple):
    name: str
    simulator: str
    port: int
    about: str
    example: str
    url_name: str
    key_name: str
    faults: tuple[str, ...]  # known without the packages that a simulator needs
    audio: tuple[str, ...] = ()  # what it may take of sounds, if that can be chosen


FAULTS = (
    *("content-filter", "context-too-long", "cut-stream", "deadline", "empty", "error-frame", "hang", "internal"),
    *("malformed-call", "max-tokens", "overloaded", "quota", "rate-limited"),
)

TELEGRAM_FAULTS = (
    *("busy", "refused", "request-lost", "receipt-lost"),
    *("400", "401", "403", "404", "409", "429", "500", "502", "503", "504"),
)

SERVICES = (
    ServiceCommand(
        name="gemini",
        simulator="GeminiSim",
        port=8910,
        about="The Gemini API: any key but bad-key is good.",
        example="--models any --fail overloaded:2",
        url_name="TERTULIA_GEMINI_BASE_URL",
        key_name="GEMINI_API_KEY",
        faults=(*FAULTS, "blocked-prompt", "empty-candidates", "usage-only-last"),
    ),
    ServiceCommand(
        name="openai",
        simulator="OpenAISim",
        port=8911,
        about="Chat completions as OpenAI and compatible servers have them: any key is good unless it begins with bad.",
        example="--models gpt-5.6,gpt-4o --model-behaviour echo",
        url_name="TERTULIA_OPENAI_BASE_URL",
        key_name="OPENAI_API_KEY",
        faults=(*FAULTS, "model-refusal"),
        audio=("input_audio", "audio_url", "both", "none"),
    ),
)


def _command(service: ServiceCommand) -> Callable[..., None]:
    def serve(
        host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = service.port,
        behaviour: Annotated[
            str,
            typer.Option(
                "--model-behaviour",
                help="actor (calls tools, thinks, answers), echo, script:FILE, or repeat:FILE, which begins again.",
            ),
        ] = "actor",
        models: Annotated[
            list[str] | None,
            typer.Option(
                metavar="any|NAME[,NAME…]",
                help="The model ids to serve: any, or these alone. Others get the 404 of the service.",
            ),
        ] = None,
        plain: Annotated[bool, typer.Option("--plain", help="Refuse only what the service always refuses.")] = False,
        fail: Annotated[
            list[str] | None,
            typer.Option(
                metavar="FAULT[:TIMES]", help=f"Let the first requests fail: {', '.join(sorted(service.faults))}."
            ),
        ] = None,
        audio: Annotated[
            str | None,
            typer.Option(
                hidden=not service.audio,
                metavar="FORM",
                help="What it takes of sounds: input_audio as OpenAI does, audio_url as some servers do, both or none.",
            ),
        ] = None,
    ) -> None:
        import time

        if audio is not None and audio not in service.audio:
            raise InvalidValue(f"--audio {audio}: there are {', '.join(service.audio) or 'none of this service'}")
        package = _package(service.name)
        simulator = getattr(package, service.simulator)(
            strict=not plain,
            host=host,
            port=port,
            behaviour=_behaviour(behaviour),
            models=package.MODELS if models is None else _models(models),
            clock=time.time,
            tell=_print_received,
            **({"audio": audio} if audio else {}),
        )
        for text in fail or []:
            fault, times = _fault(package, text)
            simulator.fail(fault, times=times)
        _serve(simulator, service.url_name, f"{service.key_name}=any")

    return serve


def add_to(app: typer.Typer) -> None:
    for service in SERVICES:
        example = f"Example: tertulia sim {service.name} {service.example}"
        sims.command(service.name, help=service.about, epilog=example)(_command(service))
    sims.command(
        "telegram",
        help="The Telegram Bot API. People are played with POST /control/…: user, group, send, messages and more.",
        epilog="Example: tertulia sim telegram --token 123456:TEST --fail busy:2",
    )(_telegram)
    app.add_typer(sims, name="sim")


def _telegram(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8912,
    token: Annotated[
        list[str] | None, typer.Option(metavar="ID:SECRET", help="The token of a bot; again for each further bot.")
    ] = None,
    username: Annotated[str, typer.Option(help="The username of the first bot.")] = "tertulia_bot",
    flood: Annotated[
        bool, typer.Option("--flood", help="Answer 429 above Telegram's limits: 1 message a second in a chat …")
    ] = False,
    fail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FAULT[:TIMES]", help=f"Let the first messages of the bot fail: {', '.join(TELEGRAM_FAULTS)}."
        ),
    ] = None,
) -> None:
    import time

    package = _package("telegram")
    tokens = token or [package.TOKEN]
    for one in tokens:
        if not re.fullmatch(r"[1-9][0-9]{0,15}:[A-Za-z0-9_-]{1,60}", one):
            raise InvalidValue("--token: write digits, a colon and a secret, as in 123456:TEST")
    simulator = package.TelegramSim(
        token=tokens[0], username=username, host=host, port=port, flood=flood, clock=time.time, tell=_print_call
    )
    for number, one in enumerate(tokens[1:], 2):
        simulator.add_bot(f"Bot {number}", username=f"{username.removesuffix('_bot')}_{number}_bot", token=one)
    for text in fail or []:
        simulator.fail(*_telegram_fault(text))
    variables = f"TERTULIA_TELEGRAM_TOKEN={tokens[0]}"
    hint = """  curl -d '{"name": "Alice"}' URL/control/user
  curl -d '{"as": "Alice", "chat": "Alice", "text": "Hello!"}' URL/control/send
  curl -d '{"chat": "Alice"}' URL/control/messages"""
    _serve(simulator, "TERTULIA_TELEGRAM_BASE_URL", variables, hint)


def _telegram_fault(text: str) -> tuple[str | int, int]:
    """The fault that *text* names and how often it comes: `receipt-lost:2` is `receipt lost` twice."""
    name, _, times = text.partition(":")
    if name not in TELEGRAM_FAULTS:
        known = ", ".join(TELEGRAM_FAULTS)
        raise InvalidValue(f"--fail {text}: no such fault; there are {known}, each with an optional :TIMES")
    return int(name) if name.isdigit() else name.replace("-", " "), _times(text, times)


def _print_call(call: Any) -> None:
    """Print one line for a call: the status of its answer and the words of its refusal."""
    colour = "green" if 0 < call.status < 400 else "red"
    words = f"  {call.description}" if call.description else ""
    with suppress(BrokenPipeError):  # the call is answered though nobody reads this
        typer.echo(f"{typer.style(call.status or 'lost', fg=colour)}  {call.method}{words}")


def _print_received(received: Any) -> None:
    """Print one line for a request: the status of its response and the rule that refused it."""
    colour = "green" if received.status < 400 else "red"
    rule = f"  {received.rule}" if received.rule else ""
    with suppress(BrokenPipeError):  # the request is answered though nobody reads this
        typer.echo(f"{typer.style(received.status, fg=colour)}  {received.method} {received.path}{rule}")


def _package(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"tertulia.sim.{name}")
    except ModuleNotFoundError as error:
        raise NotInstalled(f"the simulators need {error.name}: pip install 'tertulia[sim]'") from error


def _behaviour(text: str) -> Any:
    from tertulia.sim.behaviours import behaviour_named

    try:
        return behaviour_named(text)
    except (ValueError, OSError) as error:
        raise InvalidValue(f"--model-behaviour {text}: {error}") from error


def _models(texts: list[str]) -> list[str] | None:
    """The names in the values of `--models`; None for any."""
    names = [name.strip() for text in texts for name in text.split(",")]
    if names == ["any"]:
        return None
    if "any" in names or not all(names):
        raise InvalidValue(f"--models {','.join(names)}: write any, or names separated by commas")
    return names


def _serve(simulator: Any, url_name: str, variables: str, hint: str = "") -> None:
    import asyncio
    import errno

    try:
        asyncio.run(_serve_until_stopped(simulator, url_name, variables, hint))
    except BrokenPipeError:
        raise
    except OSError as error:
        advice = "choose another --port" if error.errno == errno.EADDRINUSE else "check --host and --port"
        raise InvalidValue(f"cannot listen: {error.strerror or error}; {advice}") from error


async def _serve_until_stopped(simulator: Any, url_name: str, variables: str, hint: str) -> None:
    import asyncio
    import signal

    async with simulator:
        print(f"serving at {simulator.url} (Ctrl-C stops)")
        print(f"  export {url_name}={simulator.url} {variables}", flush=True)
        if hint:
            print(hint.replace("URL", simulator.url), flush=True)
        for stop in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(stop, simulator.stop)
        await simulator.forever()
    print("stopped")


def _fault(package: Any, text: str) -> tuple[Any, int]:
    """The fault that *text* names and how often it comes: `rate-limited:2` is `RateLimited()` twice."""
    name, _, times = text.partition(":")
    kinds = {_option_name(kind.__name__): kind for kind in get_args(package.Fault) if not _needs_arguments(kind)}
    wanted = next((option for option in kinds if option.replace("-", "") == name.replace("-", "").lower()), None)
    if wanted is None:
        known = ", ".join(sorted(kinds))
        raise InvalidValue(f"--fail {text}: no such fault; there are {known}, each with an optional :TIMES")
    return kinds[wanted](), _times(text, times)


def _times(text: str, times: str) -> int:
    if times and not (times.isdecimal() and int(times)):
        name = text.partition(":")[0]
        raise InvalidValue(f"--fail {text}: {times!r} is no number of times; write a number, as in {name}:2")
    return int(times or "1")


def _option_name(name: str) -> str:
    """The name of a class as an option: `RateLimited` is `rate-limited`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def _needs_arguments(kind: Any) -> bool:
    import msgspec

    return any(field.required for field in msgspec.structs.fields(kind))

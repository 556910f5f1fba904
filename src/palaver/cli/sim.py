"""`palaver sim`: strict local stand-ins for the services."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, get_args

import typer

from palaver.errors import InvalidValue, NotInstalled

sims = typer.Typer(
    help="Run a strict local stand-in for a service, for tests and offline work.",
    epilog="Example: palaver sim gemini --port 8910",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Service(NamedTuple):
    name: str
    simulator: str
    port: int
    about: str
    example: str
    url_name: str
    key_name: str


SERVICES = (
    Service(
        name="gemini",
        simulator="GeminiSim",
        port=8910,
        about="The Gemini API: any key but bad-key is good.",
        example="--port 8910 --fail overloaded:2",
        url_name="PALAVER_GEMINI_BASE_URL",
        key_name="GEMINI_API_KEY",
    ),
    Service(
        name="openai",
        simulator="OpenAISim",
        port=8911,
        about="Chat completions as OpenAI and its kind serve them: any key is good that does not begin with bad.",
        example="--port 8911 --model-behaviour echo",
        url_name="PALAVER_OPENAI_BASE_URL",
        key_name="OPENAI_API_KEY",
    ),
)


def _command(service: Service) -> Callable[..., None]:
    def serve(
        host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = service.port,
        behaviour: Annotated[
            str, typer.Option("--model-behaviour", help="actor (calls tools, thinks, answers), echo, or script:FILE.")
        ] = "actor",
        plain: Annotated[bool, typer.Option("--plain", help="Refuse only what the service always refuses.")] = False,
        fail: Annotated[
            list[str] | None,
            typer.Option(metavar="FAULT[:TIMES]", help="Go wrong so often first: rate-limited, overloaded, …"),
        ] = None,
    ) -> None:
        simulator = _simulator(service.name)
        kind = getattr(simulator, service.simulator)
        acts = _behaviour(simulator, behaviour)
        served = kind(strict=not plain, host=host, port=port, behaviour=acts, tell=_tell, **_clock(service))
        for text in fail or []:
            fault, times = _fault(simulator, text)
            served.fail(fault, times=times)
        _serve(served, service)

    return serve


def add_to(app: typer.Typer) -> None:
    for service in SERVICES:
        example = f"Example: palaver sim {service.name} {service.example}"
        sims.command(service.name, help=service.about, epilog=example)(_command(service))
    app.add_typer(sims, name="sim")


def _clock(service: Service) -> dict[str, Any]:
    """Gemini's stands still unless it is given one."""
    import time

    return {"clock": time.time} if service.name == "gemini" else {}


def _tell(received: Any) -> None:
    """One line a request: what it was answered with and, if it was refused, by which rule."""
    colour = "green" if received.status < 400 else "red"
    why = f"  {received.rule}" if received.rule else ""
    with suppress(BrokenPipeError):  # whoever asked is answered all the same
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


def _serve(served: Any, service: Service) -> None:
    import asyncio
    import errno

    try:
        asyncio.run(_serve_until_stopped(served, service))
    except BrokenPipeError:
        raise
    except OSError as error:
        advice = "choose another --port" if error.errno == errno.EADDRINUSE else "check --host and --port"
        raise InvalidValue(f"cannot listen: {error.strerror or error}; {advice}") from error


async def _serve_until_stopped(served: Any, service: Service) -> None:
    import asyncio
    import signal

    async with served:
        print(f"serving at {served.url} (Ctrl-C stops)")
        print(f"  export {service.url_name}={served.url} {service.key_name}=any", flush=True)
        for stop in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(stop, served.stop)
        await served.forever()
    print("stopped")


def _fault(simulator: Any, text: str) -> tuple[Any, int]:
    """A fault by its name in small letters, and how often; `rate-limited:2` is RateLimited, twice."""
    name, _, times = text.partition(":")
    kinds = {_spelt(kind.__name__): kind for kind in get_args(simulator.Fault) if not _wants_arguments(kind)}
    wanted = next((spelt for spelt in kinds if spelt.replace("-", "") == name.replace("-", "").lower()), None)
    if wanted is None:
        known = ", ".join(sorted(kinds))
        raise InvalidValue(f"--fail {text}: no such fault; there are {known}, each with an optional :TIMES")
    if times and not (times.isdecimal() and int(times)):
        raise InvalidValue(f"--fail {text}: {times!r} is not how often; write a number, as in {name}:2")
    return kinds[wanted](), int(times or "1")


def _spelt(name: str) -> str:
    """`RateLimited` as it is written on the command line: `rate-limited`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def _wants_arguments(kind: Any) -> bool:
    import msgspec

    return any(field.required for field in msgspec.structs.fields(kind))

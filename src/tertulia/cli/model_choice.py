"""The question which model answers, for a chat that names none and finds none; and whether to fetch one it names."""

import getpass
import os
import select
import signal
import sys
from collections.abc import Callable
from shutil import get_terminal_size

import typer

from tertulia.cli.output import INTERRUPTED

QUESTION = """\
{reason}Which model should answer?
  1  the small one, now ({small}): it talks, in English, and is often wrong; good for a look around
  2  Qwen ({better}; 2 GB of memory): short useful answers and tools, 10 to 40 s each on two cores
  3  a key of yours: the best answers, from that service; Gemini's is free at https://aistudio.google.com/apikey
An Ollama that runs on this machine is found by itself. {program} chat --choose asks again."""
NO_MODEL = "Nothing was fetched or stored. {program} demo shows a bot without a model."
QUESTION_INDENTS = (0, 5, 5, 5, 0)  # of a line of it that continues another
PLEASE = "1, 2 or 3, please; Ctrl-D leaves"
NUMBERS = ("1", "2", "3")
MIN_KEY = 16  # characters: what is shorter, and of no known form, is no key that was pasted
KEY_SECONDS = 5.0  # for the service to say whether it accepts a key


def ask_for_model(reason: str) -> str:
    """Ask which model answers, fetch it or take the key, remember the choice, and return the name of the model."""
    from msgspec.structs import replace

    from tertulia.model_choice import BETTER, SMALL, program_command
    from tertulia.platforms.terminal.found_model import load_choice, save_choice

    small, better = (_to_fetch(name) for name in (SMALL, BETTER))
    question = QUESTION.format(reason=reason, small=small, better=better, program=program_command())
    for line, indent in zip(question.splitlines(), QUESTION_INDENTS, strict=True):
        _say(line, indent=indent)
    model = ""
    while not model:
        try:
            answer = _answer("1, 2 or 3 [1]: ", lambda said: said in NUMBERS or is_key(said), PLEASE, "1")
        except typer.Exit:
            _say(NO_MODEL.format(program=program_command()))
            raise
        if answer == "3":
            model = _ask_for_key()
        elif answer not in NUMBERS:
            model = _take_key(answer)
        else:
            model = SMALL if answer == "1" else BETTER
            _fetch(model)
            save_choice(replace(load_choice(), model=model))
    return model


def is_key(said: str) -> bool:
    """Return whether a line looks like a key of a service."""
    from tertulia.platforms.terminal.found_model import key_name_of

    return not key_fault(said) and (key_name_of(said) is not None or len(said) >= MIN_KEY)


def key_fault(said: str) -> str:
    """Return what is wrong with a line as a key; empty if it may be one."""
    return (
        "" if said.isascii() and said.isprintable() and len(said.split()) == 1 else "a key is one word, without spaces"
    )


def offer_to_fetch(name: str) -> None:
    """Ask whether a model of this machine that is missing is fetched now, and do it; a no leaves it missing."""
    from tertulia.models.local import WEIGHTS

    if name not in WEIGHTS or _is_here(name):
        return
    question = f"{name} has not been fetched. Fetch it now ({_to_fetch(name)})? [y/n, y]: "
    if _answer(question, lambda said: said in ("y", "n"), "y or n, please", "y") == "y":
        _fetch(name)


def _is_here(name: str) -> bool:
    from tertulia.models.local import find_weights, has_runtime

    return has_runtime() and find_weights(name) is not None


def _to_fetch(name: str) -> str:
    """`98 MB, once`, with what runs it; `already here`"""
    from tertulia.models.local import missing_bytes, size_text

    missing = missing_bytes(name)
    return f"{size_text(missing)}, once" if missing else "already here"


def _fetch(name: str) -> None:
    from tertulia.cli.model import get

    if not _is_here(name):
        get(name)


def _ask_for_key() -> str:
    """Ask for a key until one is accepted; return its model, or nothing if the person goes back."""
    model = ""
    while not model:
        key = _read(lambda: _hidden_input("The key (it is not shown; Enter goes back): ")).strip()
        if not key:
            return ""
        if fault := key_fault(key):
            _say(f"({fault})")
            continue
        model = _take_key(key)
    return model


def _take_key(key: str) -> str:
    """Ask whose key it is if it does not tell, check it, and remember it; return its model, or nothing."""
    from tertulia.platforms.terminal.found_model import (
        KEY_MODELS,
        RememberedChoice,
        key_name_of,
        load_choice,
        model_for_key,
        provider_names,
        save_choice,
    )

    key_name = key_name_of(key)
    if key_name is None:
        services = provider_names()
        _say(f"Whose key is it? {', '.join(f'{number} {name}' for number, name in enumerate(services, 1))}")
        numbers = {str(number) for number in range(1, len(services) + 1)}
        please = f"a number from 1 to {len(services)}, please"
        number = _answer("Its number (Enter goes back): ", lambda said: not said or said in numbers, please)
        if not number:
            return ""
        key_name = KEY_MODELS[int(number) - 1][0][0]
    model = model_for_key(key_name)
    if refusal := _read(lambda: _check(model, key_name, key)):
        _say(f"({refusal})")
        return ""
    path = save_choice(RememberedChoice(model=model, keys={**load_choice().keys, key_name: key}))
    _say(f"The key is in {path}, which only you can read.")
    return model


def _check(model: str, key_name: str, key: str) -> str:
    """Return why the service refuses a key; empty if it accepts it. A service that does not answer is no refusal."""
    import asyncio

    from tertulia.errors import KeyRefused, TertuliaError
    from tertulia.model_choice import choose_model

    async def ask() -> None:
        others = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        async with asyncio.timeout(KEY_SECONDS), choose_model(model, environment={**others, key_name: key}).model as it:
            await it.check_key()

    try:
        asyncio.run(ask())
    except KeyRefused as error:
        return f"{error}; it is not stored"
    except (TertuliaError, TimeoutError) as error:
        _say(f"(the key could not be checked: {str(error) or f'no answer within {KEY_SECONDS:g} s'})")
    return ""


def _say(line: str, *, indent: int = 0) -> None:
    from tertulia.platforms.terminal.output import ScreenDisplay

    ScreenDisplay(sys.stdout, sys.stdout, coloured=False).note(line, indent=indent)


def _answer(question: str, is_right: Callable[[str], bool], please: str, default: str = "") -> str:
    """Ask until the answer is right; a key that was pasted is removed from the screen."""
    while True:
        said = _read(lambda: _input(question)).strip()
        if is_key(said):
            _erase(question + said)
        if is_right(said or default):
            return said or default
        _say(f"({please})")


def _erase(text: str) -> None:
    """Erase the lines that a text takes on the terminal; the cursor stands below them."""
    if os.environ.get("TERM", "dumb") != "dumb":
        lines = -(-len(text) // get_terminal_size().columns)
        print(f"\x1b[{lines}A\x1b[J", end="", flush=True)


def _input(question: str) -> str:
    """Ask for a line. `input` misses a Ctrl-C that comes just before it reads, so it reads when there is a line."""
    print(question, end="", flush=True)
    if os.name == "posix" and sys.stdin.isatty():
        _wait_for_line()
    return input()


def _hidden_input(question: str) -> str:
    """Ask for a line that is not shown. `getpass` misses the same Ctrl-C, and only asks where this is no terminal."""
    if os.name != "posix" or not sys.stdin.isatty():
        return getpass.getpass(question)
    import termios

    before = termios.tcgetattr(sys.stdin)
    hidden = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    try:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, hidden)
        print(question, end="", flush=True)
        _wait_for_line()
        line = os.read(sys.stdin.fileno(), 4096).decode(errors="replace")  # a terminal gives one line
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)
    if not line:
        raise EOFError
    print()
    return line


def _wait_for_line() -> None:
    """Wait until a line can be read; a signal ends it, also one that came just before."""
    signals, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.set_wakeup_fd(wake)
    try:
        select.select([sys.stdin, signals], [], [])
    finally:
        signal.set_wakeup_fd(before)
        os.close(signals)
        os.close(wake)


def _read(ask: Callable[[], str]) -> str:
    """Ask; Ctrl-C and Ctrl-D leave."""
    try:
        return ask()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    except EOFError:
        print(file=sys.stderr)
        raise typer.Exit(0) from None

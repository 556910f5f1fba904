"""The question which model answers, for a chat that names none and finds none; and whether to fetch one it names."""

import getpass
import sys
from collections.abc import Callable

import typer

from palaver.cli.output import INTERRUPTED

QUESTION = """\
{reason}Which model should answer?
  1  the small one, now ({small}): it talks, in English, and is often wrong; good for a look around
  2  Qwen, fetched once ({better}, 2 GB of memory): short useful answers and tools; the first takes up to a minute
  3  a key of yours (Gemini's is free: https://aistudio.google.com/apikey): the best answers, from that service
     An Ollama that runs on this machine is found by itself. {program} chat --choose asks again."""


def ask_for_model(reason: str) -> str:
    """Ask which model answers, fetch it or take the key, remember the choice, and return the name of the model."""
    from msgspec.structs import replace

    from palaver.model_choice import BETTER, SMALL, program_command
    from palaver.models.local import size_text
    from palaver.models.local.weights import WEIGHTS
    from palaver.platforms.terminal.found_model import load_choice, save_choice
    from palaver.platforms.terminal.output import ScreenDisplay

    small, better = ("already here" if _is_here(name) else size_text(WEIGHTS[name].size) for name in (SMALL, BETTER))
    question = QUESTION.format(reason=reason, small=small, better=better, program=program_command())
    ScreenDisplay(sys.stdout, sys.stdout, coloured=False).note(*question.splitlines(), indent=5)
    answer = _answer("1, 2 or 3 [1]: ", ("1", "2", "3"), default="1")
    if answer == "3":
        return _ask_for_key()
    name = SMALL if answer == "1" else BETTER
    _fetch(name)
    save_choice(replace(load_choice(), model=name))
    return name


def offer_to_fetch(name: str) -> None:
    """Ask whether a model of this machine that is missing is fetched now, and do it; a no leaves it missing."""
    from palaver.models.local import size_text
    from palaver.models.local.weights import WEIGHTS

    if name not in WEIGHTS or _is_here(name):
        return
    question = f"{name} has not been fetched. Fetch it now ({size_text(WEIGHTS[name].size)}, once)? [y/n, y]: "
    if _answer(question, ("y", "n"), default="y") == "y":
        _fetch(name)


def _is_here(name: str) -> bool:
    from palaver.models.local import find_weights, has_runtime

    return has_runtime() and find_weights(name) is not None


def _fetch(name: str) -> None:
    from palaver.cli.model import get

    if not _is_here(name):
        get(name)


def _ask_for_key() -> str:
    """Ask for a key, remember it, and return the model that it is for."""
    from palaver.platforms.terminal.found_model import (
        KEY_MODELS,
        RememberedChoice,
        key_name_of,
        load_choice,
        model_for_key,
        provider_names,
        save_choice,
    )

    key = ""
    while not key:
        key = _read(lambda: getpass.getpass("The key (it is not shown): ")).strip()
    key_name = key_name_of(key)
    if key_name is None:
        services = provider_names()
        named = ", ".join(f"{number} {name}" for number, name in enumerate(services, 1))
        number = _answer(f"Whose key is it? {named}: ", tuple(str(n) for n in range(1, len(services) + 1)))
        key_name = KEY_MODELS[int(number) - 1][0][0]
    model = model_for_key(key_name)
    path = save_choice(RememberedChoice(model=model, keys={**load_choice().keys, key_name: key}))
    print(f"The key is in {path}, which only you can read.")
    return model


def _answer(question: str, allowed: tuple[str, ...], *, default: str = "") -> str:
    while True:
        said = _read(lambda: _input(question)).strip() or default
        if said in allowed:
            return said


def _input(question: str) -> str:
    """Ask for a line. `input(question)` misses a Ctrl-C that comes between its prompt and its reading."""
    print(question, end="", flush=True)
    return input()


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

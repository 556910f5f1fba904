"""Every command that a text of the chat names can be typed as it is printed."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from click import Group

from tertulia.cli import app
from tertulia.cli.model_choice import QUESTION
from tertulia.errors import TertuliaError
from tertulia.messages import Author
from tertulia.model_choice import CHAT_HINTS, START_HINTS, Hints, ModelChoice
from tertulia.models import NAME_FORMS, Scripted
from tertulia.platforms.terminal import choose_model
from tertulia.platforms.terminal.commands import HELP, ChatCommand, parse_line, usage_error
from tertulia.platforms.terminal.found_model import RememberedChoice, find_model
from tertulia.platforms.terminal.session import MEMORY_OFF
from tertulia.platforms.terminal.text import greeting, removal_hint, tool_lines

SMALL = ModelChoice(model=Scripted(name="smollm2"), name="smollm2")
NAMES = ("gemini-3.8-flash", "openai:gpt-5.6", "groq:llama", "compatible:mine", "gpt-5", "qwen", "openai:")

# A command ends at punctuation, a closing bracket, or what it does.
_SHELL = re.compile(r"tertulia ((?:chat|model|db)(?: [^;:,)…`]+?)?)(?= asks|[;:,)…`]|$)")
_COMMAND = re.compile(r"(?<![\w.…/])/([a-z]+)((?: [a-zA-Z0-9:.-]+)?)(?=[ ;:,.)]|$)")


def errors_of(hints: Hints) -> Iterator[str]:
    for name in NAMES:
        try:
            choose_model(name, environment={}, hints=hints)
        except TertuliaError as error:
            yield str(error)


def texts() -> Iterator[str]:
    for hints in (START_HINTS, CHAT_HINTS):
        yield from errors_of(hints)
        for fetched in (True, False):
            for key in (None, "GEMINI_API_KEY"):
                yield from greeting(SMALL, hints, program="tertulia", fetched=fetched, key=key)
    yield from HELP.splitlines()
    yield from QUESTION.format(reason="", small="98 MB", better="1.1 GB", program="tertulia").splitlines()
    yield from tool_lines((), "smollm2")
    yield removal_hint("my chat.db", Author(id="ann lee", name="Ann"))
    chosen = find_model({"OLLAMA_HOST": "127.0.0.1:1"}, RememberedChoice(model="openai:gpt-5.6"), program="tertulia")
    assert chosen
    yield chosen.why
    yield f"{MEMORY_OFF} {NAME_FORMS} /model NAME chooses another"


def shell_commands() -> list[str]:
    return sorted({found[1].strip() for text in texts() for found in _SHELL.finditer(text)})


@pytest.fixture(autouse=True)
def program_without_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", ["tertulia", "chat"])
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path))


def test_the_commands_are_found() -> None:
    assert shell_commands() == [
        "chat",
        "chat --choose",
        "chat --model gemini-3.8-flash",
        "db forget 'ann lee' --platform terminal --db 'my chat.db'",
        "model get qwen",
    ]


def test_what_is_to_be_run_in_a_shell_is_a_command_with_these_options() -> None:
    for line in shell_commands():
        command, arguments = typer.main.get_command(app), shlex.split(line)
        while isinstance(command, Group):
            command = command.commands[arguments.pop(0)]
        command.make_context(line, arguments)


def test_what_is_to_be_typed_in_the_chat_is_a_command() -> None:
    for text in texts():
        for found in _COMMAND.finditer(text):
            typed = parse_line(found[0].split(":")[0] if found[0].endswith(":") else f"/{found[1]}")
            assert isinstance(typed, ChatCommand), text
            assert usage_error(typed) is None, text


def test_a_model_that_a_hint_names_can_be_chosen() -> None:
    lines = greeting(SMALL, CHAT_HINTS, program="tertulia", fetched=True, key="GEMINI_API_KEY")
    named = [line.split("/model ")[1].split(":")[0] for line in lines if "/model " in line]

    assert named == ["qwen", "gemini-3.8-flash"]

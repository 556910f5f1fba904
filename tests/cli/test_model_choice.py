"""Which model answers: a key is checked before it is stored, and never stays on the screen."""

import getpass
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from platforms.terminal.test_main import beside
from tertulia.cli.model_choice import ask_for_model, is_key, key_fault
from tertulia.sim import GeminiSim, OpenAISim


class Person:
    """Answers each question with the next line."""

    def __init__(self, *lines: str) -> None:
        self._lines: Iterator[str] = iter(lines)

    def __call__(self, _: str = "") -> str:
        return next(self._lines)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    return tmp_path / "tertulia" / "chat.json"


def asked(monkeypatch: pytest.MonkeyPatch, *lines: str) -> str:
    """Return the model of a person who gives these answers; Enter is an empty line."""
    person = Person(*lines)
    monkeypatch.setattr("builtins.input", person)
    monkeypatch.setattr(getpass, "getpass", person)
    return ask_for_model("")


def stored(config: Path) -> dict[str, str]:
    keys: dict[str, str] = json.loads(config.read_bytes())["keys"]
    return keys


def test_a_key_that_the_service_refuses_is_not_stored_and_another_is_asked_for(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with beside(GeminiSim(keys=frozenset({"AIza-good"}))) as sim:
        monkeypatch.setenv("TERTULIA_GEMINI_BASE_URL", sim.url)
        monkeypatch.setenv("GEMINI_API_KEY", "AIza-good")  # the pasted one is meant
        model = asked(monkeypatch, "x", "3", "hello world", "AIza-bad", "AIza-good")

    said = capsys.readouterr().out.splitlines()[5:]
    assert (model, stored(config)) == ("gemini-3.8-flash", {"GEMINI_API_KEY": "AIza-good"})
    assert said[:2] == [
        "1, 2 or 3 [1]: (1, 2 or 3, please; Ctrl-D leaves)",
        "1, 2 or 3 [1]: (a key is one word, without spaces)",
    ]
    assert said[2].startswith("(Gemini does not accept the key: ")
    assert said[2].endswith("; it is not stored)")
    assert said[3:] == [f"The key is in {config}, which only you can read."]


def test_a_key_that_is_pasted_at_the_first_question_is_taken_and_erased(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "sk-proj-" + "k" * 40
    with beside(OpenAISim(keys=frozenset({key}))) as sim:
        monkeypatch.setenv("TERTULIA_OPENAI_BASE_URL", f"{sim.url}/v1")
        model = asked(monkeypatch, key)

    assert (model, stored(config)) == ("openai:gpt-5.6", {"OPENAI_API_KEY": key})
    assert "1, 2 or 3 [1]: \x1b[2A\x1b[J" in capsys.readouterr().out  # it took two lines


def test_enter_goes_back_and_a_key_is_no_answer_to_whose_it_is(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "k" * 20
    with beside(OpenAISim(keys=frozenset({key}))) as sim:
        monkeypatch.setenv("TERTULIA_OPENAI_BASE_URL", f"{sim.url}/v1")
        model = asked(monkeypatch, "3", "", "3", key, key, "", key, "2")

    out = capsys.readouterr().out
    assert (model, stored(config)) == ("openai:gpt-5.6", {"OPENAI_API_KEY": key})
    assert "Its number (Enter goes back): \x1b[2A\x1b[J(a number from 1 to 6, please)\n" in out


def test_a_service_that_cannot_be_reached_keeps_nobody_from_giving_a_key(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERTULIA_GEMINI_BASE_URL", "http://127.0.0.1:1")

    assert asked(monkeypatch, "3", "AIza-any") == "gemini-3.8-flash"
    assert "(the key could not be checked: no connection to http://127.0.0.1:1," in capsys.readouterr().out
    assert stored(config) == {"GEMINI_API_KEY": "AIza-any"}


@pytest.mark.parametrize(("leaves_by", "status"), [(EOFError, 0), (KeyboardInterrupt, 130)])
def test_whoever_wants_no_model_is_told_what_works_without_one(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    leaves_by: type[BaseException],
    status: int,
) -> None:
    def leave(_: str = "") -> str:
        raise leaves_by

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("builtins.input", leave)
    with pytest.raises(typer.Exit) as left:
        ask_for_model("")

    said = capsys.readouterr().out.splitlines()[-1]
    assert said.endswith("Nothing was fetched or stored. tertulia demo shows a bot without a model.")
    assert (left.value.exit_code, config.exists()) == (status, False)


@pytest.mark.parametrize(
    ("said", "fault", "is_one"),
    [
        ("AIza1", "", True),
        ("0123456789abcdef", "", True),
        ("bad-key", "", False),
        ("hello world this is no key", "a key is one word, without spaces", False),
        ("", "a key is one word, without spaces", False),
        ("AIza\x1b[31m", "a key is one word, without spaces", False),
    ],
)
def test_what_may_be_a_key(said: str, fault: str, is_one: bool) -> None:
    assert (key_fault(said), is_key(said)) == (fault, is_one)

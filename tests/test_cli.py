"""The command line, run as a user runs it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

LEGAL = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
EMPTY: dict[str, object] = {"contents": []}


def palaver(*arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "palaver", *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, env=env, check=False)


@contextmanager
def simulator(*arguments: str) -> Iterator[str]:
    """The address of a simulator that runs as a process of its own."""
    command = [sys.executable, "-m", "palaver", "sim", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[2]
    finally:
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert (process.wait(10), said.splitlines()[-1]) == (0, "stopped")
        process.stdout.close()


def test_a_legal_request_is_called_legal() -> None:
    done = palaver("lint", "-", given=json.dumps(LEGAL))

    assert (done.returncode, done.stdout, done.stderr) == (0, "legal\n", "")


def test_violations_are_named_and_the_exit_status_is_one() -> None:
    done = palaver("lint", "-", given=json.dumps(EMPTY))

    expected = "contents: no-contents: * GenerateContentRequest.contents: contents is not specified\n"
    assert (done.returncode, done.stdout) == (1, expected)


def test_json_for_machines() -> None:
    done = palaver("lint", "-", "--json", given=json.dumps(EMPTY))

    message = "* GenerateContentRequest.contents: contents is not specified"
    assert json.loads(done.stdout) == [{"rule": "no-contents", "where": "contents", "message": message}]
    assert done.returncode == 1


def test_json_of_a_legal_request_is_an_empty_list(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(LEGAL))

    done = palaver("lint", str(file), "--json")

    assert (done.returncode, done.stdout) == (0, "[]\n")


def test_the_request_itself_says_whose_rules() -> None:
    request = {"model": "o1-mini", "messages": [{"role": "system", "content": "x"}]}

    done = palaver("lint", "-", given=json.dumps(request))

    assert "does not support 'system' with this model" in done.stdout


def test_model_and_strict_choose_the_rules() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    result = {"functionResponse": {"name": "f", "response": {}}}
    request = {
        "contents": [*LEGAL["contents"], {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    }

    found = {
        (model, strict): palaver("lint", "-", "--model", model, *strict, given=json.dumps(request)).returncode
        for model in ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.8-flash")
        for strict in ((), ("--strict",))
    }

    assert found == {
        ("gemini-2.0-flash", ()): 0,
        ("gemini-2.0-flash", ("--strict",)): 0,
        ("gemini-2.5-flash", ()): 0,
        ("gemini-2.5-flash", ("--strict",)): 1,
        ("gemini-3.8-flash", ()): 1,
        ("gemini-3.8-flash", ("--strict",)): 1,
    }


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("lint", "/nowhere.json"), "palaver: cannot read /nowhere.json: No such file or directory\n"),
        (("lint", "/"), "palaver: cannot read /: Is a directory\n"),
        (
            ("sim", "gemini", "--model-behaviour", "dance"),
            "palaver: --model-behaviour dance: unknown behaviour 'dance': expected actor, echo or script:FILE\n",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = palaver(*arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_a_traceback_is_shown_when_asked_for() -> None:
    done = palaver("lint", "/nowhere.json", PALAVER_TRACEBACK="1")

    assert "Traceback" in done.stderr


def test_a_port_in_use_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = palaver("sim", "openai", "--port", str(taken.getsockname()[1]))

    assert done.returncode == 2
    assert done.stderr.startswith("palaver: cannot listen: Address already in use")
    assert done.stderr.count("\n") == 1


def test_an_unknown_fault_is_answered_with_those_there_are() -> None:
    done = palaver("sim", "gemini", "--fail", "earthquake")

    assert done.returncode == 2
    assert done.stderr.startswith("palaver: --fail earthquake: no such fault; there are BlockedPrompt, CutStream,")


def test_the_gemini_simulator_answers_and_fails_as_told() -> None:
    with simulator("gemini", "--port", "0", "--model-behaviour", "echo", "--fail", "overloaded:1") as url:
        path = f"{url}/v1beta/models/gemini-3.8-flash:generateContent"
        answers = [httpx2.post(path, json=LEGAL, headers={"x-goog-api-key": "any"}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [503, 200]
    assert answers[1].json()["candidates"][0]["content"]["parts"][0]["text"] == "hi"


def test_the_openai_simulator_answers_from_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('["one", "two"]')
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}

    with simulator("openai", "--port", "0", "--model-behaviour", f"script:{script}") as url:
        path = f"{url}/chat/completions"
        answers = [httpx2.post(path, json=body, headers={"authorization": "Bearer any"}) for _ in range(2)]

    assert [answer.json()["choices"][0]["message"]["content"] for answer in answers] == ["one", "two"]


@pytest.mark.parametrize("command", [("chat",), ("lint",), ("model", "get"), ("sim", "gemini"), ("sim", "openai")])
def test_every_command_has_help_with_an_example(command: tuple[str, ...]) -> None:
    done = palaver(*command, "--help")

    assert f"Example: palaver {' '.join(command)}" in done.stdout


def test_the_version_is_told() -> None:
    assert palaver("--version").stdout == "palaver 0.1.0\n"

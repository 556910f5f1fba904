"""The simulators run as commands, fail as told, and stop when nobody wants them."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from cli.command import TERTULIA, tertulia
from tertulia.cli.sim import SERVICES, ServiceCommand

LEGAL = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@contextmanager
def simulator(*arguments: str) -> Iterator[str]:
    """The address of a simulator that runs as a process of its own."""
    command = [*TERTULIA, "sim", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[2]
    finally:
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert (process.wait(10), said.splitlines()[-1]) == (0, "stopped")
        process.stdout.close()


def test_a_port_in_use_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = tertulia("sim", "openai", "--port", str(taken.getsockname()[1]))

    assert done.returncode == 2
    assert done.stderr.startswith("tertulia: cannot listen: Address already in use")
    assert done.stderr.count("\n") == 1


def test_an_unknown_fault_is_answered_with_those_there_are() -> None:
    done = tertulia("sim", "gemini", "--fail", "earthquake")

    assert done.returncode == 2
    assert done.stderr.startswith(
        "tertulia: --fail earthquake: no such fault; there are blocked-prompt, content-filter,"
    )


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_the_help_names_every_fault(service: ServiceCommand) -> None:
    refused = tertulia("sim", service.name, "--fail", "earthquake").stderr
    faults = refused.partition("there are ")[2].partition(", each")[0]

    assert ", ".join(sorted(service.faults)) == faults
    assert faults.replace(" ", "") in "".join(tertulia("sim", service.name, "--help").stdout.split())


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


@pytest.mark.parametrize(
    ("models", "statuses"),
    [(["any"], [200, 200]), (["gemini-5-neon"], [200, 404]), (["gemini-5-neon,gemini-3.8-flash"], [200, 200])],
)
def test_the_models_to_serve_are_named(models: list[str], statuses: list[int]) -> None:
    with simulator("gemini", "--port", "0", "--models", *models) as url:
        paths = [f"{url}/v1beta/models/{name}:generateContent" for name in ("gemini-5-neon", "gemini-3.8-flash")]
        answers = [httpx2.post(path, json=LEGAL, headers={"x-goog-api-key": "any"}) for path in paths]

    assert [answer.status_code for answer in answers] == statuses


@pytest.mark.parametrize("models", ["any,gpt-5.6", "gpt-5.6,", ""])
def test_models_that_are_no_list_of_names_are_refused_in_one_line(models: str) -> None:
    done = tertulia("sim", "openai", "--models", models)

    message = f"tertulia: --models {models}: write any, or names separated by commas\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_a_simulator_takes_the_form_of_sounds_that_is_named() -> None:
    sound = {"type": "audio_url", "audio_url": {"url": "https://example.com/a.mp3"}}
    body = {"model": "compatible-1", "messages": [{"role": "user", "content": [sound]}]}
    with simulator("openai", "--port", "0", "--audio", "audio_url") as url:
        taken = httpx2.post(f"{url}/chat/completions", json=body, headers={"authorization": "Bearer any"})
    wrong, foreign = tertulia("sim", "openai", "--audio", "mp3"), tertulia("sim", "gemini", "--audio", "both")

    assert taken.status_code == 200
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "tertulia: --audio mp3: there are input_audio, audio_url, both, none\n",
    )
    assert (foreign.returncode, foreign.stderr) == (2, "tertulia: --audio both: there are none of this service\n")


def test_a_simulator_whose_first_line_alone_was_wanted_leaves_quietly() -> None:
    process = subprocess.Popen(
        [*TERTULIA, "sim", "gemini", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None

    process.stdout.close()
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (1, "")


def test_a_simulator_answers_though_nobody_reads_what_it_tells() -> None:
    process = subprocess.Popen([*TERTULIA, "sim", "gemini", "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[2]
    process.stdout.readline()
    process.stdout.close()
    path = f"{url}/v1beta/models/gemini-3.8-flash:generateContent"

    answers = [httpx2.post(path, json=LEGAL, headers={"x-goog-api-key": "any"}).status_code for _ in range(2)]
    process.send_signal(signal.SIGINT)

    assert (answers, process.wait(60)) == ([200, 200], 1)


def test_a_person_writes_to_a_bot_of_the_telegram_simulator() -> None:
    with simulator("telegram", "--port", "0", "--token", "123456:TEST", "--fail", "refused") as url:
        httpx2.post(f"{url}/control/user", json={"name": "Alice"})
        httpx2.post(f"{url}/control/send", json={"as": "Alice", "chat": "Alice", "text": "Hello!"})
        (update,) = httpx2.get(f"{url}/bot123456:TEST/getUpdates").json()["result"]
        reply = {"chat_id": update["message"]["chat"]["id"], "text": "Good evening."}
        answers = [httpx2.post(f"{url}/bot123456:TEST/sendMessage", json=reply) for _ in range(2)]
        messages = httpx2.post(f"{url}/control/messages", json={"chat": "Alice"}).json()["result"]

    assert [answer.status_code for answer in answers] == [400, 200]
    assert [message["text"] for message in messages] == ["Hello!", "Good evening."]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--fail", "earthquake"), "--fail earthquake: no such fault; there are busy, refused, request-lost,"),
        (("--fail", "busy:often"), "--fail busy:often: 'often' is no number of times; write a number, as in busy:2"),
        (("--token", "secret"), "--token: write digits, a colon and a secret, as in 123456:TEST"),
    ],
)
def test_options_of_the_telegram_simulator_that_are_wrong(option: tuple[str, str], words: str) -> None:
    done = tertulia("sim", "telegram", *option)

    assert done.returncode == 2
    assert done.stderr.startswith(f"tertulia: {words}")
    assert done.stderr.count("\n") == 1

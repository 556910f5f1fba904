"""A chat that names no model takes the one that is there."""

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import pytest

from cli.command import in_this_process
from platforms.terminal.ollama import listed, ollama, smollm2
from platforms.terminal.test_main import environment
from tertulia.errors import InvalidValue
from tertulia.model_choice import ollama_url
from tertulia.models.local import find_weights
from tertulia.platforms.terminal.found_model import (
    FoundModel,
    RememberedChoice,
    find_model,
    find_ollama_model,
    key_name_of,
    load_choice,
    model_for_key,
    save_choice,
)

NONE = RememberedChoice()
NOWHERE = {"OLLAMA_HOST": "127.0.0.1:1"}


@pytest.fixture(autouse=True)
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path / "models"))


def found_name(environment: dict[str, str], choice: RememberedChoice = NONE) -> str | None:
    found = find_model({**NOWHERE, **environment}, choice, program="tertulia")
    return found.name if found else None


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"GOOGLE_API_KEY": "g", "OPENAI_API_KEY": "o"}, "gemini-3.8-flash"),
        ({"GROQ_API_KEY": "q", "OPENAI_API_KEY": "o"}, "openai:gpt-5.6"),
        ({"OPENAI_API_KEY": "o", "TERTULIA_OPENAI_BASE_URL": "http://x/v1"}, None),
        ({"GROQ_API_KEY": "q"}, "groq:llama-3.3-70b-versatile"),
        ({"MISTRAL_API_KEY": "m", "DEEPSEEK_API_KEY": "d"}, "mistral:mistral-medium-latest"),
        ({"OPENROUTER_API_KEY": "r"}, "openrouter:openrouter/auto"),
        ({"GEMINI_API_KEY": ""}, None),
    ],
)
def test_the_first_key_decides(environment: dict[str, str], name: str | None) -> None:
    assert found_name(environment) == name


@pytest.mark.parametrize(
    ("chosen", "environment", "name"),
    [
        ("openai:gpt-5.4", {"GEMINI_API_KEY": "g"}, "openai:gpt-5.4"),
        ("qwen", {"GEMINI_API_KEY": "g"}, "gemini-3.8-flash"),  # it has been deleted
        ("smollm2", {"GEMINI_API_KEY": "g"}, "gemini-3.8-flash"),
    ],
)
def test_what_was_chosen_comes_first_unless_it_is_the_small_model_or_gone(
    chosen: str, environment: dict[str, str], name: str
) -> None:
    assert found_name(environment, RememberedChoice(model=chosen)) == name


def test_the_small_model_is_taken_where_it_was_chosen() -> None:
    pytest.importorskip("xllamacpp")
    if find_weights("smollm2") is None:
        pytest.skip("the weights of smollm2 are not here")

    assert (found_name({}), found_name({}, RememberedChoice(model="smollm2"))) == (None, "smollm2")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 (as people set it for the server)
        ("box:1234", "http://box:1234"),
        (":1234", "http://127.0.0.1:1234"),
        ("http://box", "http://box:80"),
        ("https://box/ollama/", "https://box:443/ollama"),
        ("[::1]:1234", "http://[::1]:1234"),
    ],
)
def test_the_address_of_ollama_is_read_as_its_own_client_reads_it(given: str, url: str) -> None:
    assert ollama_url({"OLLAMA_HOST": given}) == url


def test_of_the_models_of_an_ollama_the_one_that_was_fetched_last_and_can_talk_answers() -> None:
    models = [
        listed("cloud:120b", remote_host="https://ollama.com"),
        listed("nomic-embed-text:latest", family="nomic-bert"),
        listed("all-in-one:latest"),
        listed("gemma3:4b", family="gemma3"),
        listed("llama3.2:latest"),
    ]
    can = {"all-in-one:latest": ["embedding"], "gemma3:4b": ["completion", "vision"]}
    with ollama(*models, capabilities=can) as served:
        found = find_ollama_model({"OLLAMA_HOST": served.url})

        assert found == FoundModel(
            name="ollama:gemma3:4b",
            base_url=f"{served.url}/v1",
            why="Ollama serves it; /model ollama:llama3.2:latest asks another of its models",
            has_tools=False,
        )


@pytest.mark.parametrize("models", [[], [listed("bge-m3", family="bert")]])
def test_an_ollama_without_a_model_that_talks_is_passed_over(models: list[dict[str, object]]) -> None:
    with ollama(*models) as served:
        assert find_ollama_model({"OLLAMA_HOST": served.url}) is None


@pytest.mark.parametrize("host", ["127.0.0.1:1", "http://", "no host at all", "http://[", "ftp://127.0.0.1:1"])
def test_where_nothing_answers_nothing_is_found(host: str) -> None:
    assert find_ollama_model({"OLLAMA_HOST": host}) is None


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """Serve one answer to every request; return the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # the client may have left
                self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 (the name is of http.server)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.01}).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"\xff\xfe{", None),
        (b"[" * 200_000, None),
        (b" " * 9_000_000 + b'{"models": [{"name": "a"}]}', None),
        (b'{"models": [{"name": ""}]}', None),
        (b'{"models": [{"name": "a"}], "capabilities": 5}', "ollama:a"),
    ],
)
def test_whatever_answers_in_the_place_of_ollama_a_chat_can_begin(body: bytes, found: str | None) -> None:
    with answering(body) as url:
        model = find_ollama_model({"OLLAMA_HOST": url})

    assert (model.name if model else None) == found


def chat_with(url: str, *arguments: str) -> tuple[int, str, str]:
    with patch.dict(os.environ, environment(OLLAMA_HOST=url), clear=True):
        return in_this_process("chat", *arguments, given="What is the capital of France?\n")


def test_a_chat_asks_the_ollama_that_answers() -> None:
    with ollama(listed("llama3.2:latest"), answer=lambda messages: f"You said: {messages[-1]['content']}") as served:
        status, out, errors = chat_with(served.url)

    assert (status, out.strip()) == (0, "You said: What is the capital of France?")
    assert errors.splitlines()[0] == f"llama3.2:latest answers at {served.url}/v1. (Ollama serves it)"
    assert served.requests[0]["tools"][0]["function"]["name"] == "calculate"


@pytest.mark.parametrize("named", [(), ("--model", "ollama:old:latest")])
def test_a_model_of_ollama_that_takes_no_tools_gets_none(named: tuple[str, ...]) -> None:
    with ollama(listed("old:latest"), capabilities={"old:latest": ["completion"]}) as served:
        chat_with(served.url, *named)

    assert "tools" not in served.requests[0]


def test_a_model_that_ollama_does_not_have_is_refused_with_those_that_it_has() -> None:
    with ollama(listed("llama3.2:latest"), listed("nomic-embed-text", family="nomic-bert")) as served:
        status, out, errors = chat_with(served.url, "--model", "ollama:nonesuch")

    assert (status, out, errors) == (
        2,
        "",
        f"tertulia: the Ollama at {served.url} does not have nonesuch; it has llama3.2:latest. "
        "`ollama pull nonesuch` fetches it\n",
    )


def test_an_ollama_in_front_of_the_embedded_model_answers() -> None:
    pytest.importorskip("xllamacpp")
    if find_weights("smollm2") is None:
        pytest.skip("the weights of smollm2 are not here")
    with ollama(listed("smollm2:135m"), answer=smollm2) as served:
        status, out, _ = chat_with(served.url)

    assert (status, out.split()) == (0, served.answers[0].split())
    assert len(served.answers) == 1
    assert served.answers[0]


def test_a_choice_is_remembered_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "config" / "chat.json"
    choice = RememberedChoice(model="gemini-3.8-flash", keys={"GEMINI_API_KEY": "secret"})

    save_choice(RememberedChoice(), path)
    save_choice(choice, path)

    assert load_choice(path) == choice
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["chat.json"]


def test_a_choice_that_is_a_link_stays_one_and_its_file_is_never_half_written(tmp_path: Path) -> None:
    kept, path = tmp_path / "kept" / "chat.json", tmp_path / "chat.json"
    kept.parent.mkdir()
    path.symlink_to(kept)
    choices = [RememberedChoice(model=f"openai:{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda choice: save_choice(choice, path), choices))

    assert path.is_symlink()
    assert load_choice(kept) in choices
    assert [one.name for one in kept.parent.iterdir()] == ["chat.json"]


def test_a_damaged_choice_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text("{")

    with pytest.raises(InvalidValue, match=r"chat\.json is damaged: delete it, and choose again$"):
        load_choice(path)


@pytest.mark.parametrize(
    ("key", "name"), [("AIza1", "GEMINI_API_KEY"), ("sk-or-v1-1", "OPENROUTER_API_KEY"), ("sk-1", None)]
)
def test_a_key_tells_whose_it_is(key: str, name: str | None) -> None:
    assert key_name_of(key) == name


def test_a_key_has_a_model() -> None:
    assert model_for_key("GOOGLE_API_KEY") == "gemini-3.8-flash"

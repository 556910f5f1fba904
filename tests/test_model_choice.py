"""A name chooses a model; what cannot be asked is said in one line that tells what to do."""

from pathlib import Path
from typing import Any

import pytest

from tertulia.errors import InvalidValue, KeyMissing, NotInstalled, TertuliaError
from tertulia.model_choice import CHAT_HINTS
from tertulia.models import Gemini, OpenAI, Scripted, provider_of
from tertulia.platforms.terminal import choose_model

KEYS = {"GEMINI_API_KEY": "g", "OPENAI_API_KEY": "o", "GROQ_API_KEY": "q"}


def here(*names: str) -> Any:
    """The local models, of which only *names* have been fetched."""

    def local(name: str) -> Scripted:
        if name not in names:
            raise NotInstalled(f"the weights of {name} are not here")
        return Scripted(name=name)

    return local


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gemini-3.8-flash", "gemini"),
        ("models/gemini-3.8-flash", "gemini"),
        ("gemma-4-31b-it", "gemini"),
        ("openai:gpt-5.6", "openai"),
        ("openai:gemini-3.8-flash", "openai"),
        ("ollama:llama3:8b", "ollama"),
        ("smollm2", "local"),
        ("qwen", "local"),
        ("./my/model.gguf", "local"),
        ("gpt-5.6", ""),
        ("nobody:x", ""),
        ("", ""),
    ],
)
def test_a_name_tells_who_serves_the_model(name: str, kind: str) -> None:
    assert provider_of(name) == kind


@pytest.mark.parametrize(
    ("text", "base_url", "kind", "name"),
    [
        ("gemini-3.8-flash", None, Gemini, "gemini-3.8-flash"),
        ("gemini-3.8-flash", "http://127.0.0.1:1", Gemini, "gemini-3.8-flash"),
        ("openai:gpt-5.6", None, OpenAI, "gpt-5.6"),
        ("openai:my-model", "http://somewhere/v1", OpenAI, "my-model"),
        ("openai:nobody-knows", None, OpenAI, "nobody-knows"),
        ("groq:llama", None, OpenAI, "llama"),
        ("smollm2", None, Scripted, "smollm2"),
        (None, None, Scripted, "smollm2"),
    ],
)
def test_a_name_chooses_a_model(text: str | None, base_url: str | None, kind: type[Any], name: str) -> None:
    chosen = choose_model(text, base_url, environment=KEYS, local=here("smollm2"))

    assert (type(chosen.model), chosen.model.name) == (kind, name)


@pytest.mark.parametrize(
    ("fetched", "name", "small"), [(["smollm2"], "smollm2", True), (["smollm2", "qwen"], "qwen", False)]
)
def test_without_a_name_the_better_of_the_embedded_models_answers(fetched: list[str], name: str, small: bool) -> None:
    chosen = choose_model(None, environment=KEYS, local=here(*fetched))

    assert (chosen.name, chosen.small) == (name, small)


def test_a_service_on_this_machine_needs_no_key() -> None:
    chosen = choose_model("openai:mine", "http://localhost:8000/v1", environment={})

    assert chosen.model.name == "mine"


@pytest.mark.parametrize(
    ("text", "base_url", "error", "words"),
    [
        ("gemini-3.8-flash", None, KeyMissing, "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("openai:gpt-5.6", None, KeyMissing, "no key for gpt-5.6 at https://api.openai.com/v1: set OPENAI_API_KEY"),
        ("groq:llama", None, KeyMissing, "set GROQ_API_KEY"),
        ("openai:my-model", None, KeyMissing, "set OPENAI_API_KEY, or say where else it is served: --base-url http"),
        ("compatible:my-model", None, InvalidValue, "where is 'my-model' served. Say it with --base-url http"),
        ("openai:", None, InvalidValue, "openai: names no model: write openai:NAME"),
        ("gpt-5.6", None, InvalidValue, r"no model is called 'gpt-5.6', did you mean openai:gpt-5.6\?"),
        ("llama", None, InvalidValue, r"no model is called 'llama' \(openai:NAME, if it is OpenAI's\); there are"),
        ("gemini-", None, InvalidValue, "no model is called 'gemini-'"),
        ("gemini-3.8-flash ", None, InvalidValue, "called 'gemini-3.8-flash ', did you mean gemini-3.8-flash"),
        ("a\nb", None, InvalidValue, r"no model is called 'a\\nb'"),
        (None, "http://x", InvalidValue, "an address goes with openai:NAME"),
        ("qwen", "http://x", InvalidValue, "an address goes with openai:NAME"),
        (None, None, NotInstalled, "the weights of smollm2 are not here"),
    ],
)
def test_what_cannot_be_asked_is_said_with_what_to_do(
    text: str | None, base_url: str | None, error: type[TertuliaError], words: str
) -> None:
    with pytest.raises(error, match=words):
        choose_model(text, base_url, environment={}, local=here())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gemini-3.8-flash", r"start again with GEMINI_API_KEY or GOOGLE_API_KEY set .*, or stay with the model that"),
        ("openai:gpt-5.6", r"start again with OPENAI_API_KEY set, or say where else .*: /model NAME http://…/v1"),
        ("compatible:my-model", r"where is 'my-model' served. Say it with /model NAME http"),
    ],
)
def test_in_a_chat_what_to_do_is_a_command(text: str, words: str) -> None:
    with pytest.raises(TertuliaError, match=words) as raised:
        choose_model(text, environment={}, hints=CHAT_HINTS)

    assert "--" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "base_url", "environment", "address"),
    [
        ("gemini-3.8-flash", None, {}, None),
        ("gemini-3.8-flash", None, {"TERTULIA_GEMINI_BASE_URL": "http://set"}, "http://set"),
        ("gemini-3.8-flash", "http://given", {"TERTULIA_GEMINI_BASE_URL": "http://set"}, "http://given"),
        ("openai:gpt-5.6", None, {}, None),
        ("openai:gpt-5.6", None, {"TERTULIA_OPENAI_BASE_URL": "http://set/v1"}, "http://set/v1"),
        ("groq:llama", None, {"TERTULIA_OPENAI_BASE_URL": "http://set/v1"}, None),
    ],
)
def test_an_address_that_was_said_is_known(
    text: str, base_url: str | None, environment: dict[str, str], address: str | None
) -> None:
    assert choose_model(text, base_url, environment={**KEYS, **environment}).base_url == address


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/nowhere/none.gguf", "there is no file /nowhere/none.gguf"),
        ("~nobodyx/x.gguf", "there is no home directory ~nobodyx"),
        (f"{'x' * 5000}.gguf", r"cannot read 'x+\.\.\.x+\.gguf': File name too long"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(name: str, words: str) -> None:
    pytest.importorskip("xllamacpp")

    with pytest.raises(InvalidValue, match=f"^{words}$"):
        choose_model(name)


def test_weights_that_are_not_here_are_said_with_what_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path))
    monkeypatch.setattr("sys.argv", [".venv/bin/tertulia", "chat"])
    monkeypatch.setenv("PATH", "")

    with pytest.raises(NotInstalled, match=r"\(1\.1 GB, once\): \.venv/bin/tertulia model get qwen$"):
        choose_model("qwen")

"""A name is enough to have a model."""

from pathlib import Path

import pytest

from tertulia.errors import InvalidValue
from tertulia.models import Gemini, Local, OpenAI, model_named, vendor_and_url
from tertulia.models.openai.vendors import COMPATIBLE, OPENAI, VENDORS, Vendor


@pytest.mark.parametrize(
    ("name", "kind", "known_as"),
    [
        ("smollm2", Local, "smollm2"),
        ("qwen", Local, "qwen"),
        ("gemini-3.8-flash", Gemini, "gemini-3.8-flash"),
        ("models/gemma-4-31b-it", Gemini, "gemma-4-31b-it"),
        ("openai:gpt-5.6", OpenAI, "gpt-5.6"),
        ("openai:nobody-knows", OpenAI, "nobody-knows"),
        ("groq:llama-3", OpenAI, "llama-3"),
    ],
)
def test_a_name_tells_who_serves_it(name: str, kind: type, known_as: str) -> None:
    found = model_named(name)

    assert (type(found), found.name) == (kind, known_as)


def test_a_file_is_a_model_of_its_own(tmp_path: Path) -> None:
    assert model_named(str(tmp_path / "tiny.gguf")).name == "tiny"


def test_a_name_nobody_serves_is_said() -> None:
    with pytest.raises(InvalidValue, match=r"no model is called 'gpt-5\.6'"):
        model_named("gpt-5.6")


@pytest.mark.parametrize(
    ("name", "environment", "service"),
    [
        ("openai:gpt-5.6", {}, (OPENAI, None)),
        ("openai:nobody-knows", {}, (OPENAI, None)),
        ("openai:nobody-knows", {"TERTULIA_OPENAI_BASE_URL": "http://set/v1"}, (COMPATIBLE, "http://set/v1")),
        ("groq:llama-3", {"TERTULIA_OPENAI_BASE_URL": "http://set/v1"}, (VENDORS["groq"], None)),
    ],
)
def test_openai_is_asked_unless_another_address_is_given(
    name: str, environment: dict[str, str], service: tuple[Vendor, str | None]
) -> None:
    assert vendor_and_url(name, environment=environment) == service


@pytest.mark.parametrize(
    ("name", "words"),
    [("openai:", "openai: names no model: write openai:NAME"), ("~nobodyx/x.gguf", "no home directory ~nobodyx")],
)
def test_a_name_that_cannot_be_one_is_said(name: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        model_named(name)

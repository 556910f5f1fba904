"""Vendors differ by data: by base URL, by name, and in what they take."""

import pytest

from tertulia.errors import InvalidValue, KeyMissing
from tertulia.models import OpenAI
from tertulia.models.openai.vendors import COMPATIBLE, OPENAI, VENDORS, Vendor, vendor_named, vendor_of
from tertulia.turns import Prompt


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {"TERTULIA_OPENAI_BASE_URL", *(key for vendor in VENDORS.values() for key in vendor.key_names)}:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("vendor", [one for one in VENDORS.values() if one.base_url.startswith("https")])
def test_a_vendor_is_known_by_its_host(vendor: Vendor) -> None:
    assert vendor_of("any-model", vendor.base_url) == vendor
    assert vendor_of("gpt-4o", f"{vendor.base_url}/") == vendor


@pytest.mark.parametrize(
    ("model", "base_url", "vendor"),
    [
        ("gpt-5.6", "", OPENAI),
        ("o3-mini", "", OPENAI),
        ("gpt-oss-120b", "", COMPATIBLE),
        ("openai/gpt-5.6", "", COMPATIBLE),
        ("mistral-large-latest", "", COMPATIBLE),
        ("gpt-4o", "http://127.0.0.1:8000/v1", OPENAI),
        ("llama", "http://127.0.0.1:8000/v1", COMPATIBLE),
        ("llama", "http://e.test/v1", COMPATIBLE),
        ("gpt-4o", "http://e.test/v1", OPENAI),
    ],
)
def test_a_vendor_is_else_guessed_from_the_model(model: str, base_url: str, vendor: Vendor) -> None:
    assert vendor_of(model, base_url) == vendor


def test_a_vendor_is_named() -> None:
    assert vendor_named("groq") == VENDORS["groq"]
    with pytest.raises(InvalidValue, match="no vendor is called 'nobody'; there are compatible, deepseek, gemini"):
        vendor_named("nobody")


@pytest.mark.parametrize(("vendor", "names"), [(one.name, one.key_names) for one in VENDORS.values() if one.key_names])
async def test_a_missing_key_is_named(vendor: str, names: tuple[str, ...]) -> None:
    async with OpenAI("m", vendor=vendor, base_url="https://e.test/v1") as model:
        with pytest.raises(KeyMissing, match=f"set {' or '.join(names)}, or pass key="):
            await model.respond(Prompt.of("hi"))


def test_no_address_is_an_invalid_value(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match="no address for 'llama'"):
        OpenAI("llama")

    monkeypatch.setenv("TERTULIA_OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert OpenAI("llama").vendor == COMPATIBLE
    assert OpenAI("gpt-audio").vendor == OPENAI
    assert OpenAI("llama", vendor="vllm").vendor == VENDORS["vllm"]
    assert OpenAI("llama", vendor=Vendor(name="mine")).vendor == Vendor(name="mine")


def test_an_address_that_is_none_is_said() -> None:
    with pytest.raises(InvalidValue, match="the base URL is not one that can be called"):
        vendor_of("x", "http://[::1")

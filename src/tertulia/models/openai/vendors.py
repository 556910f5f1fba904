"""Vendors: the services with OpenAI's format, and how they differ, as data. Pure."""

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import InvalidValue
from tertulia.turns import EFFORTS
from tertulia.wire.generations import bare, family
from tertulia.wire.media_limits import limits_of

Audio = Literal[
    "input_audio",  # WAV and MP3 as base64, as OpenAI takes them
    "audio_url",  # a URL, or a data URL
    "unknown",  # a URL if there is one, else base64; the service may refuse it
    "string",  # `input_audio` is the URL or the base64 itself
    "none",
]


class Vendor(Struct, frozen=True, kw_only=True):
    name: str
    base_url: str = ""
    key_names: tuple[str, ...] = ()  # environment variables; empty: no key is needed
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    any_tool: Literal["required", "any"] = "required"  # the word for "call some tool"
    tool_choice: bool = True  # whether `tool_choice` is obeyed; if not, disabled tools are omitted
    nine_character_ids: bool = False  # call ids must have nine letters and digits
    audio: Audio = "input_audio"
    images: bool = True
    top_k: bool = False
    efforts: tuple[str, ...] = ()  # that `reasoning_effort` takes; of OpenAI's own models each takes some of them
    usage_in_streams: bool = True  # whether `stream_options` is known


OPENAI = Vendor(
    name="openai",
    base_url="https://api.openai.com/v1",
    key_names=("OPENAI_API_KEY",),
    limit_field="max_completion_tokens",
    efforts=EFFORTS,
)
COMPATIBLE = Vendor(name="compatible", key_names=("OPENAI_API_KEY",), audio="unknown")
VENDORS = {
    vendor.name: vendor
    for vendor in (
        OPENAI,
        COMPATIBLE,
        Vendor(
            name="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            efforts=EFFORTS[:5],
        ),
        Vendor(
            name="groq",
            base_url="https://api.groq.com/openai/v1",
            key_names=("GROQ_API_KEY",),
            audio="none",
            limit_field="max_completion_tokens",
        ),
        Vendor(
            name="mistral",
            base_url="https://api.mistral.ai/v1",
            key_names=("MISTRAL_API_KEY",),
            audio="string",
            any_tool="any",
            nine_character_ids=True,
            usage_in_streams=False,
        ),
        Vendor(
            name="deepseek",
            base_url="https://api.deepseek.com",
            key_names=("DEEPSEEK_API_KEY",),
            audio="none",
            images=False,
        ),
        Vendor(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_names=("OPENROUTER_API_KEY",),
            top_k=True,
            efforts=EFFORTS[:6],
        ),
        Vendor(name="ollama", base_url="http://127.0.0.1:11434/v1", audio="none", tool_choice=False),
        Vendor(name="vllm", base_url="http://127.0.0.1:8000/v1", audio="audio_url", top_k=True),
    )
}


def vendor_of(model: str, base_url: str = "") -> Vendor:
    """Return the vendor of a base URL; else OpenAI by the name of the model, or a compatible service."""
    try:
        host = urlsplit(base_url).hostname if base_url else None
    except ValueError as error:
        raise InvalidValue(f"the base URL is not one that can be called: {error}") from error
    at_host = [vendor for vendor in VENDORS.values() if host and urlsplit(vendor.base_url).hostname == host]
    if at_host and host != "127.0.0.1":
        return at_host[0]
    return OPENAI if family(model) == "openai" else COMPATIBLE


def for_model(vendor: Vendor, model: str) -> Vendor:
    """Return the vendor as a model of it is asked: most of OpenAI's own hear nothing, whoever passes requests on."""
    is_openais = vendor.audio == "input_audio" and family(bare(model)) == "openai"
    return replace(vendor, audio="none") if is_openais and not limits_of(model).hears else vendor


def vendor_named(name: str) -> Vendor:
    if name not in VENDORS:
        raise InvalidValue(f"no vendor is called {name!r}; there are {', '.join(sorted(VENDORS))}")
    return VENDORS[name]

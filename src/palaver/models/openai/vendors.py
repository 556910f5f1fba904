"""The services that speak OpenAI's format, and how they differ: as data. Pure."""

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.wire.generations import family

Audio = Literal[
    "input_audio",  # the bytes of WAV and MP3, as OpenAI takes them
    "audio_url",  # an address, or the bytes as one
    "unknown",  # by address what has one, else the bytes in the part they fit; it may all be refused
    "string",  # `input_audio` as the address itself, or the base64
    "none",
]


class Vendor(Struct, frozen=True, kw_only=True):
    name: str
    base_url: str = ""
    key_names: tuple[str, ...] = ()  # environment variables; none: no key is needed
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    any_tool: Literal["required", "any"] = "required"  # how a call is asked for
    tool_choice: bool = True  # a choice of tools is followed; where it is not, tools that are off are left out
    nine_character_ids: bool = False  # call ids must be nine letters and digits
    audio: Audio = "input_audio"
    images: bool = True
    top_k: bool = False
    reasoning_effort: bool = False
    usage_in_streams: bool = True  # `stream_options` is known


OPENAI = Vendor(
    name="openai",
    base_url="https://api.openai.com/v1",
    key_names=("OPENAI_API_KEY",),
    limit_field="max_completion_tokens",
    reasoning_effort=True,
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
            reasoning_effort=True,
        ),
        Vendor(
            name="groq",
            base_url="https://api.groq.com/openai/v1",
            key_names=("GROQ_API_KEY",),
            audio="none",
            limit_field="max_completion_tokens",
            usage_in_streams=False,
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
            reasoning_effort=True,
        ),
        Vendor(name="ollama", base_url="http://127.0.0.1:11434/v1", audio="none", tool_choice=False),
        Vendor(name="vllm", base_url="http://127.0.0.1:8000/v1", audio="audio_url", top_k=True),
    )
}


def vendor_of(model: str, base_url: str = "") -> Vendor:
    """The vendor at a base URL, or the one a model's name tells of."""
    try:
        host = urlsplit(base_url).hostname if base_url else None
    except ValueError as error:
        raise InvalidValue(f"the base URL is not one that can be called: {error}") from error
    at_host = [vendor for vendor in VENDORS.values() if host and urlsplit(vendor.base_url).hostname == host]
    if at_host and host != "127.0.0.1":
        return at_host[0]
    return OPENAI if family(model) == "openai" else COMPATIBLE


def vendor_named(name: str) -> Vendor:
    if name not in VENDORS:
        raise InvalidValue(f"no vendor is called {name!r}; there are {', '.join(sorted(VENDORS))}")
    return VENDORS[name]

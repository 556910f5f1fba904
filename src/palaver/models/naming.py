"""A model by its name alone."""

from pathlib import Path

from palaver.errors import InvalidValue
from palaver.models.gemini.client import Gemini
from palaver.models.local.client import Local
from palaver.models.local.weights import WEIGHTS
from palaver.models.openai.client import OpenAI
from palaver.models.openai.vendors import VENDORS

NAMES = "gemini-…, gemma-…, openai:NAME (or ollama:, groq:, …), smollm2, qwen, or the path of a .gguf file"


def kind_of(name: str) -> str:
    """Who serves the model called *name*: gemini, local, openai or another vendor; nothing where nobody does."""
    before, colon, _ = name.partition(":")
    if name in WEIGHTS or name.endswith(".gguf"):
        return "local"
    if name.removeprefix("models/").startswith(("gemini-", "gemma-")):
        return "gemini"
    return before if colon and before in VENDORS else ""


def model_named(name: str, *, base_url: str | None = None) -> Gemini | OpenAI | Local:
    """`model_named("smollm2")`, `model_named("gemini-3.8-flash")`, `model_named("openai:gpt-5.6")`."""
    kind = kind_of(name)
    if kind == "local":
        return Local(name) if name in WEIGHTS else Local(Path(name).stem, path=Path(name).expanduser())
    if kind == "gemini":
        return Gemini(name, base_url=base_url)
    if kind:
        vendor = None if kind == "openai" else kind
        return OpenAI(name.partition(":")[2], base_url=base_url, vendor=vendor)
    meant = "" if ":" in name else f" (openai:{name}, if it is OpenAI's)"
    raise InvalidValue(f"no model is called {name!r}{meant}; there are {NAMES}")

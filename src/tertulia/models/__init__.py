"""The models: each answers a prompt, whole or in pieces. `model_named("gemini-3.8-flash")` makes one by its name."""

import os
import re
import reprlib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from tertulia.errors import InvalidValue
from tertulia.models.base import Finish, Model, Response, Usage
from tertulia.models.gemini.cache import CachedGemini
from tertulia.models.gemini.client import Gemini
from tertulia.models.local.client import Local
from tertulia.models.local.weights import WEIGHTS, models_directory
from tertulia.models.openai.client import OpenAI
from tertulia.models.openai.vendors import OPENAI, VENDORS, Vendor, vendor_of
from tertulia.models.prices import PRICES
from tertulia.models.scripted import Scripted

__all__ = [
    "NAME_FORMS",
    "CachedGemini",
    "Finish",
    "Gemini",
    "Local",
    "Model",
    "OpenAI",
    "Response",
    "Scripted",
    "Usage",
    "model_file",
    "model_named",
    "provider_of",
    "unknown_model",
    "vendor_and_url",
]

NAME_FORMS = "gemini-…, gemma-…, openai:NAME (or ollama:, groq:, …), smollm2, qwen, or the path of a .gguf file"


def provider_of(name: str) -> str:
    """Return the provider of a model name: gemini, local, openai or another vendor; empty if it is unknown."""
    before, colon, _ = name.partition(":")
    if name in WEIGHTS or name.endswith(".gguf"):
        return "local"
    if re.fullmatch(r"(models/)?(gemini|gemma)-\S+", name):
        return "gemini"
    return before if colon and before in VENDORS else ""


def model_file(name: str) -> Path:
    """Return the path of a model name that is a path, with ~ expanded; the file need not exist.

    A bare name is a file of this folder, else one that `tertulia model get URL` has fetched.
    """
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise InvalidValue(f"there is no home directory {Path(name).parts[0]}") from error
    fetched = models_directory() / path.name
    return fetched if path.name == name and not os.path.exists(path) and os.path.isfile(fetched) else path


def vendor_and_url(
    name: str, base_url: str | None = None, *, environment: Mapping[str, str] = os.environ
) -> tuple[Vendor, str | None]:
    """Return the vendor of `openai:NAME` or `VENDOR:NAME`, and the base URL given for it; `openai:` without one is
    OpenAI.
    """
    before, _, model = name.partition(":")
    if not model:
        raise InvalidValue(f"{name} names no model: write {before}:NAME")
    if before != "openai":
        return VENDORS[before], base_url
    given = base_url or environment.get("TERTULIA_OPENAI_BASE_URL") or None
    return (vendor_of(model, given) if given else OPENAI), given


def model_named(name: str, *, base_url: str | None = None) -> Gemini | OpenAI | Local:
    """`model_named("smollm2")`, `model_named("gemini-3.8-flash")`, `model_named("openai:gpt-5.6")`."""
    kind = provider_of(name)
    if kind == "local":
        return Local(name) if name in WEIGHTS else Local(Path(name).stem, path=model_file(name))
    if kind == "gemini":
        return Gemini(name, base_url=base_url)
    if kind:
        vendor, given = vendor_and_url(name, base_url)
        return OpenAI(name.partition(":")[2], base_url=given or vendor.base_url, vendor=vendor)
    raise unknown_model(name)


def unknown_model(name: str) -> InvalidValue:
    shown = reprlib.repr(name)
    if near := get_close_matches(name, [*WEIGHTS, *PRICES], n=1):
        return InvalidValue(f"no model is called {shown}, did you mean {_full_name(near[0])}? There are {NAME_FORMS}")
    meant = "" if ":" in name else " (openai:NAME, if it is OpenAI's)"
    return InvalidValue(f"no model is called {shown}{meant}; there are {NAME_FORMS}")


def _full_name(model: str) -> str:
    return model if provider_of(model) else f"openai:{model}"

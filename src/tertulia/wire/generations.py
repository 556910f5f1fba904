"""Generations of Gemini and families of other models, by the id of a model, and what depends on the id alone. Pure."""

import re
from functools import lru_cache

GEMINI = ("2.0", "2.5", "3", "3.1", "3.5", "3.5-lite", "3.6", "3.7", "4", "gemma-3", "gemma-4")
OPENAI = ("openai", "compatible", "mistral")
ALL = frozenset(GEMINI + OPENAI)
NONE: frozenset[str] = frozenset()

GEMMA = frozenset({"gemma-3", "gemma-4"})
FROM_3 = frozenset({"3", "3.1", "3.5", "3.5-lite", "3.6", "3.7", "4"})
FROM_3_6 = frozenset({"3.6", "3.7", "4"})
NO_MODEL_END = FROM_3_6 | {"3.5-lite"}
BEFORE_3 = frozenset({"2.0", "2.5"})
OPENAI_ONLY = frozenset({"openai"})
COMPATIBLE = frozenset({"compatible", "mistral"})
MISTRAL = frozenset({"mistral"})

SMALLEST_CACHES = {  # tokens, by how the id begins, first match
    "gemini-2.5-pro": 2048,
    "gemini-2.5": 1024,
    "gemini-3-flash": 1024,
    "": 4096,
}
NO_CACHES = GEMMA | {"4"}  # generations that keep nothing on purpose; some remember prefixes by themselves

BUDGETS_2_5 = {"-pro": (128, 32768), "-flash-lite": (512, 24576), "": (0, 24576)}  # by what the id holds, first match

_VERSION = re.compile(r"(gemini|gemma)-(\d{1,4})(?!\d)(?:\.(\d{1,4}))?")
_OPENAI_FAMILY = re.compile(r"(gpt-(?!oss)|chatgpt-|codex-|computer-use-|o\d)")
_MISTRAL_FAMILY = tuple(
    f"{name}-"
    for name in "mistral ministral magistral codestral devstral pixtral voxtral open-mistral open-mixtral".split()
)

_SAMPLING = frozenset({"temperature", "top_p", "stop"})
_EFFORT = frozenset({"reasoning_effort"})
REFUSED_SETTINGS: dict[str, frozenset[str]] = {  # of OpenAI's models, by how the id begins, first match
    "gpt-5-chat": _EFFORT,
    "gpt-4o-search": _SAMPLING | _EFFORT,
    "gpt-4o-mini-search": _SAMPLING | _EFFORT,
    **dict.fromkeys(("gpt-3.5", "gpt-4", "gpt-audio", "chatgpt-4o"), _EFFORT),
    "": _SAMPLING,  # they reason; so will those that are not known yet
}
SAMPLE_SOMETIMES = ("gpt-5.1", "gpt-5.2", "gpt-5.3")  # while they do not reason they take what they refuse else


def bare(model: str) -> str:
    """Return the model's id without the path that some services put before it."""
    return model.rpartition("/")[2]


@lru_cache(maxsize=1024)
def generation(model: str) -> str:
    """Return the Gemini generation whose rules *model* follows; the newest for one we do not know."""
    name = bare(model)
    found = _VERSION.match(name)
    if not found:
        return "2.0" if name == "gemini-pro" else "3.7"
    family, version = found[1], (int(found[2]), int(found[3] or 0))
    if family == "gemma":
        return "gemma-3" if version < (4, 0) else "gemma-4"
    if version >= (4, 0):
        return "4"
    if name.startswith("gemini-3.5-flash-lite"):
        return "3.5-lite"
    steps = {(3, 7): "3.7", (3, 6): "3.6", (3, 5): "3.5", (3, 1): "3.1", (3, 0): "3", (2, 5): "2.5"}
    return next((name for least, name in steps.items() if version >= least), "2.0")


@lru_cache(maxsize=1024)
def family(model: str) -> str:
    """Return whether *model* is OpenAI's own, Mistral's, or of another service with the same format."""
    if "/" in model:
        return "compatible"
    if _OPENAI_FAMILY.match(model):
        return "openai"
    return "mistral" if model.startswith(_MISTRAL_FAMILY) else "compatible"


@lru_cache(maxsize=1024)
def refused_settings(model: str) -> frozenset[str]:
    """Return the settings that one of OpenAI's models refuses, also where another service passes requests on to it."""
    name = model.removeprefix("openai/")
    if family(name) != "openai":
        return NONE
    return next(refused for begins, refused in REFUSED_SETTINGS.items() if name.startswith(begins))


@lru_cache(maxsize=1024)
def is_gemini(model: str) -> bool:
    return bare(model).startswith(("gemini", "gemma"))


def smallest_cache(model: str) -> int | None:
    """Return the fewest tokens that an explicit cache of *model* may hold; None if it has no caches."""
    if generation(model) in NO_CACHES:
        return None
    return next(least for begins, least in SMALLEST_CACHES.items() if bare(model).startswith(begins))

"""Generations of Gemini and families of other models, by the id of a model, and what depends on the id alone. Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from tertulia.turns import EFFORTS

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

_GPT = re.compile(r"gpt-(\d{1,4})(?!\d)(?:\.(\d{1,4}))?([a-z]?)((?:-[a-z]+)?)")
_SEARCH = re.compile(r"gpt-4o-(?:mini-)?search")
_SAMPLING = frozenset({"temperature", "top_p", "stop"})
_EFFORT = frozenset({"reasoning_effort"})


class Reasoning(Struct, frozen=True, kw_only=True):
    """How one of OpenAI's models reasons in chat completions."""

    efforts: tuple[str, ...]  # that it takes; without any it does not reason
    default: str = "medium"  # of a request that names none
    beside_tools: tuple[str, ...]  # those that it takes beside function tools; without any it takes no tools


_NO_REASONING = Reasoning(efforts=(), default="none", beside_tools=("none",))
_LOW_TO_HIGH = Reasoning(efforts=("low", "medium", "high"), beside_tools=("low", "medium", "high"))
_FROM_5_2 = ("none", "low", "medium", "high", "xhigh")
_REASONING = {  # by the first generation, newest first
    (5, 5): Reasoning(efforts=_FROM_5_2, beside_tools=("none",)),
    (5, 4): Reasoning(efforts=_FROM_5_2, default="none", beside_tools=("none",)),
    (5, 2): Reasoning(efforts=_FROM_5_2, default="none", beside_tools=_FROM_5_2),
    (5, 1): Reasoning(efforts=_FROM_5_2[:-1], default="none", beside_tools=_FROM_5_2[:-1]),
    (5, 0): Reasoning(efforts=EFFORTS[1:5], beside_tools=EFFORTS[1:5]),
    (0, 0): _NO_REASONING,
}
_VARIANTS = {  # by the generation and the word after it
    ((5, 0), "-chat"): _NO_REASONING,
    ((6, 0), "-astra"): Reasoning(efforts=_FROM_5_2[1:], beside_tools=()),
    ((6, 1), "-sol"): Reasoning(efforts=_FROM_5_2[1:], beside_tools=()),
}
_CHAT = Reasoning(efforts=("medium",), beside_tools=("medium",))


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
def reasoning_of(model: str) -> Reasoning:
    """Return how one of OpenAI's models reasons; one that is not known yet as the newest."""
    if model.startswith(("gpt-audio", "chatgpt-")):
        return _NO_REASONING
    if not model.startswith("gpt-"):
        return _LOW_TO_HIGH
    found = _GPT.match(model)
    version = (int(found[1]), int(found[2] or 0)) if found else max(_REASONING)
    variant = found[4] if found else ""
    by_generation = next(reasoning for first, reasoning in _REASONING.items() if version >= first)
    by_word = _CHAT if variant == "-chat" and by_generation.efforts else by_generation
    return _VARIANTS.get((version, variant), by_word)


def nearest_effort(wanted: str, taken: Sequence[str]) -> str:
    """Return the effort of those *taken* that is nearest to the one that is wanted; of two the greater."""
    place = EFFORTS.index(wanted)
    return min(reversed(taken), key=lambda one: abs(EFFORTS.index(one) - place))


def refused_settings(model: str, effort: str | None) -> frozenset[str]:
    """Return the settings that one of OpenAI's models refuses with an effort, also where another service passes
    requests on to it. `stop` may be refused without reasoning too.
    """
    name = model.removeprefix("openai/")
    if family(name) != "openai":
        return NONE
    if _SEARCH.match(name):
        return _SAMPLING | _EFFORT
    reasoning = reasoning_of(name)
    if not reasoning.efforts:
        return _EFFORT
    refused = frozenset({"stop"}) if (effort or reasoning.default) == "none" else _SAMPLING
    return refused - {"stop"} if name.startswith("o3-mini") else refused


@lru_cache(maxsize=1024)
def is_gemini(model: str) -> bool:
    return bare(model).startswith(("gemini", "gemma"))


def smallest_cache(model: str) -> int | None:
    """Return the fewest tokens that an explicit cache of *model* may hold; None if it has no caches."""
    if generation(model) in NO_CACHES:
        return None
    return next(least for begins, least in SMALLEST_CACHES.items() if bare(model).startswith(begins))

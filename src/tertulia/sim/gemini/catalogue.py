"""Models of the Gemini API: the generation whose rules hold, the limits, and which models a simulator serves. Pure."""

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from tertulia.sim.errors import Wire

Generation = Literal["2.0", "2.5", "3", "3.1", "3.5", "3.5-lite", "3.6", "3.7", "4", "gemma-3", "gemma-4"]

THREE_AND_LATER: frozenset[Generation] = frozenset({"3", "3.1", "3.5", "3.5-lite", "3.6", "3.7", "4"})
THREE_SIX_AND_LATER: frozenset[Generation] = frozenset({"3.6", "3.7", "4"})
GEMMA: frozenset[Generation] = frozenset({"gemma-3", "gemma-4"})
TWO: frozenset[Generation] = frozenset({"2.0", "2.5"})

_VERSION = re.compile(r"(gemini|gemma)-(\d+)(?:\.(\d+))?")
ALIASES = {
    "gemini-flash-latest": "gemini-3.8-flash",
    "gemini-flash-lite-latest": "gemini-3.5-flash-lite",
    "gemini-pro-latest": "gemini-3.1-pro-preview",
}
"""Names that exist on v1beta and v1alpha only."""
RETIRED = frozenset({"gemini-pro", "gemini-1.0-pro", "gemini-1.5-flash", "gemini-1.5-flash-8b", "gemini-1.5-pro"})


def bare_model(model: str) -> str:
    """Return the id of *model* without `models/` or the name of a vendor before it."""
    return model.rsplit("/", 1)[-1]


def generation(model: str) -> Generation:
    """Return the generation whose rules hold for *model*."""
    name = bare_model(model)
    if name == "gemini-pro":
        return "2.0"
    found = _VERSION.match(name)
    if found is None:
        return "3.7"
    family, major, minor = found[1], int(found[2]), int(found[3] or 0)
    if family == "gemma":
        return "gemma-4" if major >= 4 else "gemma-3"
    return _gemini_generation(name, major, minor)


def _gemini_generation(name: str, major: int, minor: int) -> Generation:
    if major >= 4:
        return "4"
    if (major, minor) < (2, 5):
        return "2.0"
    if (major, minor) == (2, 5):
        return "2.5"
    if name.startswith("gemini-3.5-flash-lite"):
        return "3.5-lite"
    by_minor: dict[int, Generation] = {0: "3", 1: "3.1", 2: "3.1", 3: "3.1", 4: "3.1", 5: "3.5", 6: "3.6"}
    return by_minor.get(minor, "3.7") if major == 3 else "3.7"


class RequestedModel(Struct, frozen=True):
    """The model that a request is for."""

    model: str
    generation: Generation


class Model(Struct, frozen=True, kw_only=True):
    """A model and its limits."""

    name: str
    input_limit: int = 1_048_576
    output_limit: int = 65_536

    @property
    def embeds(self) -> bool:
        return "embedding" in self.name

    @property
    def caches(self) -> bool:
        """Tell whether contents can be cached explicitly."""
        return not self.embeds and generation(self.name) not in GEMMA | {"4"}

    @property
    def methods(self) -> list[str]:
        if self.embeds:
            return ["embedContent", "batchEmbedContents", "countTokens"]
        caching = ["createCachedContent"] if self.caches else []
        return ["generateContent", "countTokens", *caching, "batchGenerateContent"]

    @property
    def smallest_cache(self) -> int:
        """The fewest tokens an explicit cache may hold."""
        if generation(self.name) == "2.5":
            return 2048 if "-pro" in self.name else 1024
        return 1024 if self.name.startswith("gemini-3-flash") else 4096

    @property
    def smallest_prefix(self) -> int | None:
        """The fewest tokens that are cached implicitly; None if the model has no implicit cache."""
        of = generation(self.name)
        if of == "2.0" or of in GEMMA:
            return None
        return 2048 if of == "2.5" else 1024 if self.name.startswith("gemini-3-flash") else 4096

    def thinks(self, thinking: Wire) -> bool:
        """Tell whether the model thinks before it answers, given a `thinkingConfig`."""
        of = generation(self.name)
        if of in ("2.0", "gemma-3"):
            return False
        lite = "flash-lite" in self.name
        if of == "2.5":
            return bool(thinking.get("thinkingBudget", 0 if lite else -1))
        if thinking.get("thinkingBudget") == 0:
            return False
        return str(thinking.get("thinkingLevel", "minimal" if lite else "medium")).lower() != "minimal"

    @property
    def wire(self) -> Wire:
        """The model as `models.get` shows it."""
        shown: Wire = {
            "name": f"models/{self.name}",
            "version": "001",
            "displayName": self.name.replace("-", " ").title(),
            "inputTokenLimit": self.input_limit,
            "outputTokenLimit": self.output_limit,
            "supportedGenerationMethods": self.methods,
        }
        return shown if self.embeds else shown | {"temperature": 1, "topP": 0.95, "topK": 64, "thinking": True}


def gemma(name: str) -> Model:
    return Model(name=name, input_limit=262_144, output_limit=32_768)


MODELS: tuple[Model, ...] = (
    Model(name="gemini-4-argon"),
    Model(name="gemini-3.8-flash"),
    Model(name="gemini-3.7-flash"),
    Model(name="gemini-3.6-flash"),
    Model(name="gemini-3.5-flash"),
    Model(name="gemini-3.5-flash-lite"),
    Model(name="gemini-3.1-flash-lite"),
    Model(name="gemini-3.1-pro-preview"),
    Model(name="gemini-3-flash-preview"),
    Model(name="gemini-2.5-pro"),
    Model(name="gemini-2.5-flash"),
    Model(name="gemini-2.5-flash-lite"),
    Model(name="gemini-2.0-flash", output_limit=8192),
    gemma("gemma-4-31b-it"),
    gemma("gemma-4-26b-a4b-it"),
    Model(name="gemini-embedding-001", input_limit=2048, output_limit=1),
    Model(name="gemini-embedding-2", input_limit=8192, output_limit=1),
)


_KNOWN = {model.name: model for model in MODELS}


def model_named(name: str) -> Model:
    """Return the model called *name*. An unknown one has the usual limits and the rules of its generation."""
    return _KNOWN.get(name) or (gemma(name) if generation(name) in GEMMA else Model(name=name))


class Catalogue:
    """The models that a simulator serves: those given, or any if none are."""

    def __init__(self, models: Iterable[Model | str] | None) -> None:
        served = MODELS if models is None else models
        listed = [model_named(bare_model(model)) if isinstance(model, str) else model for model in served]
        self.models = {model.name: model for model in listed}
        self._serves_any = models is None

    def find(self, name: str, version: str) -> Model | None:
        """Return the model called *name* in an API version, through its alias if it has one."""
        if self._serves_any:
            return model_named(ALIASES.get(name, name))
        if name in ALIASES and name not in self.models:
            return None if version == "v1" else self.models.get(ALIASES[name])
        return self.models.get(name)

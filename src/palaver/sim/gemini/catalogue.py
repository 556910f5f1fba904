"""Models of the Gemini API: their limits, and which of them a simulator serves. Pure."""

from collections.abc import Iterable

from msgspec import Struct

from palaver.sim.errors import Wire
from palaver.sim.gemini.rules.generations import GEMMA, bare, generation

ALIASES = {
    "gemini-flash-latest": "gemini-3.8-flash",
    "gemini-flash-lite-latest": "gemini-3.5-flash-lite",
    "gemini-pro-latest": "gemini-3.1-pro-preview",
}
"""Names that exist on v1beta and v1alpha only."""

RETIRED = frozenset({"gemini-pro", "gemini-1.0-pro", "gemini-1.5-flash", "gemini-1.5-flash-8b", "gemini-1.5-pro"})


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
        listed = [model_named(bare(model)) if isinstance(model, str) else model for model in served]
        self.models = {model.name: model for model in listed}
        self._serves_any = models is None

    def find(self, name: str, version: str) -> Model | None:
        """Return the model called *name* in an API version, through its alias if it has one."""
        if self._serves_any:
            return model_named(ALIASES.get(name, name))
        if name in ALIASES and name not in self.models:
            return None if version == "v1" else self.models.get(ALIASES[name])
        return self.models.get(name)

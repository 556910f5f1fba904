"""Generations of models, by whose rules requests are judged, and the violations that rules report. Pure."""

import re
from typing import Literal

from msgspec import Struct

Generation = Literal["2.0", "2.5", "3", "3.1", "3.5", "3.5-lite", "3.6", "3.7", "4", "gemma-3", "gemma-4"]

THREE_AND_LATER: frozenset[Generation] = frozenset({"3", "3.1", "3.5", "3.5-lite", "3.6", "3.7", "4"})
THREE_SIX_AND_LATER: frozenset[Generation] = frozenset({"3.6", "3.7", "4"})
GEMMA: frozenset[Generation] = frozenset({"gemma-3", "gemma-4"})
TWO: frozenset[Generation] = frozenset({"2.0", "2.5"})

_VERSION = re.compile(r"(gemini|gemma)-(\d+)(?:\.(\d+))?")


def bare(model: str) -> str:
    """Return the id of *model* without `models/` or the name of a vendor before it."""
    return model.rsplit("/", 1)[-1]


def generation(model: str) -> Generation:
    """Return the generation whose rules hold for *model*."""
    name = bare(model)
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


class Subject(Struct, frozen=True):
    """The model that a request is for."""

    model: str
    generation: Generation


class Violation(Struct, frozen=True):
    """A rule that a request breaks; *always* is False if only strict mode refuses it."""

    rule: str
    message: str
    where: str = ""
    always: bool = True

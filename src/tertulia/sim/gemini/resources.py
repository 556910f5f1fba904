"""Resources that callers keep at the service: cached contents and uploaded files, listed in pages."""

import base64
import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tertulia.sim import google
from tertulia.sim.errors import Wire
from tertulia.sim.faults import Rejection
from tertulia.sim.gemini.answers import Sizes, TokenCounter
from tertulia.sim.gemini.catalogue import Catalogue, Model, bare_model, generation
from tertulia.sim.gemini.errors import error, file_not_active, no_cache, no_file, parsed, rejection, unknown_model

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_CACHED = ("contents", "systemInstruction", "tools", "toolConfig")
_HOUR = 3600.0
_PAGE = 50
_FILE_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_FILE_LIFETIME = 48 * _HOUR
_QUOTA = 20 * 1024**3
_UNPROCESSED = {"code": 3, "message": "The file could not be processed."}
_HOST = "generativelanguage.googleapis.com"


def page(name: str, entries: list[Wire], query: dict[str, str]) -> Wire:
    """Return the page of *entries* that *query* asks for, under *name*, with the token of the next one."""
    try:
        size = int(query.get("pageSize") or _PAGE)
        start = int(query.get("pageToken") or 0)
    except ValueError as invalid:
        raise error(400, "Request contains an invalid argument.", rule="page") from invalid
    shown = entries[start : start + max(1, size)]
    found: Wire = {name: shown} if shown else {}
    following = start + len(shown)
    return found | {"nextPageToken": str(following)} if following < len(entries) else found


def _stamp(moment: float) -> str:
    """Return *moment* as the service writes it, to the nanosecond."""
    whole = datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{int(moment % 1 * 1_000_000):06d}000Z"


def _random_text(random: Random, length: int) -> str:
    return "".join(random.choices(_ALPHABET, k=length))


class CachedContent(Struct, frozen=True, kw_only=True):
    """A cached content."""

    name: str
    owner: str
    model: str
    display_name: str
    contents: Wire
    tokens: int
    created: float
    updated: float
    expires: float

    @property
    def wire(self) -> Wire:
        return {
            "name": self.name,
            "model": f"models/{self.model}",
            "displayName": self.display_name,
            "createTime": _stamp(self.created),
            "updateTime": _stamp(self.updated),
            "expireTime": _stamp(self.expires),
            "usageMetadata": {"totalTokenCount": self.tokens},
        }


class Caches:
    """All cached contents; an expired one counts as deleted."""

    def __init__(self, clock: Callable[[], float], random: Random, *, catalogue: Catalogue, sizes: Sizes) -> None:
        self._clock = clock
        self._random = random
        self._catalogue = catalogue
        self._sizes = sizes
        self.by_name: dict[str, CachedContent] = {}

    def create(self, body: object, *, owner: str, version: str) -> Wire:
        wanted = parsed("cachedContent", body)
        model = self._model(wanted.get("model", ""), version)
        contents = {name: wanted[name] for name in _CACHED if name in wanted}
        tokens = TokenCounter(generation(model.name), self._sizes).request(contents).total()
        smallest = model.smallest_cache
        if tokens < smallest:
            message = f"Cached content is too small. total_token_count={tokens}, min_total_token_count={smallest}"
            raise error(400, message, rule="cache")
        now = self._clock()
        name = f"cachedContents/{_random_text(self._random, 40)}"
        cache = CachedContent(
            name=name,
            owner=owner,
            model=model.name,
            display_name=str(wanted.get("displayName", "")),
            contents=contents,
            tokens=tokens,
            created=now,
            updated=now,
            expires=_expiry(wanted, now, now + _HOUR),
        )
        self.by_name[name] = cache
        return cache.wire

    def _model(self, name: str, version: str) -> Model:
        if not name.startswith("models/"):
            message = "* CreateCachedContentRequest.cached_content.model: unexpected model name format\n"
            raise error(400, message, rule="cache")
        model = self._catalogue.find(bare_model(name), version)
        if model is None or not model.caches:
            raise unknown_model(bare_model(name), version, "createCachedContent")
        return model

    def get(self, name: str, owner: str) -> CachedContent:
        """Return the cache called *name* of *owner*. Raises the service's error if there is none."""
        cache = self.by_name.get(name)
        if cache is None or cache.owner != owner or cache.expires <= self._clock():
            raise no_cache()
        return cache

    def for_request(self, name: str, owner: str, model: str) -> CachedContent:
        """Return the cache that a request to *model* names."""
        cache = self.get(name, owner)
        if cache.model != model:
            message = (
                f"Model used by GenerateContent request (models/{model}) and CachedContent (models/{cache.model})"
                " has to be the same."
            )
            raise error(400, message, rule="cache")
        return cache

    def update(self, name: str, owner: str, body: object) -> Wire:
        cache = self.get(name, owner)
        wanted = parsed("cachedContent", body)
        now = self._clock()
        changed = replace(cache, updated=now, expires=_expiry(wanted, now, cache.expires))
        self.by_name[name] = changed
        return changed.wire

    def delete(self, name: str, owner: str) -> Wire:
        del self.by_name[self.get(name, owner).name]
        return {}

    def list(self, owner: str, query: dict[str, str]) -> Wire:
        now = self._clock()
        shown = [cache.wire for cache in self.by_name.values() if cache.owner == owner and cache.expires > now]
        return page("cachedContents", shown[::-1], query)


def _expiry(wanted: Wire, now: float, default: float) -> float:
    if "ttl" in wanted and "expireTime" in wanted:
        message = "Invalid value at 'cached_content' (oneof), oneof field 'expiration' is already set."
        raise error(400, f"{message} Cannot set 'expireTime'", rule="cache")
    if "ttl" in wanted:
        found = re.fullmatch(r"(-?\d{1,9}(?:\.\d{1,9})?)s", str(wanted["ttl"]))
        if found is None:
            raise error(400, "Invalid value at 'cached_content.ttl', Illegal duration format", rule="cache")
        return now + float(found[1])
    if "expireTime" not in wanted:
        return default
    try:
        return datetime.fromisoformat(str(wanted["expireTime"]).replace("Z", "+00:00")).timestamp()
    except ValueError as invalid:
        message = "Invalid value at 'cached_content.expire_time', Illegal timestamp format"
        raise error(400, message, rule="cache") from invalid


class Upload(Struct):
    """An upload under way."""

    owner: str
    name: str
    display_name: str
    mime: str
    base: str
    data: bytearray


class UploadedFile(Struct, frozen=True, kw_only=True):
    """An uploaded file."""

    name: str
    owner: str
    display_name: str
    mime: str
    data: bytes
    uri: str
    created: float
    ready: float
    fails: bool = False  # whether it cannot be processed

    @property
    def expires(self) -> float:
        return self.created + _FILE_LIFETIME

    def wire(self, now: float) -> Wire:
        """Return the file as the service shows it."""
        hexed = hashlib.sha256(self.data).hexdigest()
        shown = {
            "name": self.name,
            "displayName": self.display_name,
            "mimeType": self.mime,
            "sizeBytes": str(len(self.data)),
            "createTime": _stamp(self.created),
            "updateTime": _stamp(max(self.created, min(now, self.ready))),
            "expirationTime": _stamp(self.expires),
            "sha256Hash": base64.b64encode(hexed.encode()).decode(),
            "uri": self.uri,
            "state": "PROCESSING" if now < self.ready else "FAILED" if self.fails else "ACTIVE",
            "source": "UPLOADED",
            "error": _UNPROCESSED if self.fails and now >= self.ready else {},
        }
        return {name: value for name, value in shown.items() if value}


class Files:
    """All uploaded files. Video and audio are processed for a while first; every file expires.

    A test may change how uploads fare. `lose` deletes files as their owner would.
    """

    def __init__(self, clock: Callable[[], float], random: Random, *, processing: float) -> None:
        self.unreadable = False  # whether what is uploaded from now on cannot be processed
        self.quota = _QUOTA  # bytes of all files of a key
        self.refuse: Rejection | None = None  # what the next uploads get
        self._clock = clock
        self._random = random
        self._processing = processing
        self._files: dict[str, UploadedFile] = {}
        self._uploads: dict[str, Upload] = {}

    def start(self, body: object, *, owner: str, mime: str, base: str) -> str:
        """Begin an upload and return its id."""
        given = body.get("file") if isinstance(body, dict) else None
        wanted = given if isinstance(given, dict) else {}
        name = str(wanted.get("name") or "").removeprefix("files/") or _random_text(self._random, 12)
        if not _FILE_ID.fullmatch(name):
            message = "* CreateFileRequest.file.name: File ID must be 1-40 lowercase alphanumeric or dash characters\n"
            raise error(400, message, rule="file")
        if self.refuse is not None:
            raise rejection(self.refuse, "")
        if self._alive(f"files/{name}"):
            raise error(409, f"Requested entity already exists: files/{name}", rule="file")
        display_name = str(wanted.get("displayName") or wanted.get("display_name") or "")
        declared = str(wanted.get("mimeType") or wanted.get("mime_type") or mime)
        upload_id = _random_text(self._random, 24)
        self._uploads[upload_id] = Upload(owner, f"files/{name}", display_name, declared, base, bytearray())
        return upload_id

    def add(self, upload_id: str, data: bytes, *, offset: int) -> int:
        """Append *data* to an upload and return its size so far."""
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise error(404, "Upload not found.", rule="file")
        if offset != len(upload.data):
            raise error(400, f"Invalid upload offset: {offset}, expected {len(upload.data)}.", rule="file")
        upload.data += data
        return len(upload.data)

    def finish(self, upload_id: str) -> Wire:
        """Turn an upload into a file."""
        upload = self._uploads.pop(upload_id)
        now = self._clock()
        stored = sum(len(file.data) for file in self.by_name.values() if file.owner == upload.owner)
        if stored + len(upload.data) > self.quota:
            raise error(429, google.EXHAUSTED, rule="file")
        if self._alive(upload.name):
            raise error(409, f"Requested entity already exists: {upload.name}", rule="file")
        slow = upload.mime.startswith(("video/", "audio/"))
        file = UploadedFile(
            name=upload.name,
            owner=upload.owner,
            display_name=upload.display_name,
            mime=upload.mime,
            data=bytes(upload.data),
            uri=f"{upload.base}/{upload.name}",
            created=now,
            ready=now + (self._processing if slow else 0),
            fails=self.unreadable,
        )
        self._files[file.name] = file
        return {"file": file.wire(now)}

    def get(self, name: str, owner: str) -> UploadedFile:
        """Return the file called *name* of *owner*. Raises the service's error if there is none."""
        file = self._alive(name)
        if file is None or file.owner != owner:
            raise no_file(name.removeprefix("files/"))
        return file

    def show(self, name: str, owner: str) -> Wire:
        return self.get(name, owner).wire(self._clock())

    def delete(self, name: str, owner: str) -> Wire:
        del self._files[self.get(name, owner).name]
        return {}

    @property
    def by_name(self) -> dict[str, UploadedFile]:
        """The files that have not expired, by name."""
        return {name: file for name, file in self._files.items() if self._alive(name)}

    def lose(self, *names: str) -> None:
        """Delete files by name, all if none is given: to those who use them they are gone."""
        for name in names or tuple(self._files):
            self._files.pop(name, None)

    def list(self, owner: str, query: dict[str, str]) -> Wire:
        alive = [file for file in self._files.values() if file.owner == owner and self._alive(file.name)]
        return page("files", [file.wire(self._clock()) for file in alive[::-1]], query)

    def check_use(self, uri: str, owner: str, host: str) -> None:
        """Refuse *uri* if it names a file of ours that cannot be used."""
        name = _own_name(uri, host)
        if name is None:
            return
        file = self.get(name, owner)
        if self._clock() < file.ready or file.fails:
            raise file_not_active(name.removeprefix("files/"))

    def size(self, uri: str) -> int | None:
        """Return the bytes of the file at *uri*, if it is one of ours."""
        file = next((file for file in self._files.values() if file.uri == uri or file.name == uri), None)
        return len(file.data) if file else None

    def _alive(self, name: str) -> UploadedFile | None:
        file = self._files.get(name)
        return file if file and self._clock() < file.expires else None


def _own_name(uri: str, host: str) -> str | None:
    """Return the name of the file at *uri* if it is one of the service's."""
    try:
        split = urlsplit(uri)
    except ValueError:
        return None
    found = re.search(r"(?:^|/)(files/[^/?]+)$", split.path)
    own = not split.netloc or split.netloc in (host, _HOST)
    return found[1] if found and own else None

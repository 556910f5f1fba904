"""Files that were uploaded, and how they are uploaded."""

import base64
import hashlib
import re
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from palaver.sim.gemini.clock import stamp
from palaver.sim.gemini.errors import ServiceError, file_not_active, no_file
from palaver.sim.gemini.paging import page

Wire = dict[str, Any]

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_LIFETIME = 48 * 3600.0
_SERVICE = "generativelanguage.googleapis.com"


class Upload(Struct):
    """An upload under way."""

    owner: str
    name: str
    display_name: str
    mime: str
    base: str
    data: bytearray


class File(Struct, frozen=True, kw_only=True):
    """An uploaded file."""

    name: str
    owner: str
    display_name: str
    mime: str
    data: bytes
    uri: str
    created: float
    ready: float

    @property
    def expires(self) -> float:
        return self.created + _LIFETIME

    def wire(self, now: float) -> Wire:
        """The file as the service shows it."""
        hexed = hashlib.sha256(self.data).hexdigest()
        shown = {
            "name": self.name,
            "displayName": self.display_name,
            "mimeType": self.mime,
            "sizeBytes": str(len(self.data)),
            "createTime": stamp(self.created),
            "updateTime": stamp(max(self.created, min(now, self.ready))),
            "expirationTime": stamp(self.expires),
            "sha256Hash": base64.b64encode(hexed.encode()).decode(),
            "uri": self.uri,
            "state": "ACTIVE" if now >= self.ready else "PROCESSING",
            "source": "UPLOADED",
        }
        return {name: value for name, value in shown.items() if value}


class Files:
    """Every file there is; films and sounds are processed for a while first, and all expire."""

    def __init__(self, clock: Callable[[], float], random: Random, *, processing: float) -> None:
        self._clock = clock
        self._random = random
        self._processing = processing
        self._kept: dict[str, File] = {}
        self._uploads: dict[str, Upload] = {}

    def start(self, body: object, *, owner: str, mime: str, base: str) -> str:
        """Begin an upload; answers its id."""
        given = body.get("file") if isinstance(body, dict) else None
        wanted = given if isinstance(given, dict) else {}
        name = str(wanted.get("name") or "").removeprefix("files/") or self._random_text(12)
        if not _ID.fullmatch(name):
            message = "* CreateFileRequest.file.name: File ID must be 1-40 lowercase alphanumeric or dash characters\n"
            raise ServiceError(400, message, rule="file")
        if self._alive(f"files/{name}"):
            raise ServiceError(409, f"Requested entity already exists: files/{name}", rule="file")
        display_name = str(wanted.get("displayName") or wanted.get("display_name") or "")
        declared = str(wanted.get("mimeType") or wanted.get("mime_type") or mime)
        upload_id = self._random_text(24)
        self._uploads[upload_id] = Upload(owner, f"files/{name}", display_name, declared, base, bytearray())
        return upload_id

    def add(self, upload_id: str, data: bytes, *, offset: int) -> int:
        """Append *data* to an upload; answers how much there is of it."""
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise ServiceError(404, "Upload not found.", rule="file")
        if offset != len(upload.data):
            raise ServiceError(400, f"Invalid upload offset: {offset}, expected {len(upload.data)}.", rule="file")
        upload.data += data
        return len(upload.data)

    def finish(self, upload_id: str) -> Wire:
        """Turn an upload into a file."""
        upload = self._uploads.pop(upload_id)
        now = self._clock()
        slow = upload.mime.startswith(("video/", "audio/"))
        file = File(
            name=upload.name,
            owner=upload.owner,
            display_name=upload.display_name,
            mime=upload.mime,
            data=bytes(upload.data),
            uri=f"{upload.base}/{upload.name}",
            created=now,
            ready=now + (self._processing if slow else 0),
        )
        self._kept[file.name] = file
        return {"file": file.wire(now)}

    def get(self, name: str, owner: str) -> File:
        """The file called *name*; raises the service's error if it is gone, or somebody else's."""
        file = self._alive(name)
        if file is None or file.owner != owner:
            raise no_file(name.removeprefix("files/"))
        return file

    def show(self, name: str, owner: str) -> Wire:
        return self.get(name, owner).wire(self._clock())

    def delete(self, name: str, owner: str) -> Wire:
        del self._kept[self.get(name, owner).name]
        return {}

    def list(self, owner: str, query: dict[str, str]) -> Wire:
        alive = [file for file in self._kept.values() if file.owner == owner and self._alive(file.name)]
        return page("files", [file.wire(self._clock()) for file in alive[::-1]], query)

    def check_use(self, uri: str, owner: str, hosts: set[str]) -> None:
        """Refuse *uri* if it is of a file here that cannot be used."""
        name = own_name(uri, hosts)
        if name and self._clock() < self.get(name, owner).ready:
            raise file_not_active(name.removeprefix("files/"))

    def size(self, uri: str) -> int | None:
        """The bytes of the file at *uri*, if it is kept here."""
        file = next((file for file in self._kept.values() if file.uri == uri or file.name == uri), None)
        return len(file.data) if file else None

    def _alive(self, name: str) -> File | None:
        file = self._kept.get(name)
        return file if file and self._clock() < file.expires else None

    def _random_text(self, length: int) -> str:
        return "".join(self._random.choices(_ALPHABET, k=length))


def own_name(uri: str, hosts: set[str]) -> str | None:
    """The name of the file at *uri* if the service would keep it itself."""
    try:
        split = urlsplit(uri)
    except ValueError:
        return None
    found = re.search(r"(?:^|/)(files/[^/?]+)$", split.path)
    own = not split.netloc or split.netloc in hosts or split.netloc == _SERVICE
    return found[1] if found and own else None

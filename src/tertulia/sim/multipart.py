"""Forms with files, as browsers and clients send them: `multipart/form-data`. Pure."""

import re

from msgspec import Struct

_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?', re.IGNORECASE)
_NAME = re.compile(rb'\bname="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_FILENAME = re.compile(rb'\bfilename="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_TYPE = re.compile(rb"^content-type:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


class Upload(Struct, frozen=True):
    """A file that came with a call."""

    name: str
    mime: str
    data: bytes


def read_multipart(content_type: str, body: bytes) -> tuple[dict[str, str], dict[str, Upload]] | None:
    """Return the fields and the files of a form by their names; None where the type names no boundary."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return None
    fields: dict[str, str] = {}
    uploads: dict[str, Upload] = {}
    delimiter = b"\r\n--" + found.group(1).encode()
    for piece in (b"\r\n" + body).split(delimiter)[1:]:
        if piece.startswith(b"--"):
            break
        head, _, data = piece.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if name is None:
            continue
        filename, mime = _FILENAME.search(head), _TYPE.search(head)
        if filename is None:
            fields[_unquoted(name.group(1))] = data.decode(errors="replace")
            continue
        mime_type = mime.group(1).decode() if mime else ""
        uploads[_unquoted(name.group(1))] = Upload(_unquoted(filename.group(1)), mime_type, data)
    return fields, uploads


def _unquoted(value: bytes) -> str:
    return re.sub(rb"\\(.)", rb"\1", value).decode(errors="replace")

"""The arguments of a call: from the address, a form, a multipart body or JSON. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from msgspec import Struct

from palaver.sim.telegram.refusals import refused

_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?', re.IGNORECASE)
_NAME = re.compile(rb'\bname="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_FILENAME = re.compile(rb'\bfilename="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_TYPE = re.compile(rb"^content-type:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_INTEGER = re.compile(r"-?\d+")


class Upload(Struct, frozen=True):
    """A file that came with a call."""

    name: str
    mime: str
    data: bytes


class Arguments:
    """The arguments of a call by name, as text; a JSON body's values are the text of their JSON."""

    def __init__(self, given: Mapping[str, Any], uploads: Mapping[str, Upload] | None = None) -> None:
        self.given = dict(given)
        self.uploads = dict(uploads or {})

    def text(self, name: str) -> str:
        """Return an argument as text, "" without one."""
        value = self.given.get(name, "")
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def integer(self, name: str, default: int = 0, least: int | None = None, most: int | None = None) -> int:
        """Return an argument as a number; one out of bounds becomes the nearest that is in them."""
        found = _INTEGER.match(self.text(name).strip())
        value = default if name not in self.given else int(found.group()) if found else 0
        if least is not None:
            value = max(value, least)
        return value if most is None else min(value, most)

    def flag(self, name: str) -> bool:
        return self.text(name).strip().lower() in {"true", "yes", "1"}

    def json(self, name: str, rule: str) -> Any:
        """Return an argument as JSON, None without one; refuse by *rule* what is none."""
        text = self.text(name)
        if not text:
            return None
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            raise refused(rule) from None


def read_arguments(query: str, content_type: str, body: bytes) -> Arguments:
    """Read the arguments of a request; those of the body override those of the address."""
    given: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    uploads: dict[str, Upload] = {}
    kind = content_type.lower()
    if kind.startswith("multipart/form-data"):
        fields, uploads = _multipart(content_type, body)
        given |= fields
    elif kind.startswith("application/json"):
        given |= _json(body)
    elif body:
        given |= dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    return Arguments(given, uploads)


def _json(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise refused("body") from None
    if not isinstance(value, dict):
        raise refused("body")
    return value


def _multipart(content_type: str, body: bytes) -> tuple[dict[str, str], dict[str, Upload]]:
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise refused("body")
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

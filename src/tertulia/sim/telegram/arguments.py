"""The arguments of a call: from the address, a form, a multipart body or JSON. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson

from tertulia.sim.multipart import Upload, read_multipart
from tertulia.sim.telegram.refusals import refused

_INTEGER = re.compile(r"-?\d+")


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
        form = read_multipart(content_type, body)
        if form is None:
            raise refused("body")
        fields, uploads = form
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

"""The OpenAPI document of the page, made of the table of endpoints and the types of their values. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tertulia.platforms.web.endpoints import JSON, Endpoint
from tertulia.platforms.web.roles import EVERYBODY

REF = "#/components/schemas/{name}"
_IN_PATH = re.compile(r"{(\w+)(?::\w+)?}")  # a name, and how the router reads it
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def openapi_document(endpoints: Sequence[Endpoint], *, version: str, path: str) -> dict[str, Any]:
    """Return the document of a table; *path* is where the page is at its host."""
    types = {one for endpoint in endpoints for one in (endpoint.body, endpoint.answers) if one is not None}
    schemas, components = msgspec.json.schema_components(list(types), ref_template=REF)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(_IN_PATH.sub(r"{\1}", endpoint.path), {})[endpoint.method.lower()] = _operation(
            endpoint, by_type
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tertulia", "version": version},
        "servers": [{"url": path or "/"}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.status != 204:
        schema = schemas[endpoint.answers] if endpoint.answers is not None else {}
        answer["content"] = {endpoint.media_type: {"schema": schema}}
    error = {"description": "Why not", "content": {JSON: {"schema": {"$ref": REF.format(name="Error")}}}}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "parameters": list(_parameters(endpoint)),
        "responses": {str(endpoint.status): answer, "4XX": error, "503": error},
    }
    if endpoint.body is not None:
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas[endpoint.body]}}}
    if endpoint.roles == EVERYBODY:
        found["security"] = []
    return found


def _parameters(endpoint: Endpoint) -> Iterable[dict[str, Any]]:
    _, components = msgspec.json.schema_components([endpoint.arguments], ref_template=REF)
    fields = components[endpoint.arguments.__name__]
    in_path = _IN_PATH.findall(endpoint.path)
    for name, kind in fields["properties"].items():
        required = name in fields.get("required", ())
        where = "path" if name in in_path else "query"
        yield {"name": name, "in": where, "required": required, "schema": _without_null(kind)}


def _without_null(kind: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that is left out instead of being null."""
    others = [one for one in kind.get("anyOf", ()) if one != {"type": "null"}]
    return others[0] if len(others) == 1 else {name: value for name, value in kind.items() if name != "default"}

"""Errors of a service, whatever their form on the wire, and the depth limit of JSON bodies. Pure."""

from collections.abc import Mapping
from typing import Any

Wire = dict[str, Any]

FAULT = "fault"  # the rule of an error that `fail` asked for
DEEPEST = 100


class ServiceError(Exception):
    """A response that is no success. *rule* names the rule that refused the request; *body* is the JSON to send."""

    def __init__(
        self, status: int, message: str, *, rule: str, body: Any, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.rule = rule
        self.body = body
        self.headers = headers or {}


def too_deep(body: Any) -> bool:
    """Tell whether objects and lists are nested more than a hundred levels deep."""
    waiting = [(body, 1)] if isinstance(body, dict | list) else []
    while waiting:
        value, level = waiting.pop()
        if level > DEEPEST:
            return True
        children = value.values() if isinstance(value, dict) else value
        waiting += [(child, level + 1) for child in children if isinstance(child, dict | list)]
    return False

"""Refusals of an OpenAI-compatible server, in its words, and who reads a request. Pure."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

Object = Mapping[str, Any]


class Refusal(Struct, frozen=True):
    """An answer other than 200: the rule that was broken, and the error object that says so."""

    rule: str
    status: int
    message: str
    type: str
    param: str | None
    code: str | None


class Reader(Struct, frozen=True, kw_only=True):
    """Who reads the request: a model of OpenAI's, of Mistral's or of another service, strictly or not."""

    model: str
    openai: bool
    mistral: bool
    strict: bool
    extra_parts: frozenset[str]  # part types this server takes from users beyond OpenAI's own

    @property
    def firm(self) -> bool:
        """Whether rules hold that OpenAI always enforces and others only sometimes."""
        return self.openai or self.strict


def refusal(rule: str, message: str, *, param: str | None = None, code: str | None = None) -> Refusal:
    return Refusal(rule, 400, message, "invalid_request_error", param, code)


def mistyped(where: str) -> Refusal:
    return refusal("type", f"Invalid type for '{where}'.", param=where, code="invalid_type")


def missing(rule: str, where: str) -> Refusal:
    return refusal(rule, f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter")


def empty_array(rule: str, where: str) -> Refusal:
    text = f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return refusal(rule, text, param=where, code="empty_array")

"""Lint: finds what a service would refuse in a request, before it is sent. Pure."""

from typing import Any

import orjson
from msgspec import Struct

from tertulia.jsonio import deeper_than
from tertulia.wire import gemini, openai
from tertulia.wire.gemini_request import PossibleViolation
from tertulia.wire.generations import family, generation
from tertulia.wire.rules import DEEPEST, GEMINI_RULES, OPENAI_RULES


class Violation(Struct, frozen=True, kw_only=True):
    """A rule that a request breaks, the place, and what the service says."""

    rule: str
    where: str
    message: str


def lint(
    request: dict[str, Any] | bytes | str, *, model: str = "gemini-3.8-flash", strict: bool = False
) -> list[Violation]:
    """Return what *model*'s service refuses in *request*; `messages` in it means OpenAI-compatible.

    By default only what its generation always refuses; with *strict* also what it sometimes or presumably refuses.
    """
    body, unreadable = _body(request)
    compatible = isinstance(body, dict) and "contents" not in body and ("messages" in body or family(model) == "openai")
    violations = (openai.violations if compatible else gemini.violations)(body, model)
    rules, group = (OPENAI_RULES, family(model)) if compatible else (GEMINI_RULES, generation(model))
    wanted = {"always", "sometimes"} if strict else {"always"}
    return [
        Violation(
            rule=rules[violation.rule].name,
            where=violation.where,
            message=rules[violation.rule].message.format(**_words(violation, unreadable)),
        )
        for violation in violations
        if rules[violation.rule].when(group) in wanted
    ]


def _words(violation: PossibleViolation, unreadable: str) -> dict[str, Any]:
    at = f" at '{violation.where}'" if violation.where else ""
    return {"where": violation.where, "at": at, "unreadable": unreadable, **violation.words}


def _body(request: dict[str, Any] | bytes | str) -> tuple[Any, str]:
    """Return the request as an object; or None, and why it is no object."""
    found: Any = request
    if not isinstance(request, dict):
        try:
            found = orjson.loads(request)
        except orjson.JSONDecodeError as error:
            return None, f" {str(error).capitalize()}"
    if not isinstance(found, dict):
        return None, " It is no object."
    return (None, " It is nested too deeply.") if deeper_than(found, DEEPEST) else (found, "")

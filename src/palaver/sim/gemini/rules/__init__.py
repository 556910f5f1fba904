"""Rules of the Gemini API: which requests it refuses, in which order and in which words. Pure."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from msgspec import Struct

from palaver.sim.errors import Wire, too_deep
from palaver.sim.gemini.rules.conversation import conversation, incomplete_calls
from palaver.sim.gemini.rules.fields import Parser
from palaver.sim.gemini.rules.generations import Generation, Subject, Violation, bare, generation
from palaver.sim.gemini.rules.parts import UNREADABLE, bad_base64, media, missing, payload_size
from palaver.sim.gemini.rules.settings import cached_with_others, settings, unknown_level
from palaver.sim.gemini.rules.tools import bad_declarations, bad_schema_types, tools

__all__ = ["Generation", "Refusal", "bare", "check", "generation", "read"]


class Refusal(Struct, frozen=True):
    """The error 400 for a request that breaks a rule; *rule* is its name in docs/wire-rules.md."""

    rule: str
    message: str
    details: tuple[Any, ...] = ()


def check(body: object, *, model: str, strict: bool = True) -> Refusal | None:
    """Return why *model* refuses *body*, or None. Unless *strict*, what is refused only sometimes passes."""
    request, refusal = read("request", body)
    return refusal or _first_refusal(request, Subject(bare(model), generation(model)), strict=strict)


def read(kind: str, body: object) -> tuple[Wire, Refusal | None]:
    """Parse *body* as an object of *kind*; the refusal says why it cannot be parsed."""
    if not isinstance(body, dict) or too_deep(body):
        return {}, Refusal("json", "Invalid JSON payload received.")
    parser = Parser()
    found = parser.read_one(kind, body, "")
    return found, _unparsed(parser.violations) if parser.violations else None


def _first_refusal(request: Wire, subject: Subject, *, strict: bool) -> Refusal | None:
    def enforced(violations: Iterable[Violation]) -> list[Violation]:
        return [one for one in violations if strict or one.always]

    if unparsed := enforced(chain(bad_base64(request), bad_schema_types(request), unknown_level(request))):
        return _unparsed(unparsed)
    if too_large := enforced(payload_size(request)):
        return Refusal(too_large[0].rule, too_large[0].message)
    lines = enforced(chain(missing(request, subject), bad_declarations(request)))
    if not any(line.rule in UNREADABLE for line in lines):
        lines += enforced(incomplete_calls(request))
    if lines:
        return Refusal(lines[0].rule, "".join(f"{line.message}\n" for line in lines))
    found = next(iter(enforced(_in_order(request, subject))), None)
    return Refusal(found.rule, found.message) if found else None


def _in_order(request: Wire, subject: Subject) -> Iterator[Violation]:
    yield from conversation(request, subject)
    yield from cached_with_others(request)
    yield from settings(request, subject)
    yield from tools(request, subject)
    yield from media(request)


def _unparsed(violations: list[Violation]) -> Refusal:
    """Return the refusal of a body that cannot be parsed, with a line for each violation."""
    reasons = [{"field": one.where, "description": one.message} for one in violations]
    detail = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": reasons}
    return Refusal(violations[0].rule, "\n".join(one.message for one in violations), (detail,))

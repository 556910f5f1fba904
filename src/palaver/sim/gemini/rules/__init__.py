"""What the service refuses, judged as the service does. Pure."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from msgspec import Struct

from palaver.sim.errors import Wire, too_deep
from palaver.sim.gemini.rules.conversation import conversation, names
from palaver.sim.gemini.rules.fields import Parser
from palaver.sim.gemini.rules.generations import Generation, Subject, Violation, bare, generation
from palaver.sim.gemini.rules.parts import UNREADABLE, media, missing, payload_size, undecodable
from palaver.sim.gemini.rules.settings import cached_with_others, settings, unknown_level
from palaver.sim.gemini.rules.tools import bad_schema_types, malformed, tools

__all__ = ["Generation", "Refusal", "bare", "check", "generation", "read"]


class Refusal(Struct, frozen=True):
    """The answer to a request that is not taken; *rule* is named in docs/wire-rules.md."""

    rule: str
    status: int
    state: str
    message: str
    details: tuple[Any, ...] = ()


def check(body: object, *, model: str, strict: bool = True) -> Refusal | None:
    """Why *model* refuses the request in *body*, or nothing; plain leaves out what is refused only sometimes."""
    request, unread = read("request", body)
    if unread:
        return unread
    subject = Subject(bare(model), generation(model))
    return _judge(request, subject, strict=strict)


def read(kind: str, body: object) -> tuple[Wire, Refusal | None]:
    """*body* read as an object of *kind*, and why it cannot be."""
    if not isinstance(body, dict) or too_deep(body):
        return {}, _invalid("json", "Invalid JSON payload received.")
    parser = Parser()
    found = parser.read_one(kind, body, "")
    return found, _unparsed(parser.violations) if parser.violations else None


def _judge(request: Wire, subject: Subject, *, strict: bool) -> Refusal | None:
    def named(violations: Iterable[Violation]) -> list[Violation]:
        return [one for one in violations if strict or one.always]

    if unparsed := named(chain(undecodable(request), bad_schema_types(request), unknown_level(request))):
        return _unparsed(unparsed)
    if too_large := named(payload_size(request)):
        return _invalid(too_large[0].rule, too_large[0].message)
    lines = named(chain(missing(request, subject), malformed(request)))
    readable = not any(line.rule in UNREADABLE for line in lines)
    if readable:
        lines += named(names(request["contents"]))
    if lines:
        return _invalid(lines[0].rule, "".join(f"{line.message}\n" for line in lines))
    found = next(iter(named(_in_order(request, subject))), None)
    return _invalid(found.rule, found.message) if found else None


def _in_order(request: Wire, subject: Subject) -> Iterator[Violation]:
    yield from conversation(request["contents"], subject)
    yield from cached_with_others(request)
    yield from settings(request, subject)
    yield from tools(request, subject)
    yield from media(request)


def _invalid(rule: str, message: str, details: tuple[Any, ...] = ()) -> Refusal:
    return Refusal(rule, 400, "INVALID_ARGUMENT", message, details)


def _unparsed(violations: list[Violation]) -> Refusal:
    """The refusal of what cannot be parsed, a line for each reason."""
    reasons = [{"field": one.where, "description": one.message} for one in violations]
    detail = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": reasons}
    return _invalid(violations[0].rule, "\n".join(one.message for one in violations), (detail,))

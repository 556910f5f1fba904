"""Finding what a service would refuse in a request, before it is sent. Pure."""

from typing import Any

import orjson
from msgspec import Struct

from palaver.wire import gemini, openai
from palaver.wire.rules import GEMINI_RULES, OPENAI_RULES, family, generation


class Violation(Struct, frozen=True, kw_only=True):
    """A rule that a request breaks, the place, and what the service says."""

    rule: str
    where: str
    message: str


def lint(
    request: dict[str, Any] | bytes | str, *, model: str = "gemini-3.8-flash", strict: bool = False
) -> list[Violation]:
    """What *model*'s service refuses in *request*; `messages` in it means OpenAI-compatible.

    Plain, only what that generation always refuses; strict adds what it refuses sometimes or is only believed to.
    """
    body = _body(request)
    compatible = isinstance(body, dict) and "messages" in body and "contents" not in body
    faults = (openai.faults if compatible else gemini.faults)(body, model)
    rules, group = (OPENAI_RULES, family(model)) if compatible else (GEMINI_RULES, generation(model))
    wanted = {"always", "sometimes"} if strict else {"always"}
    return [
        Violation(
            rule=rules[fault.rule].name,
            where=fault.where,
            message=rules[fault.rule].message.format(**{"where": fault.where, **fault.words}),
        )
        for fault in faults
        if rules[fault.rule].when(group) in wanted
    ]


def _body(request: dict[str, Any] | bytes | str) -> Any:
    if isinstance(request, dict):
        return request
    try:
        return orjson.loads(request)
    except orjson.JSONDecodeError:
        return None

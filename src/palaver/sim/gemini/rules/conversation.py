"""Rules of a conversation: roles, the order of calls and results, and signatures. Pure."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from msgspec import Struct

from palaver.sim.errors import Wire
from palaver.sim.gemini.rules.generations import (
    GEMMA,
    THREE_AND_LATER,
    THREE_SIX_AND_LATER,
    TWO,
    Subject,
    Violation,
)
from palaver.sim.signatures import missing_signature

CALL_AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
RESULT_AFTER_CALL = "Please ensure that function response turn comes immediately after a function call turn."
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the"
    " function call turn."
)
ENDS_WITH_MODEL = "Requests ending with a model turn are not supported."
_NEW_ROLES = ("system", "system_1", "user", "assistant", "developer", "context", "user_context", "model")
_OLD_ROLES = ("user", "model", "function", "tool")


class Content(Struct, frozen=True):
    """A content of a request, its index, and the side it counts to."""

    index: int
    side: Literal["user", "model"]
    parts: list[Wire]

    def parts_with(self, name: str) -> list[tuple[int, Wire]]:
        """Return the parts that have the field *name*, with their indexes."""
        return [(j, part) for j, part in enumerate(self.parts) if name in part]

    @property
    def calls(self) -> list[tuple[int, Wire]]:
        return self.parts_with("functionCall") if self.side == "model" else []

    @property
    def results(self) -> list[tuple[int, Wire]]:
        return self.parts_with("functionResponse") if self.side == "user" else []

    @property
    def has_more_than_results(self) -> bool:
        return any("functionResponse" not in part for part in self.parts)


class Turn(Struct, frozen=True):
    """Adjacent contents of one side."""

    contents: list[Content]

    @property
    def side(self) -> str:
        return self.contents[0].side

    @property
    def calls(self) -> list[Wire]:
        return [part["functionCall"] for content in self.contents for _, part in content.calls]

    @property
    def results(self) -> list[Wire]:
        return [part["functionResponse"] for content in self.contents for _, part in content.results]


def side(role: str) -> Literal["user", "model"]:
    """Return the side a content of *role* counts to."""
    return "model" if role.lower() in ("model", "assistant") else "user"


def contents_of(request: Wire) -> list[Content]:
    """Return the contents of a request with their sides."""
    return [
        Content(index, side(content.get("role", "")), content.get("parts", []))
        for index, content in enumerate(request["contents"])
    ]


def turns(contents: list[Content]) -> list[Turn]:
    """Group adjacent contents of one side."""
    return [Turn(list(group)) for _, group in groupby(contents, key=lambda one: one.side)]


def current_turn(contents: list[Content]) -> list[Content]:
    """Return the contents after the last one of the user that has more than results."""
    starts = [one.index for one in contents if one.side == "user" and one.has_more_than_results]
    return contents[starts[-1] + 1 :] if starts else contents


def incomplete_calls(request: Wire) -> Iterator[Violation]:
    """Find calls and results that lack a name or a response."""
    for content in contents_of(request):
        for j, part in content.results:
            yield from _incomplete_result(part["functionResponse"], f"contents[{content.index}].parts[{j}]")
        for j, part in content.calls:
            if not part["functionCall"].get("name"):
                place = f"contents[{content.index}].parts[{j}]"
                message = f"* GenerateContentRequest.{place}.function_call.name: Name cannot be empty."
                yield Violation("call-no-name", message, place, always=False)


def _incomplete_result(result: Wire, where: str) -> Iterator[Violation]:
    place = f"* GenerateContentRequest.{where}.function_response"
    if not result.get("name"):
        yield Violation("result-name", f"{place}.name: Name cannot be empty.", where)
    if "response" not in result:
        yield Violation("no-response", f"{place}.response: required field is not set.", where, always=False)


def conversation(request: Wire, subject: Subject) -> Iterator[Violation]:
    """Find what is wrong with roles, calls, results and signatures, in the order the service checks them."""
    contents = contents_of(request)
    yield from _roles(request["contents"], subject)
    yield from _ending(contents, subject)
    yield from _adjacency(turns(contents))
    yield from _pairs(turns(contents), subject)
    yield from _misplaced(contents)
    if subject.generation in TWO | GEMMA:
        yield from _result_parts(contents)
    yield from _signatures(contents, subject)


def _result_parts(contents: list[Content]) -> Iterator[Violation]:
    for one in contents:
        for j, part in one.results:
            parts = part["functionResponse"].get("parts")
            if isinstance(parts, list) and parts:
                message = "Function response parts are not supported for this model."
                yield Violation("result-parts", message, f"contents[{one.index}].parts[{j}]")


def _roles(contents: list[Wire], subject: Subject) -> Iterator[Violation]:
    newer = subject.generation in THREE_SIX_AND_LATER
    known = _NEW_ROLES if newer else _OLD_ROLES
    for i, content in enumerate(contents):
        role = content.get("role", "")
        message = _role_message(role) if newer else "Please use a valid role: user, model."
        if role and role.lower() not in known:
            yield Violation("role", message, f"contents[{i}].role")
        elif role not in ("user", "model") and (role or len(contents) > 1):
            yield Violation("role", message, f"contents[{i}].role", always=False)


def _role_message(role: str) -> str:
    return (
        f"Role '{role}' is not supported. Please use a valid role:"
        " SYSTEM, SYSTEM_1, USER, ASSISTANT, DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER."
    )


def _refuses_prefill(subject: Subject) -> bool:
    return subject.generation == "3.5-lite" or subject.generation in THREE_SIX_AND_LATER


def _ending(contents: list[Content], subject: Subject) -> Iterator[Violation]:
    if _refuses_prefill(subject) and contents[-1].side == "model":
        yield Violation("ends-with-model", ENDS_WITH_MODEL, f"contents[{contents[-1].index}]")
    if subject.generation not in THREE_AND_LATER:
        return
    for one in contents:
        if one.results and any("functionResponse" not in part for part in one.parts[one.results[0][0] :]):
            where = f"contents[{one.index}]"
            yield Violation("text-after-results", ENDS_WITH_MODEL, where, always=_refuses_prefill(subject))


def _adjacency(all_turns: list[Turn]) -> Iterator[Violation]:
    if all_turns[0].calls:
        yield Violation("call-after-user", CALL_AFTER_USER, "contents[0]")
    before: Turn | None = None
    for turn in all_turns:
        follows_calls = before is not None and bool(before.calls)
        if turn.results and not follows_calls:
            yield Violation("result-after-call", RESULT_AFTER_CALL, f"contents[{turn.contents[0].index}]")
        if follows_calls:
            yield from _result_first(turn)
        before = turn


def _result_first(turn: Turn) -> Iterator[Violation]:
    for before, one in zip(turn.contents, turn.contents[1:], strict=False):
        if one.results and before.has_more_than_results:
            yield Violation("result-first", RESULT_AFTER_CALL, f"contents[{one.index}]", always=False)


def _pairs(all_turns: list[Turn], subject: Subject) -> Iterator[Violation]:
    for turn, following in zip(all_turns, [*all_turns[1:], None], strict=True):
        if not turn.calls:
            continue
        where = f"contents[{turn.contents[0].index}]"
        if following is None:
            if not _refuses_prefill(subject):
                yield Violation("unanswered", COUNT, where, always=False)
        else:
            yield from _mismatch(turn.calls, following.results, subject, where)
        if any(count > 1 for count in _ids(turn.calls).values()):
            yield Violation("duplicate-id", COUNT, where, always=False)


def _mismatch(calls: list[Wire], results: list[Wire], subject: Subject, where: str) -> Iterator[Violation]:
    if len(calls) != len(results):
        yield Violation("count", COUNT, where)
    elif _ids(results) - _ids(calls):
        unmatched = bool(_ids(calls) - _ids(results))
        yield Violation("call-id", COUNT, where, always=unmatched and subject.generation in THREE_AND_LATER)
    elif Counter(call.get("name", "") for call in calls) != Counter(result.get("name", "") for result in results):
        yield Violation("call-name", COUNT, where, always=False)


def _ids(entries: list[Wire]) -> Counter[str]:
    return Counter(entry["id"] for entry in entries if entry.get("id"))


def _misplaced(contents: list[Content]) -> Iterator[Violation]:
    for one in contents:
        if one.side == "user" and one.parts_with("functionCall"):
            yield Violation("misplaced-call", CALL_AFTER_USER, f"contents[{one.index}]", always=False)
        if one.side == "model" and one.parts_with("functionResponse"):
            yield Violation("misplaced-call", RESULT_AFTER_CALL, f"contents[{one.index}]", always=False)


def _signatures(contents: list[Content], subject: Subject) -> Iterator[Violation]:
    if subject.generation == "2.0" or subject.generation in GEMMA:
        return
    for turn in turns(current_turn(contents)):
        calling = [one for one in turn.contents if one.calls]
        for place, one in enumerate(calling):
            j, first = one.calls[0]
            if not first.get("thoughtSignature"):
                always = place == 0 and subject.generation in THREE_AND_LATER
                message = missing_signature(first["functionCall"].get("name", ""), one.index + 1)
                yield Violation("signature", message, f"contents[{one.index}].parts[{j}]", always=always)

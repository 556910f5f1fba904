"""Who may speak when: roles, the order of calls and results, and signatures. Pure."""

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


class Said(Struct, frozen=True):
    """A content, its place in the request, and the side it counts to."""

    index: int
    side: Literal["user", "model"]
    parts: list[Wire]

    def holding(self, name: str) -> list[tuple[int, Wire]]:
        """The parts that hold the field *name*, with their places."""
        return [(j, part) for j, part in enumerate(self.parts) if name in part]

    @property
    def calls(self) -> list[tuple[int, Wire]]:
        return self.holding("functionCall") if self.side == "model" else []

    @property
    def results(self) -> list[tuple[int, Wire]]:
        return self.holding("functionResponse") if self.side == "user" else []

    @property
    def holds_more_than_results(self) -> bool:
        return any("functionResponse" not in part for part in self.parts)


class Turn(Struct, frozen=True):
    """Contents next to each other of one side."""

    said: list[Said]

    @property
    def side(self) -> str:
        return self.said[0].side

    @property
    def calls(self) -> list[Wire]:
        return [part["functionCall"] for said in self.said for _, part in said.calls]

    @property
    def results(self) -> list[Wire]:
        return [part["functionResponse"] for said in self.said for _, part in said.results]


def side(role: str) -> Literal["user", "model"]:
    """The side a content of *role* counts to."""
    return "model" if role.lower() in ("model", "assistant") else "user"


def sayings(contents: list[Wire]) -> list[Said]:
    """*contents* with their sides."""
    return [
        Said(index, side(content.get("role", "")), content.get("parts", [])) for index, content in enumerate(contents)
    ]


def turns(said: list[Said]) -> list[Turn]:
    """*said* with neighbours of one side put together."""
    return [Turn(list(group)) for _, group in groupby(said, key=lambda one: one.side)]


def current_turn(said: list[Said]) -> list[Said]:
    """What stands after the last user content that holds anything but results."""
    starts = [one.index for one in said if one.side == "user" and one.holds_more_than_results]
    return said[starts[-1] + 1 :] if starts else said


def names(contents: list[Wire]) -> Iterator[Violation]:
    """Calls and results that lack a name or a response."""
    for said in sayings(contents):
        for j, part in said.results:
            yield from _incomplete_result(part["functionResponse"], f"contents[{said.index}].parts[{j}]")
        for j, part in said.calls:
            if not part["functionCall"].get("name"):
                place = f"contents[{said.index}].parts[{j}]"
                message = f"* GenerateContentRequest.{place}.function_call.name: Name cannot be empty."
                yield Violation("call-no-name", message, place, always=False)


def _incomplete_result(result: Wire, where: str) -> Iterator[Violation]:
    place = f"* GenerateContentRequest.{where}.function_response"
    if not result.get("name"):
        yield Violation("result-name", f"{place}.name: Name cannot be empty.", where)
    if "response" not in result:
        yield Violation("no-response", f"{place}.response: required field is not set.", where, always=False)


def conversation(contents: list[Wire], subject: Subject) -> Iterator[Violation]:
    """What is wrong with the order of things said, in the order the service looks."""
    said = sayings(contents)
    yield from _roles(contents, subject)
    yield from _ending(said, subject)
    yield from _adjacency(turns(said))
    yield from _pairs(turns(said), subject)
    yield from _misplaced(said)
    if subject.generation in TWO | GEMMA:
        yield from _result_parts(said)
    yield from _signatures(said, subject)


def _result_parts(said: list[Said]) -> Iterator[Violation]:
    for one in said:
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


def _ending(said: list[Said], subject: Subject) -> Iterator[Violation]:
    if _refuses_prefill(subject) and said[-1].side == "model":
        yield Violation("ends-with-model", ENDS_WITH_MODEL, f"contents[{said[-1].index}]")
    if subject.generation not in THREE_AND_LATER:
        return
    for one in said:
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
            yield Violation("result-after-call", RESULT_AFTER_CALL, f"contents[{turn.said[0].index}]")
        if follows_calls:
            yield from _result_first(turn)
        before = turn


def _result_first(turn: Turn) -> Iterator[Violation]:
    for before, one in zip(turn.said, turn.said[1:], strict=False):
        if one.results and before.holds_more_than_results:
            yield Violation("result-first", RESULT_AFTER_CALL, f"contents[{one.index}]", always=False)


def _pairs(all_turns: list[Turn], subject: Subject) -> Iterator[Violation]:
    for turn, following in zip(all_turns, [*all_turns[1:], None], strict=True):
        if not turn.calls:
            continue
        where = f"contents[{turn.said[0].index}]"
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


def _misplaced(said: list[Said]) -> Iterator[Violation]:
    for one in said:
        if one.side == "user" and one.holding("functionCall"):
            yield Violation("misplaced-call", CALL_AFTER_USER, f"contents[{one.index}]", always=False)
        if one.side == "model" and one.holding("functionResponse"):
            yield Violation("misplaced-call", RESULT_AFTER_CALL, f"contents[{one.index}]", always=False)


def _signatures(said: list[Said], subject: Subject) -> Iterator[Violation]:
    if subject.generation == "2.0" or subject.generation in GEMMA:
        return
    for turn in turns(current_turn(said)):
        calling = [one for one in turn.said if one.calls]
        for place, one in enumerate(calling):
            j, first = one.calls[0]
            if not first.get("thoughtSignature"):
                always = place == 0 and subject.generation in THREE_AND_LATER
                message = missing_signature(first["functionCall"].get("name", ""), one.index + 1)
                yield Violation("signature", message, f"contents[{one.index}].parts[{j}]", always=always)

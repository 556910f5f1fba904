"""A run as spans: itself, what was gathered for it, its calls and its tools. Pure.

Texts and arguments are in no span unless *content* asks for them; then they are as the page shows them, without keys.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, assert_never

import msgspec
from msgspec import Struct

from tertulia.inspector.shown import words_of
from tertulia.inspector.values import RunShown, StepShown
from tertulia.models.calls import Call
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.redaction import redact_keys
from tertulia.run.journal import ToolRun
from tertulia.traces import names
from tertulia.turns import Turn

Value = str | int | float | bool | Sequence[str]


class SpanValue(Struct, frozen=True, kw_only=True):
    """A span that has ended."""

    operation: names.Operation
    subject: str  # the agent, model or tool
    begun_at: datetime
    ended_at: datetime
    attributes: Mapping[str, Value]
    error: str = ""  # its class

    @property
    def name(self) -> str:
        return f"{self.operation} {self.subject}".strip()


def run_spans(shown: RunShown, *, agent: str, content: bool) -> list[SpanValue]:
    """Return the spans of a run that has ended, itself first."""
    run = shown.row.run
    ended_at = run.ended_at or run.began_at
    calls = [one.call for step in shown.steps for one in step.calls]
    failure = next((call.error for call in reversed(calls) if call.error), names.OTHER)
    root = SpanValue(
        operation="invoke_agent",
        subject=agent,
        begun_at=run.began_at,
        ended_at=ended_at,
        error=failure if run.status == "failed" else "",
        attributes=_known({
            names.PROVIDER: next((provider_of(call) for call in calls), names.OTHER),
            names.AGENT: agent,
            names.CONVERSATION: shown.row.place_key,
            names.REQUEST_MODEL: run.model,
            names.INPUT_TOKENS: shown.row.spent.input,
            names.OUTPUT_TOKENS: shown.row.spent.output,
            names.CACHE_READ: shown.row.spent.cached,
            names.RUN: run.id,
            names.DOLLARS: shown.row.spent.money,
        }),
    )  # fmt: skip
    spans = [root, *_retrieval(shown, content=content)]
    for step in shown.steps:
        spans += [_chat(step, one.call, content=content) for one in step.calls]
        spans += [_tool(tool, ended_at, content=content) for tool in step.tool_runs]
    return spans


def _retrieval(shown: RunShown, *, content: bool) -> Iterable[SpanValue]:
    """Yield what was gathered until the first prompt was sent, with what memory gave."""
    gathered = next((one for one in shown.spans if one.kind == "gather"), None)
    if gathered is None or gathered.ended_at is None:
        return
    attributes: dict[str, Value] = {names.DATA_SOURCE: "memory", names.RECALLED: len(shown.recalled)}
    if content:
        found = [{"id": one.thing.id, "score": one.thing.score, "content": one.text} for one in shown.recalled]
        attributes[names.QUERY] = redact_keys("\n".join(map(words_of, shown.taken)))
        attributes[names.DOCUMENTS] = _json(found)
    yield SpanValue(
        operation="retrieval",
        subject="memory",
        begun_at=gathered.begun_at,
        ended_at=gathered.ended_at,
        attributes=attributes,
    )


def _chat(step: StepShown, call: Call, *, content: bool) -> SpanValue:
    used, request = call.usage, call.request
    attributes: dict[str, Any] = {
        names.PROVIDER: provider_of(call),
        names.REQUEST_MODEL: call.model,
        names.RESPONSE_MODEL: call.answered_by,
        names.REQUEST_STREAM: request.streamed if request else None,
        names.FIRST_CHUNK: (call.first_at - call.begun_at).total_seconds() if call.first_at else None,
        names.INPUT_TOKENS: used.input,
        names.OUTPUT_TOKENS: used.output + used.thought,
        names.CACHE_READ: used.cached,
        names.CACHE_CREATION: used.written,
        names.REASONING: used.thought,
        names.STEP: step.step,
        names.ATTEMPT: call.attempt,
        names.DOLLARS: call.money,
    }
    if call.status == "answered":
        outcome, _, _ = call.why.partition(" ")  # and why, in the service's own words
        attributes[names.FINISH_REASONS] = (outcome or "stop",)
    if content:
        instructions = [{"type": "text", "content": redact_keys(one.instruction)} for one in step.layers]
        turns = [turn for layer in step.layers for turn in layer.turns]
        attributes[names.INSTRUCTIONS] = _json([one for one in instructions if one["content"]])
        attributes[names.INPUT_MESSAGES] = _json(list(map(message_of, turns)))
        if step.answer and call.status == "answered":
            attributes[names.OUTPUT_MESSAGES] = _json([message_of(step.answer)])
    return SpanValue(
        operation="chat",
        subject=call.model,
        begun_at=call.begun_at,
        ended_at=call.ended_at,
        attributes=_known(attributes),
        error=call.error if call.status == "failed" else "",
    )


def _tool(tool: ToolRun, ended_at: datetime, *, content: bool) -> SpanValue:
    result = tool.result
    attributes: dict[str, Any] = {
        names.TOOL_NAME: tool.call.name,
        names.TOOL_TYPE: "function",
        names.TOOL_CALL: tool.call.id,
        names.STEP: tool.step,
    }
    if content:
        attributes[names.TOOL_ARGUMENTS] = _json(tool.call.args)
        attributes[names.TOOL_RESULT] = _json(result.value) if result else None
    return SpanValue(
        operation="execute_tool",
        subject=tool.call.name,
        begun_at=tool.began_at,
        ended_at=tool.ended_at or ended_at,
        attributes=_known(attributes),
        error=names.OTHER if result is None or result.failed else "",
    )


def provider_of(call: Call) -> str:
    """Return the provider of a call, by the format of its request and its vendor."""
    if call.request is None or not call.request.wire:
        return names.OTHER
    vendor = call.request.vendor
    name = vendor.name if vendor else call.request.wire
    return names.PROVIDERS.get(name, name)


def message_of(turn: Turn) -> dict[str, Any]:
    """Return a turn as a message of the conventions."""
    role = "assistant" if turn.role == "model" else "user"
    if turn.parts and all(isinstance(part, ToolResult) for part in turn.parts):
        role = "tool"
    return {"role": role, "parts": list(map(_part, turn.parts))}


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "content": part.text}
        case Thought():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.args}
        case ToolResult():
            return {"type": "tool_call_response", "id": part.id, "response": part.value}
        case Media():
            return {"type": "text", "content": part.words}
        case Opaque():
            return {"type": "opaque"}
    assert_never(part)


def _json(value: Any) -> str:
    return redact_keys(msgspec.json.encode(value).decode())


def _known(attributes: Mapping[str, Any]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value not in (None, "")}

"""Prompts, turns and parts as readable text, byte for byte what a model is given."""

import json
from collections.abc import Iterable
from typing import Any

from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Prompt, ToolSpec, Turn


def in_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def a_section(title: str, text: str) -> str:
    return f"===== {title}\n{text}\n"


def shown_specs(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    return [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in specs]


def shown_prompt(prompt: Prompt) -> str:
    settings = prompt.settings
    lines = []
    for layer in prompt.layers:
        lines.append(f"--- layer {layer.name}")
        if layer.instruction:
            lines.append(f"instruction | {layer.instruction}")
        lines += map(shown_turn, layer.turns)
    if prompt.tools:
        lines.append(f"--- tools\n{in_json(shown_specs(prompt.tools))}")
    if settings.tool_choice:
        lines.append(f"--- tool choice: {settings.tool_choice}")
    if settings.answer is not None:
        lines.append(f"--- answer\n{in_json(settings.answer)}")
    return "\n".join(lines)


def shown_turns(turns: Iterable[Turn]) -> str:
    return "\n".join(map(shown_turn, turns))


def shown_turn(turn: Turn) -> str:
    return "\n".join(f"{turn.role} {shown_part(part)}" for part in turn.parts) or f"{turn.role} nothing"


def shown_part(part: Part) -> str:
    match part:
        case Text(text=text):
            return f"text | {text}"
        case Thought(text=text):
            return f"thought | {text}"
        case Media():
            sent = f"{len(part.data)} bytes" if part.data else part.uri or "no content"
            return f"media | {part.media_kind} {part.unique_id} {part.mime}, {sent}: {part.rendered_text}"
        case ToolCall(name=name, args=args, id=call_id, signature=signature):
            return f"call | {name} {call_id} {json.dumps(args, ensure_ascii=False)} {signature or ''}".rstrip()
        case ToolResult():
            media = "".join(f"\n  with {shown_part(one)}" for one in part.media)
            done = "failed" if part.failed else "answered"
            return f"result | {part.name} {part.id} {done}: {in_json(part.value)}{media}"
        case Opaque(raw=raw):
            return f"opaque | {json.dumps(raw, ensure_ascii=False)}"

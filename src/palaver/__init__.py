"""Palaver: a conversation engine for chat agents."""

from palaver.errors import PalaverError
from palaver.messages import Author, Message, Place, Quote, Reply
from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.turns import Layer, Prompt, Record, Settings, ToolSpec, Turn, model, user

__all__ = [
    "Author",
    "Layer",
    "Media",
    "Message",
    "Opaque",
    "PalaverError",
    "Part",
    "Place",
    "Prompt",
    "Quote",
    "Record",
    "Reply",
    "Settings",
    "Text",
    "Thought",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Turn",
    "model",
    "user",
]

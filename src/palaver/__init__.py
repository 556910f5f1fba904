"""Palaver: a conversation engine for chat agents."""

from typing import TYPE_CHECKING, Any

from palaver.errors import PalaverError
from palaver.messages import Author, Message, Place, Quote, Reply
from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.platform import Capabilities, Delivery, Inbox, Platform
from palaver.turns import Layer, Prompt, Record, Settings, ToolSpec, Turn, model, user

if TYPE_CHECKING:
    from palaver.chat import Chat
    from palaver.context.values import Persona
    from palaver.engine.behavior import Behavior
    from palaver.engine.engine import Engine
    from palaver.engine.memory import Memory
    from palaver.profiles import Profile
    from palaver.store import Store
    from palaver.sync import SyncChat
    from palaver.toolbox.run_context import RunContext
    from palaver.toolbox.toolbox import Toolbox, tool

__all__ = [
    "Author",
    "Behavior",
    "Capabilities",
    "Chat",
    "Delivery",
    "Engine",
    "Inbox",
    "Layer",
    "Media",
    "Memory",
    "Message",
    "Opaque",
    "PalaverError",
    "Part",
    "Persona",
    "Place",
    "Platform",
    "Profile",
    "Prompt",
    "Quote",
    "Record",
    "Reply",
    "RunContext",
    "Settings",
    "Store",
    "SyncChat",
    "Text",
    "Thought",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Toolbox",
    "Turn",
    "model",
    "tool",
    "user",
]

_LATER = {
    "Chat": "palaver.chat",
    "Behavior": "palaver.engine.behavior",
    "Engine": "palaver.engine.engine",
    "Memory": "palaver.engine.memory",
    "Persona": "palaver.context.values",
    "Profile": "palaver.profiles",
    "RunContext": "palaver.toolbox.run_context",
    "Store": "palaver.store",
    "SyncChat": "palaver.sync",
    "Toolbox": "palaver.toolbox.toolbox",
    "tool": "palaver.toolbox.toolbox",
}


def __getattr__(name: str) -> Any:
    """Import what needs an HTTP client only when it is used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return __all__

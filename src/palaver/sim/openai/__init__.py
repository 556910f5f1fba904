"""A simulator of OpenAI-compatible servers, strict about what they refuse."""

from palaver.sim.openai.app import Received
from palaver.sim.openai.behaviours import Actor, Behaviour, Echo, Script, behaviour_named
from palaver.sim.openai.faults import (
    ContentFilter,
    ContextTooLong,
    CutStream,
    Empty,
    ErrorFrame,
    Fault,
    Hang,
    Internal,
    Length,
    MalformedArguments,
    Overloaded,
    Quota,
    RateLimited,
    Refusal,
)
from palaver.sim.openai.sim import MODELS, OpenAISim

__all__ = [
    "MODELS",
    "Actor",
    "Behaviour",
    "ContentFilter",
    "ContextTooLong",
    "CutStream",
    "Echo",
    "Empty",
    "ErrorFrame",
    "Fault",
    "Hang",
    "Internal",
    "Length",
    "MalformedArguments",
    "OpenAISim",
    "Overloaded",
    "Quota",
    "RateLimited",
    "Received",
    "Refusal",
    "Script",
    "behaviour_named",
]

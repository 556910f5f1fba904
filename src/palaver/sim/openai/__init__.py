"""A strict simulator of OpenAI-compatible servers."""

from palaver.sim.behaviours import Actor, Answer, Ask, Behaviour, Call, Echo, Raw, Script
from palaver.sim.faults import (
    ContentFilter,
    ContextTooLong,
    CutStream,
    Deadline,
    Empty,
    ErrorFrame,
    Hang,
    Internal,
    MalformedCall,
    MaxTokens,
    ModelRefusal,
    Overloaded,
    Quota,
    RateLimited,
)
from palaver.sim.openai.sim import MODELS, Fault, OpenAISim
from palaver.sim.server import Clock, Received

__all__ = [
    "MODELS",
    "Actor",
    "Answer",
    "Ask",
    "Behaviour",
    "Call",
    "Clock",
    "ContentFilter",
    "ContextTooLong",
    "CutStream",
    "Deadline",
    "Echo",
    "Empty",
    "ErrorFrame",
    "Fault",
    "Hang",
    "Internal",
    "MalformedCall",
    "MaxTokens",
    "ModelRefusal",
    "OpenAISim",
    "Overloaded",
    "Quota",
    "RateLimited",
    "Raw",
    "Received",
    "Script",
]

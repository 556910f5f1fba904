"""A strict simulator of OpenAI-compatible servers."""

from tertulia.sim.behaviours import Actor, Answer, Ask, Behaviour, Call, Echo, Raw, Script
from tertulia.sim.faults import (
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
from tertulia.sim.openai.sim import MODELS, Fault, OpenAISim
from tertulia.sim.server import Clock, Received

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

"""A strict simulator of the Gemini API."""

from palaver.sim.behaviours import Actor, Answer, Ask, Behaviour, Call, Echo, Raw, Script
from palaver.sim.faults import (
    BlockedPrompt,
    ContentFilter,
    CutStream,
    Deadline,
    Empty,
    EmptyCandidates,
    ErrorFrame,
    Finish,
    Hang,
    Internal,
    MalformedCall,
    MaxTokens,
    Overloaded,
    RateLimited,
    UsageOnlyLast,
)
from palaver.sim.gemini.catalogue import MODELS, Model
from palaver.sim.gemini.sim import BAD_KEYS, Fault, GeminiSim
from palaver.sim.server import Clock, Received

__all__ = [
    "BAD_KEYS",
    "MODELS",
    "Actor",
    "Answer",
    "Ask",
    "Behaviour",
    "BlockedPrompt",
    "Call",
    "Clock",
    "ContentFilter",
    "CutStream",
    "Deadline",
    "Echo",
    "Empty",
    "EmptyCandidates",
    "ErrorFrame",
    "Fault",
    "Finish",
    "GeminiSim",
    "Hang",
    "Internal",
    "MalformedCall",
    "MaxTokens",
    "Model",
    "Overloaded",
    "RateLimited",
    "Raw",
    "Received",
    "Script",
    "UsageOnlyLast",
]

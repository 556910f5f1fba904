"""A strict local stand-in for the Gemini API."""

from palaver.sim.gemini.behaviours import Actor, Answer, Ask, Behaviour, Echo, Raw, Script, behaviour_named
from palaver.sim.gemini.catalogue import DEFAULT_MODELS, Model
from palaver.sim.gemini.clock import Clock
from palaver.sim.gemini.faults import (
    BlockedPrompt,
    CutStream,
    Deadline,
    Empty,
    EmptyCandidates,
    ErrorFrame,
    Fault,
    Finish,
    Hang,
    Internal,
    MalformedFunctionCall,
    MaxTokens,
    Overloaded,
    RateLimited,
    Safety,
    UsageOnlyLast,
)
from palaver.sim.gemini.http import BAD_KEYS, Received
from palaver.sim.gemini.sim import GeminiSim

__all__ = [
    "BAD_KEYS",
    "DEFAULT_MODELS",
    "Actor",
    "Answer",
    "Ask",
    "Behaviour",
    "BlockedPrompt",
    "Clock",
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
    "MalformedFunctionCall",
    "MaxTokens",
    "Model",
    "Overloaded",
    "RateLimited",
    "Raw",
    "Received",
    "Safety",
    "Script",
    "UsageOnlyLast",
    "behaviour_named",
]

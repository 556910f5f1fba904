"""The models: each answers a prompt, whole or in pieces."""

from palaver.models.base import Finish, Model, Response, Usage
from palaver.models.gemini.cache import CachedGemini
from palaver.models.gemini.client import Gemini
from palaver.models.local.client import Local
from palaver.models.model_names import model_named
from palaver.models.openai.client import OpenAI
from palaver.models.scripted import Scripted

__all__ = [
    "CachedGemini",
    "Finish",
    "Gemini",
    "Local",
    "Model",
    "OpenAI",
    "Response",
    "Scripted",
    "Usage",
    "model_named",
]

"""Models that run in this process, without a key and a service."""

from tertulia.models.local.client import Local
from tertulia.models.local.download import Download, fetch_url
from tertulia.models.local.packages import fetch_runtime, has_runtime
from tertulia.models.local.weights import (
    WEIGHTS,
    LocalModel,
    Weights,
    fetch_weights,
    find_weights,
    list_models,
    missing_bytes,
    models_directory,
    remove_model,
    size_text,
)

__all__ = [
    "WEIGHTS",
    "Download",
    "Local",
    "LocalModel",
    "Weights",
    "fetch_runtime",
    "fetch_url",
    "fetch_weights",
    "find_weights",
    "has_runtime",
    "list_models",
    "missing_bytes",
    "models_directory",
    "remove_model",
    "size_text",
]

"""Models that run in this process, without a key and a service."""

from palaver.models.local.client import Local
from palaver.models.local.weights import WEIGHTS, Weights, fetch_weights, find_weights, models_directory

__all__ = ["WEIGHTS", "Local", "Weights", "fetch_weights", "find_weights", "models_directory"]

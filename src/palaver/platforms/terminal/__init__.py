"""The terminal as a platform: `palaver chat`."""

from palaver.model_choice import choose_model
from palaver.platforms.terminal.main import ChatOptions, converse, run

__all__ = ["ChatOptions", "choose_model", "converse", "run"]

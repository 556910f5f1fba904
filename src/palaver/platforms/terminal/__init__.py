"""The terminal as a platform: `palaver chat`."""

from palaver.platforms.terminal.main import ChatOptions, converse, run
from palaver.platforms.terminal.setup import choose_model

__all__ = ["ChatOptions", "choose_model", "converse", "run"]

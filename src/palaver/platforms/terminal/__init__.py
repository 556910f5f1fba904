"""The terminal as a platform: `palaver chat`."""

from palaver.platforms.terminal.main import converse, run
from palaver.platforms.terminal.setup import choose_model

__all__ = ["choose_model", "converse", "run"]

"""A chat in the terminal: `palaver chat`."""

from palaver.platforms.terminal.choosing import choose_model
from palaver.platforms.terminal.standard import converse, run

__all__ = ["choose_model", "converse", "run"]

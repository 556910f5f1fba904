"""The terminal as a platform: `tertulia chat`."""

from tertulia.model_choice import choose_model
from tertulia.platforms.terminal.main import ChatOptions, converse, run

__all__ = ["ChatOptions", "choose_model", "converse", "run"]

"""What the agent should know: five sources gathered into one frozen context."""

from palaver.context.gather import gather
from palaver.context.values import Context

__all__ = ["Context", "gather"]

"""What the agent should know: five sources gathered into one frozen context."""

from palaver.context.gathering import gather
from palaver.context.values import Context

__all__ = ["Context", "gather"]

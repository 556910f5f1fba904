"""The context of a batch: gathered from a list of sources into one frozen value."""

from palaver.context.gather import gather
from palaver.context.values import Context

__all__ = ["Context", "gather"]

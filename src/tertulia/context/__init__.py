"""The context of a batch: gathered from a list of sources into one frozen value."""

from tertulia.context.gather import gather
from tertulia.context.values import Context

__all__ = ["Context", "gather"]

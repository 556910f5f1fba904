"""The store: messages, runs, replies, tasks and memory in one SQLite file."""

from tertulia.memory.forget import Forgotten
from tertulia.store.store import Store

__all__ = ["Forgotten", "Store"]

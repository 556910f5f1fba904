"""What is kept: messages, runs, replies, work for later, in one SQLite file. The edge to the disk."""

from palaver.store.forget.person import Forgotten
from palaver.store.store import Store

__all__ = ["Forgotten", "Store"]

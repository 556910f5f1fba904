"""The store: messages, runs, replies, tasks and memory in one SQLite file."""

from palaver.store.forget.person import Forgotten
from palaver.store.store import Store

__all__ = ["Forgotten", "Store"]

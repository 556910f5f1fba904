"""Agents: the characters of an engine, which of them a message is for, and when each was present."""

"""Forgetting: people, facts, and what was learned from deleted messages."""

"""Palaver: a conversation engine for chat agents."""

"""Forgetting: a person, a fact, what was learned from a message that is gone."""

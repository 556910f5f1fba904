"""Verifies facts: whether a claim was said, whether two facts say the same, whether a text states a fact."""

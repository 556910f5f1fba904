"""Asking a model, running the tools it calls side by side, and asking again."""

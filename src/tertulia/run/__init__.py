"""Runs: the journal of a run, the loop over it, fallbacks, and the outcome as replies and tasks."""

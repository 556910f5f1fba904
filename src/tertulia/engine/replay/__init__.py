"""Replay: past requests and conversations on a changed bot. Nothing is sent to people, no tool runs, no log changes."""

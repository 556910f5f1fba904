"""The engine: messages in, replies out, durably."""

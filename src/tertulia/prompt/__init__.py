"""From a context to a prompt: messages rendered as turns, layers, sections, escaping, and our own profiles."""

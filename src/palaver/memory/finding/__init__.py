"""Finding what was said: words, times, what speaks for a message and how much."""

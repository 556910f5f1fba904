"""Facts found by patterns: the engine, and a data file for each language."""

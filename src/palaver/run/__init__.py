"""One answer, step by step: a journal, the loop over it, fallbacks, and what the answer comes to."""

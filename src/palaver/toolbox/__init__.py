"""Functions as tools: declared to a model, checked, and run side by side."""

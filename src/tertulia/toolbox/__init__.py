"""Functions as tools: their schema, their calls, and the toolbox that runs them."""

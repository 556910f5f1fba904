"""Tasks: the blocks by which a model asks for work, the tasks they become, and which of them may run."""

"""Work a model asks for in its answer: task blocks, the tasks they become, and which of them may run."""

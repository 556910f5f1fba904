"""What the model is told: a context laid out as the layers of a prompt."""

"""One exchange with people: what the model is asked for a message, and what they see of its answer."""

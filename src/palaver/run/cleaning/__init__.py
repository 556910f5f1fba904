"""How our own markup is told from what people may see. Pure."""

"""Media: files fetched once, stored by hash, and sent in the form that a model takes."""
